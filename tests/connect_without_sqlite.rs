//! Without the feature `sqlite`, a URL that asks for it is told which feature to enable.
#![cfg(not(feature = "sqlite"))]

use tower_idempotency::store::connect;

#[tokio::test]
async fn the_missing_feature_is_named() {
    let error = connect("sqlite:chat.db").await.unwrap_err();
    assert!(error.is_misconfigured(), "{error:?}");
    assert!(error.to_string().contains("feature `sqlite`"), "{error}");
}
