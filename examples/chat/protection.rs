//! The layer: which channel speaks on which path, and where the keys are kept.

use std::time::Duration;

use axum::Router;
use tower_idempotency::channel::{ByPath, IdempotencyKey, Scope, Telegram, WhatsApp};
use tower_idempotency::store::{BoxStore, SqliteStore, connect};
use tower_idempotency::{BoxError, IdempotencyLayer};

use crate::config::Config;

/// The layer and its store; nothing in their place when the server is to show what they are there
/// for.
#[derive(Clone)]
pub(crate) struct Protection(Option<(IdempotencyLayer<BoxStore, ByPath>, BoxStore)>);

impl Protection {
    pub(crate) async fn new(config: &Config) -> Result<Self, BoxError> {
        if config.unprotected {
            return Ok(Self(None));
        }
        let store = match &config.database_url {
            Some(url) => connect(url).await?,
            None => BoxStore::new(SqliteStore::open(&config.db)?),
        };
        // A real server takes the user from its authentication, not from a header that anybody
        // can set: `Scope::extension`.
        let web_chat = IdempotencyKey::scoped_by(Scope::header("x-user"))
            .named("chat")
            .required();
        // Whoever can guess an id suppresses the real message: a real server checks who sends,
        // `WhatsApp::verified_by(MetaSignature::new(…))`. Here everybody may post.
        let channels = ByPath::new()
            .at("/chat", web_chat)
            .at("/webhooks/whatsapp", WhatsApp::unverified())
            .at(
                "/webhooks/telegram",
                Telegram::unverified(Scope::path_segment(2)),
            );
        let layer = IdempotencyLayer::new(store.clone(), channels).lease(config.lease);
        Ok(Self(Some((layer, store))))
    }

    /// The store, for the queue of the slow bot.
    pub(crate) fn store(&self) -> Option<BoxStore> {
        self.0.as_ref().map(|(_, store)| store.clone())
    }

    /// Mounts the layer around all routes, so that it sees each request first.
    pub(crate) fn around(&self, routes: Router) -> Router {
        match &self.0 {
            Some((layer, _)) => routes.layer(layer.clone()),
            None => routes,
        }
    }

    /// How many requests were answered from a record since the process began.
    pub(crate) fn replayed(&self) -> u64 {
        self.0
            .as_ref()
            .map_or(0, |(layer, _)| layer.counts().replayed)
    }

    /// Waits for runs whose callers have left.
    pub(crate) async fn drain(&self, limit: Duration) {
        let Some((layer, _)) = &self.0 else { return };
        let left = layer.drain(limit).await;
        if left > 0 {
            tracing::warn!(left, "runs are cut; their messages run again when repeated");
        }
    }
}
