//! The application: it handles messages, fails, takes its time, and kills its process.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use tokio::time::sleep;
use tower::{BoxError, Service};
use tower_idempotency::Claimed;
use tower_idempotency::inbox::{Failure, Received};
use tower_idempotency::store::Line;

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
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    pub(crate) takes: Duration,
    pub(crate) end: End,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    Success,
    Status500,
    Error,
    Panic,
    Never,
    Later(Duration),
    /// The process dies of it.
    Kill,
}

type Answer = Result<Response<Full<Bytes>>, BoxError>;

impl<B: Send + 'static> Service<Request<B>> for Handler {
    type Response = Response<Full<Bytes>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Answer> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let received = request.extensions().get::<Received>().cloned();
        let claimed = request.extensions().get::<Claimed>().cloned();
        Box::pin(self.clone().handle(received.unwrap(), claimed.unwrap()))
    }
}

impl Handler {
    async fn handle(self, received: Received, claimed: Claimed) -> Answer {
        let delivery = received.delivery();
        let message: usize = delivery.key().id().parse().unwrap();
        let line = Line::of_conversation(delivery.in_conversation().unwrap());
        let token = claimed.messages()[0].token();
        // A process that stands still may have lost its turn without knowing.
        if self.process.is_standing() {
            self.process.running().await;
        } else {
            self.world
                .begins(message, (line, token, received.attempt()));
        }
        let work = self.world.work();
        self.world.note(|| {
            let (process, attempt) = (self.process.number, received.attempt());
            format!("process {process} handles {message}, attempt {attempt}: {work:?}")
        });
        sleep(work.takes).await;
        self.process.running().await;
        let status = |code: StatusCode| Response::builder().status(code);
        match work.end {
            End::Success => {
                self.world.handled(message, token);
                Ok(Response::new(Full::default()))
            }
            End::Status500 => Ok(status(StatusCode::INTERNAL_SERVER_ERROR).body(Full::default())?),
            End::Error => Err("the handler failed".into()),
            End::Panic => std::panic::resume_unwind(Box::new("the handler panics")),
            End::Never => Ok(status(StatusCode::GONE)
                .extension(Failure::Never)
                .body(Full::default())?),
            End::Later(time) => Ok(status(StatusCode::OK)
                .extension(Failure::Later(time))
                .body(Full::default())?),
            End::Kill => {
                self.world.kill(self.process.number);
                std::future::pending().await
            }
        }
    }
}
