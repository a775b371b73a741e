//! A handler that answers as a test says, requests to it, and what is read of its answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures_util::FutureExt;
use http::request::Parts;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body::{Body, Frame};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use tower::util::BoxCloneSyncService;
use tower::{Layer, ServiceExt, service_fn};
use tower_idempotency::channel::{Channel, IdempotencyKey};
use tower_idempotency::store::{MemoryStore, Store};
use tower_idempotency::{BoxError, IdempotencyLayer, RequestBody};

pub(crate) type Sent = Request<Full<Bytes>>;
pub(crate) type Handled = Request<RequestBody<Full<Bytes>>>;
pub(crate) type Answer = Response<UnsyncBoxBody<Bytes, BoxError>>;
pub(crate) type Answered = Result<Answer, BoxError>;
pub(crate) type Handler = BoxCloneSyncService<Handled, Answer, BoxError>;
pub(crate) type Web = IdempotencyLayer<MemoryStore, IdempotencyKey>;

/// A layer for clients that make their own key, over a store in memory.
pub(crate) fn web() -> Web {
    IdempotencyLayer::new(MemoryStore::new(), IdempotencyKey::unscoped())
}

/// What a handler is called with.
#[derive(Debug)]
pub(crate) struct Asked {
    /// The number of this call, from 1.
    pub(crate) run: u64,
    pub(crate) head: Parts,
    pub(crate) body: Bytes,
    pub(crate) trailers: Option<HeaderMap>,
}

impl Asked {
    pub(crate) fn text(&self) -> &str {
        str::from_utf8(&self.body).unwrap()
    }
}

/// A handler, and how often it was called.
#[derive(Clone)]
pub(crate) struct App {
    runs: Arc<AtomicU64>,
    pub(crate) handler: Handler,
}

impl App {
    pub(crate) fn new<F, A>(answer: F) -> Self
    where
        F: Fn(Asked) -> A + Clone + Send + Sync + 'static,
        A: Future<Output = Answered> + Send + 'static,
    {
        let runs = Arc::<AtomicU64>::default();
        let counted = Arc::clone(&runs);
        let handler = service_fn(move |request: Handled| {
            let run = counted.fetch_add(1, Ordering::SeqCst) + 1;
            let answer = answer.clone();
            async move {
                let (head, body) = request.into_parts();
                let body = body.collect().await?;
                let asked = Asked {
                    run,
                    head,
                    trailers: body.trailers().cloned(),
                    body: body.to_bytes(),
                };
                answer(asked).await
            }
        });
        Self {
            runs,
            handler: BoxCloneSyncService::new(handler),
        }
    }

    /// A handler that is done at once, and says which run it was.
    pub(crate) fn quick() -> Self {
        Self::new(|asked| async move { text(&format!("run {}", asked.run)) })
    }

    /// How often it was called.
    pub(crate) fn runs(&self) -> u64 {
        self.runs.load(Ordering::SeqCst)
    }

    /// Sends a request through a layer; what is read of the answer, or the handler's error.
    pub(crate) async fn send<S: Store, C: Channel>(
        &self,
        layer: &IdempotencyLayer<S, C>,
        request: Sent,
    ) -> Seen {
        let answer = self.begin(layer, request).await.unwrap();
        Seen::of(answer).await
    }

    /// Sends a request through a layer, and gives the answer with its body unread.
    pub(crate) fn begin<S: Store, C: Channel>(
        &self,
        layer: &IdempotencyLayer<S, C>,
        request: Sent,
    ) -> impl Future<Output = Answered> + Send + use<S, C> {
        let answer = layer.layer(self.handler.clone()).oneshot(request);
        answer.map(|answer| answer.map(|answer| answer.map(BodyExt::boxed_unsync)))
    }
}

/// What a client sees of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Seen {
    pub(crate) async fn of(answer: Answer) -> Self {
        let (head, body) = answer.into_parts();
        Self {
            status: head.status,
            headers: head.headers,
            body: body.collect().await.unwrap().to_bytes(),
        }
    }

    pub(crate) fn is_replayed(&self) -> bool {
        self.header("idempotency-replayed") == "true"
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().unwrap())
    }

    /// The values of all lines of a header field.
    pub(crate) fn lines(&self, name: &str) -> Vec<&[u8]> {
        let lines = self.headers.get_all(name).iter();
        lines.map(http::HeaderValue::as_bytes).collect()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Whether the caller is told to come again, and when.
    pub(crate) fn is_retryable(&self) -> bool {
        let statuses = [StatusCode::CONFLICT, StatusCode::SERVICE_UNAVAILABLE];
        statuses.contains(&self.status) && !self.header("retry-after").is_empty()
    }
}

pub(crate) fn with_body(body: impl Into<Bytes>) -> Answer {
    let body = Full::new(body.into()).map_err(|never| match never {});
    Response::new(body.boxed_unsync())
}

#[expect(clippy::unnecessary_wraps, reason = "it is what a handler gives")]
pub(crate) fn text(text: &str) -> Answered {
    Ok(with_body(text.to_owned()))
}

pub(crate) fn status(code: u16) -> Answered {
    let mut answer = with_body("");
    *answer.status_mut() = StatusCode::from_u16(code)?;
    Ok(answer)
}

/// A body of these frames, whose length is not known before its end.
pub(crate) fn frames<S>(frames: S) -> Answer
where
    S: futures_util::Stream<Item = Result<Frame<Bytes>, BoxError>> + Send + 'static,
{
    Response::new(BodyExt::boxed_unsync(StreamBody::new(frames)))
}

/// A body as some other service makes it.
pub(crate) fn of<B>(body: B) -> Answer
where
    B: Body<Data = Bytes, Error = BoxError> + Send + 'static,
{
    Response::new(body.boxed_unsync())
}

/// A message of a client that makes its own key.
pub(crate) fn keyed(key: &str, body: impl Into<Bytes>) -> Sent {
    post("/messages", &[("idempotency-key", key)], body)
}

pub(crate) fn post(path: &str, headers: &[(&str, &str)], body: impl Into<Bytes>) -> Sent {
    let mut request = Request::post(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Full::new(body.into())).unwrap()
}

pub(crate) const FORM: &[(&str, &str)] = &[("content-type", "application/x-www-form-urlencoded")];
pub(crate) const JSON: &[(&str, &str)] = &[("content-type", "application/json")];
