//! Bodies that can be sent again, and those that cannot.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::{Either, Empty, Full};
use pin_project_lite::pin_project;

/// A body that may be sent again.
///
/// [`RetryPolicy`](super::RetryPolicy) asks for a copy before each attempt. A body that gives none
/// is sent once: whatever becomes of that attempt is what the caller gets.
///
/// Implement it for a body of your own by giving a copy that is whole: not what is left of a
/// stream. Bodies of two kinds in one client are an [`Either`]; foreign streams go into [`Once`].
///
/// ```
/// use bytes::Bytes;
/// use http_body_util::{Either, Empty, Full};
/// use tower_idempotency::client::{Once, Repeat};
///
/// type Outgoing = Either<Full<Bytes>, Once<Empty<Bytes>>>;
///
/// let text = Outgoing::Left(Full::from("hello"));
/// let upload = Outgoing::Right(Once::new(Empty::new()));
/// assert!(text.repeat().is_some());
/// assert!(upload.repeat().is_none());
/// ```
pub trait Repeat: Sized {
    /// The same body once more; `None` if it can be sent only once.
    fn repeat(&self) -> Option<Self>;
}

macro_rules! repeat_by_clone {
    ($($body:ty),*) => {$(
        impl Repeat for $body {
            fn repeat(&self) -> Option<Self> {
                Some(self.clone())
            }
        }
    )*};
}

repeat_by_clone!((), Bytes, String, Vec<u8>, &'static str, &'static [u8]);

impl<D: Clone> Repeat for Full<D> {
    fn repeat(&self) -> Option<Self> {
        Some(self.clone())
    }
}

impl<D> Repeat for Empty<D> {
    fn repeat(&self) -> Option<Self> {
        Some(Self::new())
    }
}

impl<L: Repeat, R: Repeat> Repeat for Either<L, R> {
    fn repeat(&self) -> Option<Self> {
        match self {
            Self::Left(left) => left.repeat().map(Self::Left),
            Self::Right(right) => right.repeat().map(Self::Right),
        }
    }
}

pin_project! {
    /// A body that can be sent only once, such as a stream. A request with it is not retried.
    #[derive(Debug, Default)]
    pub struct Once<B> {
        #[pin]
        body: B,
    }
}

impl<B> Once<B> {
    /// This body, once.
    pub fn new(body: B) -> Self {
        Self { body }
    }
}

impl<B> Repeat for Once<B> {
    fn repeat(&self) -> Option<Self> {
        None
    }
}

impl<B: Body> Body for Once<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        self.project().body.poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
