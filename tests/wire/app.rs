//! A service that answers as the request's `x-answer` says, whatever server it stands behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body::{Body, Frame};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use tokio::sync::Notify;
use tokio::time::sleep;
use tower_idempotency::BoxError;

pub(crate) type Answer = Response<UnsyncBoxBody<Bytes, BoxError>>;

/// Counts its runs.
#[derive(Clone, Default)]
pub(crate) struct App {
    pub(crate) runs: Arc<AtomicU64>,
    /// Lets what waits for it go on.
    pub(crate) go: Arc<Notify>,
    /// What is done while an answer that says so is made.
    pub(crate) aside: Option<Arc<dyn Fn() + Send + Sync>>,
}

impl App {
    pub(crate) fn runs(&self) -> u64 {
        self.runs.load(Ordering::SeqCst)
    }

    pub(crate) async fn answer<B>(self, request: Request<B>) -> Answer
    where
        B: Body<Data = Bytes>,
        B::Error: Into<BoxError>,
    {
        let run = self.runs.fetch_add(1, Ordering::SeqCst) + 1;
        let (head, body) = request.into_parts();
        let Ok(body) = body.collect().await.map_err(Into::into) else {
            return status(400);
        };
        let trailers = body.trailers().cloned();
        let said = head.headers.get("x-answer");
        let said = said.map_or("", |said| said.to_str().unwrap()).to_owned();
        assert!(run > 1 || said != "panics first", "asked to panic");
        if let (true, Some(aside)) = (said.contains("aside"), &self.aside) {
            aside();
        }
        let mut answer = self.told(&said, body.to_bytes(), trailers).await;
        let run = HeaderValue::from(run);
        answer.headers_mut().insert("x-run", run);
        answer
    }

    async fn told(&self, said: &str, body: Bytes, trailers: Option<HeaderMap>) -> Answer {
        match said {
            "echo" => echo(&body, trailers.as_ref()),
            "slow" => {
                sleep(Duration::from_millis(300)).await;
                whole(b"at last")
            }
            "waits" => {
                self.go.notified().await;
                whole(b"at last")
            }
            "aside and streams" => Response::new(frames(vec![
                Frame::data("hello ".into()),
                Frame::data("back".into()),
            ])),
            // A response of trailers only, as gRPC calls it.
            "aside, by gRPC" => with(status(200), "grpc-status", "0"),
            "endless" => endless(),
            "empty stream" => Response::new(frames(Vec::new())),
            "binary" => whole(&(0..=255).collect::<Vec<u8>>()),
            "lines" => lines(),
            "chunks" => Response::new(frames(vec![
                Frame::data("a".into()),
                Frame::data("b".into()),
            ])),
            "trailers" => with_trailers(),
            "large" => whole(&vec![b'x'; 100_000]),
            "large stream" => {
                let part = || Frame::data(vec![b'x'; 50_000].into());
                Response::new(frames(vec![part(), part(), part()]))
            }
            "gated" => gated(Arc::clone(&self.go)),
            // Within the limit of the layer that it is asked through.
            "long stream" => {
                let part = || Frame::data(vec![b'x'; 1 << 20].into());
                Response::new(frames(std::iter::repeat_with(part).take(20).collect()))
            }
            "length of another" => {
                let mut answer = status(304);
                answer.headers_mut().insert("content-length", 1234.into());
                answer
            }
            "see other" => with(status(303), "location", "/elsewhere"),
            "cookie" => with(allowed(), "set-cookie", "session=1"),
            "coded" => with(whole(b"not really gzip"), "content-encoding", "gzip"),
            code => match code.parse() {
                Ok(code) => status(code),
                Err(_) => whole(b"hello back"),
            },
        }
    }
}

/// Two frames, the second of which is made when it is told to.
fn gated(go: Arc<Notify>) -> Answer {
    let second = stream::once(async move {
        go.notified().await;
        Ok(Frame::data("b".into()))
    });
    let both = stream::once(async { Ok(Frame::data("a".into())) }).chain(second);
    Response::new(StreamBody::new(both).boxed_unsync())
}

fn endless() -> Answer {
    let part = stream::repeat_with(|| Ok(Frame::data(vec![b'x'; 10_000].into())));
    let parts = part.then(|part| async {
        tokio::task::yield_now().await;
        part
    });
    Response::new(StreamBody::new(parts).boxed_unsync())
}

fn allowed() -> Answer {
    with(whole(b"hi"), "access-control-allow-origin", "https://a")
}

fn whole(body: &[u8]) -> Answer {
    let body = Full::new(Bytes::copy_from_slice(body));
    Response::new(body.map_err(|never| match never {}).boxed_unsync())
}

fn status(code: u16) -> Answer {
    let body = Empty::new().map_err(|never| match never {});
    let mut answer = Response::new(body.boxed_unsync());
    *answer.status_mut() = StatusCode::from_u16(code).unwrap();
    answer
}

fn with(mut answer: Answer, name: &'static str, value: &'static str) -> Answer {
    let value = HeaderValue::from_static(value);
    answer
        .headers_mut()
        .append(HeaderName::from_static(name), value);
    answer
}

/// A body of unknown length, each frame of which takes its time.
fn frames(frames: Vec<Frame<Bytes>>) -> UnsyncBoxBody<Bytes, BoxError> {
    let frames = stream::iter(frames).then(|frame| async {
        sleep(Duration::from_millis(20)).await;
        Ok(frame)
    });
    StreamBody::new(frames).boxed_unsync()
}

fn lines() -> Answer {
    let mut answer = whole(b"lines");
    let headers = answer.headers_mut();
    for (name, value) in [
        ("x-a", &b"1"[..]),
        ("x-b", b"caf\xe9"),
        ("x-a", b"2"),
        ("x-a", b"1"),
    ] {
        headers.append(name, HeaderValue::from_bytes(value).unwrap());
    }
    headers.append("x-empty", HeaderValue::from_static(""));
    answer
}

fn with_trailers() -> Answer {
    let mut trailers = HeaderMap::new();
    trailers.insert("x-sum", HeaderValue::from_static("42"));
    let parts = vec![Frame::data("ab".into()), Frame::trailers(trailers)];
    with(Response::new(frames(parts)), "trailer", "x-sum")
}

/// Gives back what came, the trailers as header fields.
fn echo(body: &[u8], trailers: Option<&HeaderMap>) -> Answer {
    let mut answer = whole(body);
    for (name, value) in trailers.into_iter().flatten() {
        let name: HeaderName = format!("x-trailer-{name}").parse().unwrap();
        answer.headers_mut().append(name, value.clone());
    }
    answer
}
