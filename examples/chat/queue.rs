//! A second WhatsApp number, whose bot takes its time: the webhook is acknowledged first, and the
//! bot runs from a queue.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::routing::post;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tower_idempotency::BoxError;
use tower_idempotency::channel::WhatsApp;
use tower_idempotency::inbox::{Front, Inbox};
use tower_idempotency::store::BoxStore;

use crate::app::App;
use crate::config::Config;
use crate::webhooks;

/// The path, as the front sees it and as the bot does.
const PATH: &str = "/inbox/whatsapp";

/// How long the bot may go on with what it is handling at the end.
const STOP: Duration = Duration::from_secs(20);

/// The worker behind the queue.
pub(crate) struct Queue {
    worker: JoinHandle<()>,
    stop: oneshot::Sender<()>,
}

impl Queue {
    /// The routes of the number, and its worker. Without a store, the bot answers in line.
    pub(crate) fn start(
        app: App,
        config: &Config,
        store: Option<BoxStore>,
    ) -> Result<(Router, Option<Self>), BoxError> {
        let slow = App {
            delay: config.bot_delay,
            ..app
        };
        let bot = Router::new()
            .route(PATH, post(webhooks::whatsapp))
            .with_state(slow);
        let Some(store) = store else {
            return Ok((bot, None));
        };
        let mut inbox = Inbox::new(store, WhatsApp::unverified())
            .lease(config.lease)
            .stop_limit(STOP);
        if config.database_url.as_deref() == Some("memory:") {
            // Whoever asks for it has accepted that what waits goes with the process.
            inbox = inbox.may_lose_waiting();
        }
        let (front, worker): (Front<_, _, _, Body>, _) = inbox.wrap(bot)?;
        let (stop, stopped) = oneshot::channel::<()>();
        #[expect(clippy::disallowed_methods, reason = "the application spawns")]
        let worker = tokio::spawn(worker.run_until(async { drop(stopped.await) }));
        let routes = Router::new().route_service(PATH, front);
        Ok((routes, Some(Self { worker, stop })))
    }

    /// Finishes what is being handled; the rest waits for the next start.
    pub(crate) async fn end(self) -> Result<(), BoxError> {
        drop(self.stop);
        Ok(self.worker.await?)
    }
}
