//! What all handlers share, and how they fail.

use std::time::Duration;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use tower_idempotency::BoxError;

use crate::storage::Storage;

#[derive(Clone)]
pub(crate) struct App {
    pub(crate) storage: Storage,
    pub(crate) delay: Duration,
}

impl App {
    /// Stands for what takes time: a model that is asked, a payment.
    pub(crate) async fn work(&self) {
        tokio::time::sleep(self.delay).await;
    }
}

/// A handler's failure: 500, which the layer does not record, so that the repeat runs again.
pub(crate) struct Failure(BoxError);

impl From<BoxError> for Failure {
    fn from(error: BoxError) -> Self {
        Self(error)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        tracing::error!(error = %self.0, "a handler failed");
        StatusCode::INTERNAL_SERVER_ERROR.into_response()
    }
}
