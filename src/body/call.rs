//! Reading the body of a gRPC call, which tells a call of one message from a streaming one.

use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use tokio::time::{Instant, timeout_at};

use crate::body::joined::Joined;
use crate::body::read::{Begun, Fault, Limits, Read, Rest, Unread};
use crate::error::BoxError;

/// Each message begins with one byte of flags and four of length:
/// <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>.
const PREFIX: usize = 5;

/// How far the first message of a call has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// Not a byte yet.
    Nothing,
    Partial,
    Whole,
    /// A second message has begun.
    Beyond,
    /// It says that it is longer than the limit.
    TooLarge,
}

/// Reads the body of a call with one message.
///
/// Whether a call streams is a matter of its service definition, and its head does not say it: a
/// body that ends after exactly one message is a call that can be protected, whatever its
/// definition. One that goes on, or ends without a message, is [`Unread::Streaming`]. So is
/// one that stays silent for `patience` before its first byte or after its first message; without
/// a patience that lasts as long as the limit, and is then [`Unread::Late`].
///
/// Dropping the future drops the body.
pub(crate) async fn read_call<B>(
    body: B,
    limits: Limits,
    patience: Option<Duration>,
) -> Result<Read, Unread<B>>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let end = Instant::now() + limits.time;
    let mut call = Call {
        body: Box::pin(body),
        joined: Joined::Nothing,
        trailers: None,
    };
    loop {
        let progress = call.progress(limits.bytes);
        let until = match (progress, patience) {
            (Progress::Beyond, _) => return Err(call.streaming()),
            (Progress::TooLarge, _) => return Err(Unread::TooLarge(Rest::Begun(call.body))),
            (Progress::Nothing | Progress::Whole, Some(patience)) => {
                end.min(Instant::now() + patience)
            }
            (Progress::Partial, _) | (_, None) => end,
        };
        match timeout_at(until, call.body.frame()).await {
            Ok(Some(Ok(frame))) => call.take(frame),
            Ok(Some(Err(error))) => return Err(Fault::of(error).unread()),
            Ok(None) => return call.ended(progress),
            Err(_) if patience.is_some() && progress != Progress::Partial => {
                return Err(call.streaming());
            }
            Err(_) => return Err(Unread::Late),
        }
    }
}

/// A call that is being read.
struct Call<B> {
    body: Pin<Box<B>>,
    joined: Joined,
    trailers: Option<HeaderMap>,
}

impl<B> Call<B> {
    fn progress(&self, limit: usize) -> Progress {
        let read = self.joined.as_bytes();
        if read.is_empty() {
            return Progress::Nothing;
        }
        let Some((&[_flags, a, b, c, d], message)) = read.split_first_chunk::<PREFIX>() else {
            return Progress::Partial;
        };
        let announced = usize::try_from(u32::from_be_bytes([a, b, c, d])).unwrap_or(usize::MAX);
        if announced > limit.saturating_sub(PREFIX) {
            return Progress::TooLarge;
        }
        match message.len().cmp(&announced) {
            std::cmp::Ordering::Less => Progress::Partial,
            std::cmp::Ordering::Equal => Progress::Whole,
            std::cmp::Ordering::Greater => Progress::Beyond,
        }
    }

    fn take(&mut self, frame: Frame<Bytes>) {
        match frame.into_data() {
            Ok(data) => self.joined.push(data),
            Err(frame) => {
                if let Ok(trailers) = frame.into_trailers() {
                    self.trailers = Some(trailers);
                }
            }
        }
    }

    fn ended(self, progress: Progress) -> Result<Read, Unread<B>> {
        match progress {
            Progress::Whole => Ok(Read {
                data: self.joined.into_bytes(),
                trailers: self.trailers,
                announced: false,
            }),
            Progress::Nothing => Err(self.streaming()),
            Progress::Partial | Progress::Beyond | Progress::TooLarge => Err(Unread::Cut),
        }
    }

    fn streaming(self) -> Unread<B> {
        Unread::Streaming(Begun {
            first: self.joined.into_bytes(),
            body: self.body,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::stream::{self, Stream, StreamExt};
    use http_body_util::StreamBody;

    use super::*;

    const LIMITS: Limits = Limits {
        bytes: 64,
        time: Duration::from_mins(1),
    };

    /// A message of `announced` bytes, of which `sent` come.
    fn message(announced: u8, sent: usize) -> Vec<u8> {
        let mut bytes = vec![0, 0, 0, 0, announced];
        bytes.extend(std::iter::repeat_n(b'm', sent));
        bytes
    }

    fn frames(
        parts: Vec<Vec<u8>>,
    ) -> impl Stream<Item = Result<Frame<Bytes>, Infallible>> + Unpin + Send {
        stream::iter(parts.into_iter().map(|part| Ok(Frame::data(part.into()))))
    }

    async fn ended(parts: &[Vec<u8>]) -> &'static str {
        let body = StreamBody::new(frames(parts.to_vec()));
        name(&read_call(body, LIMITS, None).await)
    }

    async fn silent_after(parts: &[Vec<u8>], patience: Option<Duration>) -> &'static str {
        let body = StreamBody::new(frames(parts.to_vec()).chain(stream::pending()));
        name(&read_call(body, LIMITS, patience).await)
    }

    fn name<B>(read: &Result<Read, Unread<B>>) -> &'static str {
        match read {
            Ok(_) => "whole",
            Err(Unread::TooLarge(_)) => "too large",
            Err(Unread::Cut) => "cut",
            Err(Unread::Late) => "late",
            Err(Unread::Streaming(_)) => "streaming",
        }
    }

    #[tokio::test]
    async fn exactly_one_message_is_a_call_however_its_bytes_are_cut() {
        let whole = message(3, 3);
        assert_eq!(ended(std::slice::from_ref(&whole)).await, "whole");
        let bytes: Vec<_> = whole.iter().map(|byte| vec![*byte]).collect();
        assert_eq!(ended(&bytes).await, "whole");
        assert_eq!(ended(&[message(0, 0)]).await, "whole");
    }

    #[tokio::test]
    async fn a_second_message_or_none_is_a_streaming_call() {
        assert_eq!(ended(&[message(3, 3), message(0, 0)]).await, "streaming");
        let joined = [message(3, 3), message(1, 1)].concat();
        assert_eq!(ended(&[joined]).await, "streaming");
        assert_eq!(ended(&[]).await, "streaming");
        // Known at its first byte, while the rest is still to come.
        let begun = [message(3, 3), vec![0]];
        assert_eq!(silent_after(&begun, None).await, "streaming");
    }

    #[tokio::test]
    async fn a_message_cut_short_is_no_call() {
        assert_eq!(ended(&[message(3, 2)]).await, "cut");
        assert_eq!(ended(&[vec![0, 0]]).await, "cut");
    }

    #[tokio::test]
    async fn a_message_over_the_limit_is_refused_at_its_prefix() {
        assert_eq!(silent_after(&[message(60, 0)], None).await, "too large");
        assert_eq!(ended(&[message(59, 59)]).await, "whole");
    }

    #[tokio::test(start_paused = true)]
    async fn silence_is_late_without_patience_and_a_streaming_call_with_it() {
        let patience = Some(Duration::from_secs(1));
        for (parts, with_patience) in [
            (vec![], "streaming"),
            (vec![message(3, 3)], "streaming"),
            (vec![message(3, 2)], "late"),
        ] {
            let began = Instant::now();
            assert_eq!(silent_after(&parts, None).await, "late");
            assert_eq!(began.elapsed(), LIMITS.time);
            assert_eq!(silent_after(&parts, patience).await, with_patience);
        }
    }
}
