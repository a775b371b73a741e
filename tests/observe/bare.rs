//! A service that does as its request says and tells all that it was given, and what comes out of
//! it with and without a layer.

use std::fmt::Write;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use tokio::time::{Instant, sleep};
use tower::{BoxError, Layer, Service, ServiceExt, service_fn};
use tower_idempotency::channel::{IdempotencyKey, Scope};
use tower_idempotency::{Claimed, Disposition, IdempotencyLayer};

use crate::store::Moody;

pub(crate) type Given = UnsyncBoxBody<Bytes, BoxError>;
pub(crate) type Observing = IdempotencyLayer<Moody, IdempotencyKey>;

/// A layer that only looks.
pub(crate) fn observing(store: &Moody) -> Observing {
    let channel = IdempotencyKey::scoped_by(Scope::header("x-user"));
    IdempotencyLayer::new(store.clone(), channel)
        .max_request(64)
        .max_response(1024)
        .observe_only()
}

/// All that a caller can tell about an answer.
#[derive(Debug, PartialEq)]
pub(crate) struct Told {
    head: Option<(u16, HeaderMap)>,
    hint: Option<(u64, Option<u64>, bool)>,
    frames: Vec<Result<Bytes, String>>,
    trailers: Option<HeaderMap>,
    fault: Option<String>,
    took: Duration,
}

/// What a request sends: its key, and the frames of its body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) key: &'static str,
    pub(crate) frames: &'static [&'static str],
}

impl Sent {
    pub(crate) fn new(key: &'static str, frames: &'static [&'static str]) -> Self {
        Self { key, frames }
    }

    fn request(self) -> Request<Given> {
        let mut request = Request::post("/messages").header("x-user", "alice");
        for key in self.key.split(',').filter(|key| !key.is_empty()) {
            request = request.header("idempotency-key", key);
        }
        let cut = || Err::<_, BoxError>("the connection is lost".into());
        let frames = self.frames.iter().map(move |part| match *part {
            "CUT" => cut(),
            part => Ok(Frame::data(Bytes::from(part))),
        });
        let body = match self.frames {
            [only] => Full::from(*only).map_err(Into::into).boxed_unsync(),
            _ => StreamBody::new(stream::iter(frames)).boxed_unsync(),
        };
        request.body(body).unwrap()
    }

    /// Sends it to the service alone.
    pub(crate) async fn alone(self) -> Told {
        told(service_fn(handle), self).await
    }

    /// Sends it to the service behind a layer.
    pub(crate) async fn through(self, layer: &Observing) -> Told {
        told(layer.layer(service_fn(handle)), self).await
    }
}

async fn told<S, R>(service: S, sent: Sent) -> Told
where
    S: Service<Request<Given>, Response = Response<R>, Error = BoxError>,
    R: Body<Data = Bytes> + Unpin,
    R::Error: Into<BoxError>,
{
    let began = Instant::now();
    let mut told = Told {
        head: None,
        hint: None,
        frames: Vec::new(),
        trailers: None,
        fault: None,
        took: Duration::ZERO,
    };
    match service.oneshot(sent.request()).await {
        Err(error) => told.fault = Some(error.to_string()),
        Ok(response) => {
            let (parts, mut body) = response.into_parts();
            assert!(parts.extensions.get::<Claimed>().is_none());
            told.head = Some((parts.status.as_u16(), parts.headers));
            let hint: SizeHint = body.size_hint();
            told.hint = Some((hint.lower(), hint.upper(), body.is_end_stream()));
            while let Some(frame) = body.frame().await {
                match frame.map(Frame::into_data) {
                    Ok(Ok(data)) => told.frames.push(Ok(data)),
                    Ok(Err(frame)) => told.trailers = frame.into_trailers().ok(),
                    Err(error) => told.frames.push(Err(error.into().to_string())),
                }
            }
        }
    }
    told.took = began.elapsed();
    told
}

/// Answers with all that it was given; the first word of the body says what else it does.
async fn handle<B>(request: Request<B>) -> Result<Response<Given>, BoxError>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    let (head, mut body) = request.into_parts();
    let hint = body.size_hint();
    let mut given = format!(
        "{:?} {:?} {hint:?} {}",
        head.uri,
        head.headers,
        head.extensions.len()
    );
    let mut word = String::new();
    while let Some(frame) = body.frame().await {
        let data = frame.map_err(Into::into)?.into_data().unwrap_or_default();
        let text = String::from_utf8_lossy(&data).into_owned();
        write!(given, " [{text}]")?;
        if word.is_empty() {
            word = text;
        }
        if word == "leaves the rest" {
            break;
        }
    }
    let whole = |text: String| Full::from(text).map_err(Into::into).boxed_unsync();
    let answer = Response::builder()
        .header("set-cookie", "a=1")
        .header("x-given", given.len());
    Ok(match word.as_str() {
        "wait" => {
            sleep(Duration::from_secs(2)).await;
            answer.body(whole(given))?
        }
        "fail" => answer.status(500).body(whole(given))?,
        "not handled" => answer.extension(Disposition::Release).body(whole(given))?,
        "error" => return Err("the handler has failed".into()),
        "large" => answer.body(whole("x".repeat(4096)))?,
        "empty" => answer.status(204).body(whole(String::new()))?,
        "stream" | "break" => {
            let mut trailers = HeaderMap::new();
            trailers.insert("x-end", "1".parse()?);
            let last = if word == "break" {
                Err("it breaks".into())
            } else {
                Ok(Frame::trailers(trailers))
            };
            let frames = [
                Ok(Frame::data(given.into())),
                Ok(Frame::data("more".into())),
                last,
            ];
            answer.body(StreamBody::new(stream::iter(frames)).boxed_unsync())?
        }
        _ => answer.status(201).body(whole(given))?,
    })
}
