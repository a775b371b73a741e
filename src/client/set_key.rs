//! A key for each request that lacks one.

use std::task::{Context, Poll};

use http::header::HeaderName;
use http::{Method, Request};
use tower_layer::Layer;
use tower_service::Service;

use crate::client::key::Form;

/// The header that [`SetKeyLayer`] sets, and that [`RetryPolicy`](super::RetryPolicy) asks for.
pub(crate) const HEADER: HeaderName = HeaderName::from_static("idempotency-key");

/// Marks a request that carries a key, in whichever header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keyed;

/// Whether a request with this method does something that a repeat would do again.
pub(crate) fn needs_key(method: &Method) -> bool {
    !method.is_safe()
}

/// Sets `Idempotency-Key` on each request that lacks it and is not of a safe method (GET, HEAD,
/// OPTIONS, TRACE).
///
/// It stands *outside* of `retry`, so that all attempts of one call carry one key; inside, each
/// attempt would be a new message. A key that is there already is kept. It costs one UUID and one
/// header for each request.
///
/// ```
/// use tower_idempotency::client::SetKeyLayer;
///
/// let keys = SetKeyLayer::v7();
/// let elsewhere = SetKeyLayer::v4().header("x-message-key");
/// ```
#[derive(Clone, Debug)]
pub struct SetKeyLayer {
    form: Form,
    header: HeaderName,
}

impl SetKeyLayer {
    /// Keys are version 7 UUIDs: in the order of their making, which databases like. They tell the
    /// millisecond in which they were made.
    pub fn v7() -> Self {
        Self::of(Form::V7)
    }

    /// Keys are version 4 UUIDs: nothing but chance.
    pub fn v4() -> Self {
        Self::of(Form::V4)
    }

    fn of(form: Form) -> Self {
        Self {
            form,
            header: HEADER,
        }
    }

    /// The header that carries the key. Default: `idempotency-key`.
    ///
    /// # Panics
    /// If `name` is no header name in lower case.
    pub fn header(mut self, name: &'static str) -> Self {
        self.header = HeaderName::from_static(name);
        self
    }
}

impl<S> Layer<S> for SetKeyLayer {
    type Service = SetKey<S>;

    fn layer(&self, inner: S) -> SetKey<S> {
        SetKey {
            inner,
            layer: self.clone(),
        }
    }
}

/// The service of [`SetKeyLayer`].
#[derive(Clone, Debug)]
pub struct SetKey<S> {
    inner: S,
    layer: SetKeyLayer,
}

impl<S, B> Service<Request<B>> for SetKey<S>
where
    S: Service<Request<B>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> S::Future {
        if needs_key(request.method()) {
            let headers = request.headers_mut();
            if !headers.contains_key(&self.layer.header) {
                headers.insert(self.layer.header.clone(), self.layer.form.make());
            }
            request.extensions_mut().insert(Keyed);
        }
        self.inner.call(request)
    }
}
