//! The application: it handles messages, fails, takes its time.

use std::convert::Infallible;
use std::fmt;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use tokio::time::sleep;
use tower::Service;
use tower_idempotency::store::Token;
use tower_idempotency::{Claimed, Disposition, Key};

use crate::line::Ground;
use crate::process::Process;
use crate::world::World;

/// One process's application.
#[derive(Clone)]
pub(crate) struct Handler {
    pub(crate) world: Arc<World>,
    pub(crate) process: Arc<Process>,
}

/// How one call of the handler goes.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) takes: Duration,
    pub(crate) end: End,
    /// Whether one message of several is given back.
    pub(crate) gives_one_back: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Success,
    /// The success is sent in pieces, with time between them.
    Pieces(Duration),
    Status500,
    Error,
    Panic,
}

/// The handler's own error.
#[derive(Debug)]
pub(crate) struct Failed;

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the handler failed")
    }
}

impl std::error::Error for Failed {}

pub(crate) type Body = UnsyncBoxBody<Bytes, Infallible>;

impl<B: Send + 'static> Service<Request<B>> for Handler {
    type Response = Response<Body>;
    type Error = Failed;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Failed>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Failed>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let claimed = request.extensions().get::<Claimed>().cloned();
        Box::pin(self.clone().handle(claimed))
    }
}

impl Handler {
    async fn handle(self, claimed: Option<Claimed>) -> Result<Response<Body>, Failed> {
        let Some(claimed) = claimed else {
            self.world.breaks("a request ran without a claim");
            return Err(Failed);
        };
        let run = self.world.begins();
        let work = self.world.work(claimed.messages().len());
        self.world
            .note(|| format!("process {} runs {run}: {work:?}", self.process.number));
        self.process.running().await;
        sleep(work.takes).await;
        self.process.running().await;
        match work.end {
            End::Success | End::Pieces(_) => {}
            End::Status500 => return Ok(answer(500, Bytes::new())),
            End::Error => return Err(Failed),
            End::Panic => resume_unwind(Box::new(Failed)),
        }
        let mut done: Vec<(Key, Token)> = Vec::new();
        for (at, message) in claimed.messages().iter().enumerate() {
            if at == 0 && work.gives_one_back {
                claimed.settle(message.key(), Disposition::Release);
            } else {
                done.push((message.key().clone(), message.token()));
            }
        }
        let body = Bytes::from(format!("run {run}"));
        match work.end {
            End::Pieces(pause) => Ok(self.in_pieces(body, pause, done)),
            End::Success | End::Status500 | End::Error | End::Panic => {
                self.world.handled(&done);
                Ok(answer(200, body))
            }
        }
    }

    /// The messages are handled when the last piece is out.
    fn in_pieces(self, body: Bytes, pause: Duration, done: Vec<(Key, Token)>) -> Response<Body> {
        let pieces = stream::unfold(
            (self, Some((body, done))),
            move |(handler, left)| async move {
                let (mut body, done) = left?;
                handler.process.running().await;
                sleep(pause).await;
                handler.process.running().await;
                let piece = body.split_to(body.len() / 2 + 1);
                let left = if body.is_empty() {
                    handler.world.handled(&done);
                    None
                } else {
                    Some((body, done))
                };
                Some((Ok(Frame::data(piece)), (handler, left)))
            },
        );
        Response::new(StreamBody::new(pieces).boxed_unsync())
    }
}

fn answer(status: u16, body: Bytes) -> Response<Body> {
    let mut answer = Response::new(Full::new(body).boxed_unsync());
    *answer.status_mut() = http::StatusCode::from_u16(status).unwrap();
    answer
}
