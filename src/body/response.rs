//! The body that the caller is given.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tokio::sync::mpsc::Receiver;

use crate::body::read::length;
use crate::body::tap::Tap;
use crate::error::BoxError;
use crate::record::Whole;

pin_project! {
    /// The body that the caller is given: the inner service's own, a recorded one, or the pieces
    /// of one that is being recorded.
    ///
    /// Fails with the inner body's error, or when the record of a response that was already under
    /// way could not be written: the caller must not take it for whole then.
    pub struct ResponseBody<B> {
        #[pin]
        kind: Kind<B>,
    }
}

pin_project! {
    #[project = KindProjection]
    enum Kind<B> {
        Passed { #[pin] body: B },
        Whole { frames: std::vec::IntoIter<Bytes>, trailers: Option<HeaderMap>, left: Option<u64> },
        Streamed { pieces: Receiver<Piece<B>> },
        Rest { first: std::vec::IntoIter<Bytes>, body: Pin<Box<B>> },
        Ended { error: Option<BoxError> },
        Tapped { #[pin] body: B, tap: Box<Tap> },
    }
}

/// What a run that streams its response hands to the body that the caller reads.
pub(crate) enum Piece<B> {
    /// A frame, as it was produced.
    Frame(Frame<Bytes>),
    /// Nothing more of the kind.
    Last(Last<B>),
}

/// How a streamed response goes on after its last recorded frame.
pub(crate) enum Last<B> {
    /// It ends, once the record is written.
    End,
    /// The response cannot be finished.
    Failed(BoxError),
    /// What is left is not recorded any more: the caller reads it from the source.
    Rest(Pin<Box<B>>),
}

impl<B> ResponseBody<B> {
    /// The inner service's body, untouched.
    pub(crate) fn passed(body: B) -> Self {
        Self::of(Kind::Passed { body })
    }

    /// The inner service's body, untouched, of which a copy is made as it passes.
    pub(crate) fn tapped(body: B, tap: Tap) -> Self {
        let tap = Box::new(tap);
        Self::of(Kind::Tapped { body, tap })
    }

    /// A body that is known whole.
    pub(crate) fn whole(whole: Whole) -> Self {
        let left = whole
            .sized
            .then(|| whole.frames.iter().map(length).sum::<u64>());
        Self::of(Kind::Whole {
            frames: whole.frames.into_iter(),
            trailers: whole.trailers,
            left,
        })
    }

    /// A body of which each piece is sent as it is produced.
    pub(crate) fn streamed(pieces: Receiver<Piece<B>>) -> Self {
        Self::of(Kind::Streamed { pieces })
    }

    /// Frames that were read already, then the source.
    pub(crate) fn rest(first: Vec<Bytes>, body: Pin<Box<B>>) -> Self {
        let first = first.into_iter();
        Self::of(Kind::Rest { first, body })
    }

    fn of(kind: Kind<B>) -> Self {
        Self { kind }
    }
}

/// An empty body of known length.
impl<B> Default for ResponseBody<B> {
    fn default() -> Self {
        Self::whole(Whole {
            sized: true,
            ..Whole::default()
        })
    }
}

impl<B> fmt::Debug for ResponseBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseBody").finish_non_exhaustive()
    }
}

type Polled = Option<Result<Frame<Bytes>, BoxError>>;

impl<B> Body for ResponseBody<B>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Polled> {
        let mut kind = self.project().kind;
        loop {
            let next = match kind.as_mut().project() {
                KindProjection::Passed { body } => return poll_source(body, cx),
                KindProjection::Whole {
                    frames,
                    trailers,
                    left,
                } => return Poll::Ready(next_of_whole(frames, trailers, left)),
                KindProjection::Rest { first, body } => match first.next() {
                    Some(data) => return Poll::Ready(Some(Ok(Frame::data(data)))),
                    None => return poll_source(body.as_mut(), cx),
                },
                KindProjection::Tapped { mut body, tap } => {
                    let frame = ready!(body.as_mut().poll_frame(cx));
                    tap.pass(frame.as_ref(), body.is_end_stream());
                    return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
                }
                KindProjection::Ended { error } => return Poll::Ready(error.take().map(Err)),
                KindProjection::Streamed { pieces } => match ready!(pieces.poll_recv(cx)) {
                    Some(Piece::Frame(frame)) => return Poll::Ready(Some(Ok(frame))),
                    Some(Piece::Last(last)) => after(last),
                    // The run went without a word: it was cut, and this is no clean end.
                    None => after(Last::Failed(
                        "the run that produced this response was cut".into(),
                    )),
                },
            };
            kind.set(next);
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Passed { body } | Kind::Tapped { body, .. } => body.is_end_stream(),
            Kind::Whole {
                frames, trailers, ..
            } => frames.len() == 0 && trailers.is_none(),
            Kind::Streamed { .. } => false,
            Kind::Rest { first, body } => first.len() == 0 && body.is_end_stream(),
            Kind::Ended { error } => error.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Passed { body } | Kind::Tapped { body, .. } => body.size_hint(),
            Kind::Whole { left, .. } => left.map_or_else(SizeHint::default, SizeHint::with_exact),
            Kind::Streamed { .. } => SizeHint::default(),
            Kind::Rest { first, body } => {
                let read: u64 = first.as_slice().iter().map(length).sum();
                let mut hint = SizeHint::new();
                hint.set_lower(body.size_hint().lower() + read);
                if let Some(upper) = body.size_hint().upper() {
                    hint.set_upper(upper + read);
                }
                hint
            }
            Kind::Ended { .. } => SizeHint::with_exact(0),
        }
    }
}

fn poll_source<B>(body: Pin<&mut B>, cx: &mut Context<'_>) -> Poll<Polled>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    body.poll_frame(cx)
        .map(|frame| frame.map(|frame| frame.map_err(Into::into)))
}

fn next_of_whole(
    frames: &mut std::vec::IntoIter<Bytes>,
    trailers: &mut Option<HeaderMap>,
    left: &mut Option<u64>,
) -> Polled {
    match frames.next() {
        Some(data) => {
            *left = left.map(|left| left.saturating_sub(length(&data)));
            Some(Ok(Frame::data(data)))
        }
        None => trailers.take().map(|map| Ok(Frame::trailers(map))),
    }
}

fn after<B>(last: Last<B>) -> Kind<B> {
    match last {
        Last::End => Kind::Ended { error: None },
        Last::Failed(error) => Kind::Ended { error: Some(error) },
        Last::Rest(body) => Kind::Rest {
            first: Vec::new().into_iter(),
            body,
        },
    }
}
