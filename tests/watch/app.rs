//! A channel whose messages say when they were sent, and a handler that does as it is told.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use tower::{BoxError, Layer, ServiceExt, service_fn};
use tower_idempotency::channel::{Channel, Concern, Reason, Refusal, Terms};
use tower_idempotency::store::Store;
use tower_idempotency::{BodyForm, Claimed, Delivery, IdempotencyLayer, Key, RequestBody};

/// The header `id` names the message, which was sent an hour ago; `bad` is no id.
pub(crate) struct Notes(pub(crate) Terms);

impl Notes {
    pub(crate) fn new() -> Self {
        let mut terms = Terms::client("notes");
        terms.compare = Some(BodyForm::Bytes);
        Self(terms)
    }
}

impl Channel for Notes {
    fn terms(&self, _head: &Parts) -> &Terms {
        &self.0
    }

    fn concern(&self, head: &Parts) -> Result<Concern, Refusal> {
        match head.headers.get("id").map(http::HeaderValue::as_bytes) {
            None => Ok(Concern::NoKey),
            Some(b"bad") => Err(Refusal::new(Reason::MalformedKey, "a bad id")),
            Some(_) => Ok(Concern::Read),
        }
    }

    fn deliveries(&self, head: &Parts, _body: &[u8]) -> Result<Vec<Delivery>, Refusal> {
        let id = head.headers["id"].to_str().unwrap();
        let sent_at = SystemTime::now() - Duration::from_hours(1);
        Ok(vec![Delivery::new(key(id)).sent_at(sent_at)])
    }
}

pub(crate) fn key(id: &str) -> Key {
    Key::new("notes", "alice", &[id])
}

/// Posts a message. The body tells the handler what to do: `slow` takes 100 s, `wait` 2 s, `fail`
/// fails; `effect` has one.
pub(crate) async fn post<S: Store>(
    layer: &IdempotencyLayer<S, Notes>,
    id: &str,
    body: &'static str,
) -> (StatusCode, Bytes) {
    let mut request = Request::post("/");
    if !id.is_empty() {
        request = request.header("id", id);
    }
    let request = request.body(Full::from(body)).unwrap();
    let answer = layer.layer(service_fn(handle)).oneshot(request).await;
    let answer = answer.unwrap();
    let status = answer.status();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (status, body)
}

async fn handle(
    request: Request<RequestBody<Full<Bytes>>>,
) -> Result<Response<Full<Bytes>>, BoxError> {
    let claimed = request.extensions().get::<Claimed>().cloned();
    let body = request.into_body().collect().await?.to_bytes();
    if let (b"effect", Some(claimed)) = (&body[..], claimed) {
        claimed.enqueue("notify", "ann")?;
    }
    tracing::info!("is handled");
    let (status, pause) = match &body[..] {
        b"slow" => (200, 100),
        b"wait" => (200, 2),
        b"fail" => (500, 0),
        b"cut" => (504, 0),
        _ => (200, 0),
    };
    tokio::time::sleep(Duration::from_secs(pause)).await;
    Ok(Response::builder().status(status).body(body.into())?)
}
