//! An answer counts when it was read to its end.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use http_body_util::{BodyExt, Limited};
use tower_layer::Layer;
use tower_service::Service;

use crate::error::BoxError;

/// Reads each answer to its end, up to a limit, and gives its body as [`Bytes`].
///
/// It stands *inside* of `retry` and `timeout`: a connection that breaks after the answer's head,
/// or a body that stalls, then fails the attempt, and the next one gets the whole answer. Without
/// it a call succeeds with an answer that nobody can read.
///
/// An answer over the limit is an error, [`LengthLimitError`](http_body_util::LengthLimitError),
/// that is not retried. Trailers are dropped. It costs one box and the answer's memory.
#[derive(Clone, Copy, Debug)]
pub struct CollectLayer {
    limit: usize,
}

impl CollectLayer {
    /// Reads answers of up to `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { limit }
    }
}

impl<S> Layer<S> for CollectLayer {
    type Service = Collect<S>;

    fn layer(&self, inner: S) -> Collect<S> {
        Collect {
            inner,
            limit: self.limit,
        }
    }
}

/// The service of [`CollectLayer`].
#[derive(Clone, Debug)]
pub struct Collect<S> {
    inner: S,
    limit: usize,
}

impl<S, B, R> Service<Request<B>> for Collect<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    R: Body + Send,
    R::Data: Send,
    R::Error: Into<BoxError>,
{
    type Response = Response<Bytes>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Bytes>, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (answer, limit) = (self.inner.call(request), self.limit);
        Box::pin(async move {
            let (head, body) = answer.await.map_err(Into::into)?.into_parts();
            let whole = Limited::new(body, limit).collect().await?;
            Ok(Response::from_parts(head, whole.to_bytes()))
        })
    }
}
