//! Reading a request's body whole.

use std::pin::{Pin, pin};

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::Body;
use http_body_util::BodyExt;

/// A request's body, read whole.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) data: Bytes,
    pub(crate) trailers: Option<HeaderMap>,
    /// Whether the body had announced its length, so that a short one is known to be short.
    pub(crate) announced: bool,
}

/// Why a request's body was not read.
#[derive(Debug)]
pub(crate) enum Unread<B> {
    /// It is over the limit. The rest comes back, so that it can be drained.
    TooLarge(Pin<Box<B>>),
    /// It ended early, or says two different things about its length.
    Cut,
}

/// Reads a body whole, up to `limit` bytes. A body of one frame is not copied.
///
/// Dropping the future drops the body.
pub(crate) async fn read<B>(body: B, limit: usize) -> Result<Read, Unread<B>>
where
    B: Body<Data = Bytes>,
{
    let hint = body.size_hint();
    let limit_bytes = u64::try_from(limit).unwrap_or(u64::MAX);
    if hint.lower() > limit_bytes {
        return Err(Unread::TooLarge(Box::pin(body)));
    }
    let Some(declared) = hint.exact() else {
        let mut body = Box::pin(body);
        return match join(body.as_mut(), limit).await {
            Ok((data, trailers)) => Ok(Read {
                data,
                trailers,
                announced: false,
            }),
            Err(Fault::TooLarge) => Err(Unread::TooLarge(body)),
            Err(Fault::Cut) => Err(Unread::Cut),
        };
    };
    match join(pin!(body), limit).await {
        Ok((data, trailers)) if declared == length(&data) => Ok(Read {
            data,
            trailers,
            announced: true,
        }),
        Ok(_) | Err(Fault::TooLarge | Fault::Cut) => Err(Unread::Cut),
    }
}

enum Fault {
    TooLarge,
    Cut,
}

async fn join<B>(mut body: Pin<&mut B>, limit: usize) -> Result<(Bytes, Option<HeaderMap>), Fault>
where
    B: Body<Data = Bytes>,
{
    let mut joined = Joined::Nothing;
    let mut trailers = None;
    while let Some(frame) = body.frame().await {
        match frame.map_err(|_| Fault::Cut)?.into_data() {
            Ok(data) if data.len() > limit.saturating_sub(joined.len()) => {
                return Err(Fault::TooLarge);
            }
            Ok(data) => joined.push(data),
            Err(frame) => trailers = frame.into_trailers().ok().or(trailers),
        }
    }
    Ok((joined.into_bytes(), trailers))
}

/// Frames joined into one; a single frame stays as it is.
enum Joined {
    Nothing,
    One(Bytes),
    Many(BytesMut),
}

impl Joined {
    fn len(&self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::One(data) => data.len(),
            Self::Many(data) => data.len(),
        }
    }

    fn push(&mut self, data: Bytes) {
        match self {
            Self::Nothing => *self = Self::One(data),
            Self::One(_) | Self::Many(_) if data.is_empty() => {}
            Self::One(first) => {
                let mut many = BytesMut::with_capacity(2 * (first.len() + data.len()));
                many.extend_from_slice(first);
                many.extend_from_slice(&data);
                *self = Self::Many(many);
            }
            Self::Many(many) => many.extend_from_slice(&data),
        }
    }

    fn into_bytes(self) -> Bytes {
        match self {
            Self::Nothing => Bytes::new(),
            Self::One(data) => data,
            Self::Many(data) => data.freeze(),
        }
    }
}

/// The length of a frame, as body lengths are counted.
pub(crate) fn length(data: &Bytes) -> u64 {
    u64::try_from(data.len()).unwrap_or(u64::MAX)
}
