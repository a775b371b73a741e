//! The body that the inner service is given.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use crate::body::read::{Begun, Read, length};
use crate::body::tap::Tap;

pin_project! {
    /// The body that the inner service is given: the caller's own, or the bytes that were read.
    ///
    /// Routers, routes and most layers take any body. Where the compiler says that something is no
    /// `Service<Request<RequestBody<_>>>`, it wants one type, such as axum's own body: a layer below
    /// this one makes it that.
    ///
    /// ```
    /// use axum::{Router, extract::Request, middleware::{from_fn, Next}, routing::post};
    /// use tower::ServiceBuilder;
    /// use tower_http::map_request_body::MapRequestBodyLayer;
    /// # use tower_idempotency::IdempotencyLayer;
    /// # use tower_idempotency::channel::{IdempotencyKey, Scope};
    /// # use tower_idempotency::store::MemoryStore;
    ///
    /// # let channel = IdempotencyKey::scoped_by(Scope::header("x-user"));
    /// # let idempotency = IdempotencyLayer::new(MemoryStore::new(), channel);
    /// let layers = ServiceBuilder::new()
    ///     .layer(idempotency)
    ///     .layer(MapRequestBodyLayer::new(axum::body::Body::new))
    ///     .layer(from_fn(async |request: Request, next: Next| next.run(request).await));
    /// let app: Router = Router::new().route("/messages", post(|| async {})).layer(layers);
    /// ```
    #[derive(Debug)]
    pub struct RequestBody<B> {
        #[pin]
        kind: RequestKind<B>,
    }
}

pin_project! {
    #[project = RequestKindProjection]
    #[derive(Debug)]
    enum RequestKind<B> {
        Passed { #[pin] body: B },
        Read { data: Bytes, trailers: Option<HeaderMap> },
        Begun { first: Bytes, body: Pin<Box<B>> },
        Tapped { #[pin] body: B, tap: Box<Tap> },
    }
}

impl<B> RequestBody<B> {
    /// The caller's body, untouched.
    pub(crate) fn passed(body: B) -> Self {
        Self {
            kind: RequestKind::Passed { body },
        }
    }

    /// The caller's body, untouched, of which a copy is made as it passes.
    pub(crate) fn tapped(body: B, mut tap: Tap) -> Self
    where
        B: Body<Data = Bytes>,
    {
        tap.begin(body.size_hint().exact(), body.is_end_stream());
        let tap = Box::new(tap);
        Self {
            kind: RequestKind::Tapped { body, tap },
        }
    }

    /// A body that was read whole.
    pub(crate) fn read(read: Read) -> Self {
        Self {
            kind: RequestKind::Read {
                data: read.data,
                trailers: read.trailers,
            },
        }
    }

    /// The caller's body, of which the first bytes were read already.
    pub(crate) fn begun(begun: Begun<B>) -> Self {
        Self {
            kind: RequestKind::Begun {
                first: begun.first,
                body: begun.body,
            },
        }
    }
}

impl<B: Body<Data = Bytes>> Body for RequestBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match self.project().kind.project() {
            RequestKindProjection::Passed { body } => body.poll_frame(cx),
            RequestKindProjection::Read { data, .. } if !data.is_empty() => {
                Poll::Ready(Some(Ok(Frame::data(std::mem::take(data)))))
            }
            RequestKindProjection::Read { trailers, .. } => {
                Poll::Ready(trailers.take().map(|map| Ok(Frame::trailers(map))))
            }
            RequestKindProjection::Begun { first, .. } if !first.is_empty() => {
                Poll::Ready(Some(Ok(Frame::data(std::mem::take(first)))))
            }
            RequestKindProjection::Begun { body, .. } => body.as_mut().poll_frame(cx),
            RequestKindProjection::Tapped { mut body, tap } => {
                let frame = ready!(body.as_mut().poll_frame(cx));
                tap.pass(frame.as_ref(), body.is_end_stream());
                Poll::Ready(frame)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            RequestKind::Passed { body } | RequestKind::Tapped { body, .. } => body.is_end_stream(),
            RequestKind::Read { data, trailers } => data.is_empty() && trailers.is_none(),
            RequestKind::Begun { first, body } => first.is_empty() && body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            RequestKind::Passed { body } | RequestKind::Tapped { body, .. } => body.size_hint(),
            // With an announced length, HTTP/1 has no place for trailers.
            RequestKind::Read {
                data,
                trailers: Some(_),
            } => at_least(length(data)),
            RequestKind::Read { data, .. } => SizeHint::with_exact(length(data)),
            RequestKind::Begun { first, body } => {
                at_least(body.size_hint().lower() + length(first))
            }
        }
    }
}

fn at_least(bytes: u64) -> SizeHint {
    let mut hint = SizeHint::new();
    hint.set_lower(bytes);
    hint
}
