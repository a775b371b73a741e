//! Reading a request's body whole.

use std::error::Error as StdError;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http_body::Body;
use http_body_util::{BodyExt, LengthLimitError};
use tokio::time::timeout;

use crate::body::joined::Joined;
use crate::error::BoxError;

/// A request's body, read whole.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) data: Bytes,
    pub(crate) trailers: Option<HeaderMap>,
    /// Whether the body had announced its length, so that a short one is known to be short.
    pub(crate) announced: bool,
}

/// How much of a body is read, and for how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) bytes: usize,
    pub(crate) time: Duration,
}

/// Why a request's body was not read.
#[derive(Debug)]
pub(crate) enum Unread<B> {
    /// It is over the limit.
    TooLarge(Rest<B>),
    /// It ended early, or says two different things about its length.
    Cut,
    /// It did not end in time.
    Late,
    /// It is that of a gRPC call with several messages.
    Streaming(Begun<B>),
}

/// What is left of a body that is over the limit.
#[derive(Debug)]
pub(crate) enum Rest<B> {
    /// All of it: its announced length was enough to know.
    Untouched(Pin<Box<B>>),
    /// What comes after the limit.
    Begun(Pin<Box<B>>),
    /// Nothing: a limit in front of the layer has cut it off.
    CutOff,
}

/// A body of which the first bytes were read.
#[derive(Debug)]
pub(crate) struct Begun<B> {
    pub(crate) first: Bytes,
    pub(crate) body: Pin<Box<B>>,
}

/// Reads a body whole. A body of one frame is not copied.
///
/// Dropping the future drops the body.
pub(crate) async fn read<B>(body: B, limits: Limits) -> Result<Read, Unread<B>>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let hint = body.size_hint();
    if hint.lower() > u64::try_from(limits.bytes).unwrap_or(u64::MAX) {
        return Err(Unread::TooLarge(Rest::Untouched(Box::pin(body))));
    }
    let read = |(data, trailers), announced| Read {
        data,
        trailers,
        announced,
    };
    let Some(declared) = hint.exact() else {
        let mut body = Box::pin(body);
        return match within(limits.time, join(body.as_mut(), limits.bytes)).await {
            Some(Ok(joined)) => Ok(read(joined, false)),
            Some(Err(Fault::TooLarge)) => Err(Unread::TooLarge(Rest::Begun(body))),
            Some(Err(fault @ (Fault::Limited | Fault::Cut))) => Err(fault.unread()),
            None => Err(Unread::Late),
        };
    };
    match within(limits.time, join(pin!(body), limits.bytes)).await {
        Some(Ok(joined)) if declared == length(&joined.0) => Ok(read(joined, true)),
        Some(Err(Fault::Limited)) => Err(Fault::Limited.unread()),
        Some(Ok(_) | Err(Fault::TooLarge | Fault::Cut)) => Err(Unread::Cut),
        None => Err(Unread::Late),
    }
}

/// Awaits `future` for `limit` at most. No clock is read if it is ready at once.
async fn within<F: Future>(limit: Duration, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    match poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await {
        Poll::Ready(output) => Some(output),
        Poll::Pending => timeout(limit, future).await.ok(),
    }
}

/// Why frames could not be joined.
pub(crate) enum Fault {
    TooLarge,
    /// A limit in front of the layer says that it is too large.
    Limited,
    Cut,
}

impl Fault {
    /// The fault of a body that ended with an error.
    pub(crate) fn of(error: impl Into<BoxError>) -> Self {
        let error = error.into();
        let mut cause: Option<&(dyn StdError + 'static)> = Some(&*error);
        while let Some(error) = cause {
            if error.is::<LengthLimitError>() {
                return Self::Limited;
            }
            cause = error.source();
        }
        Self::Cut
    }

    /// Why a body that has this fault, and is of no more use, was not read.
    pub(crate) fn unread<B>(self) -> Unread<B> {
        match self {
            Self::TooLarge | Self::Limited => Unread::TooLarge(Rest::CutOff),
            Self::Cut => Unread::Cut,
        }
    }
}

async fn join<B>(mut body: Pin<&mut B>, limit: usize) -> Result<(Bytes, Option<HeaderMap>), Fault>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let mut joined = Joined::Nothing;
    let mut trailers = None;
    while let Some(frame) = body.frame().await {
        match frame.map_err(Fault::of)?.into_data() {
            Ok(data) if data.len() > limit.saturating_sub(joined.len()) => {
                return Err(Fault::TooLarge);
            }
            Ok(data) => joined.push(data),
            Err(frame) => trailers = frame.into_trailers().ok().or(trailers),
        }
    }
    Ok((joined.into_bytes(), trailers))
}

/// The length of a frame, as body lengths are counted.
pub(crate) fn length(data: &Bytes) -> u64 {
    u64::try_from(data.len()).unwrap_or(u64::MAX)
}
