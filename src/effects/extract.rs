//! [`Claimed`] as an argument of axum's handlers.

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;

use crate::claimed::Claimed;

/// 500 where a request reaches the handler without a key: the layer is not mounted over this route,
/// or lets such requests pass. Ask for `Option<Claimed>` where both come.
impl<S: Sync> FromRequestParts<S> for Claimed {
    type Rejection = (StatusCode, &'static str);

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        let claimed = parts.extensions.get::<Self>().cloned();
        claimed.ok_or((
            StatusCode::INTERNAL_SERVER_ERROR,
            "the request runs without a claim: there is no IdempotencyLayer over this route, or \
             the request has no key",
        ))
    }
}

impl<S: Sync> axum::extract::OptionalFromRequestParts<S> for Claimed {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Option<Self>, Self::Rejection> {
        Ok(parts.extensions.get::<Self>().cloned())
    }
}
