//! Cross-origin requests of browsers.

use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use tower_http::cors::{AllowOrigin, CorsLayer};

use crate::app::{layer, message, router, send};

/// Allows any origin by naming it.
fn cors() -> CorsLayer {
    CorsLayer::new()
        .allow_origin(AllowOrigin::mirror_request())
        .allow_methods([Method::POST])
        .allow_headers(["idempotency-key".parse().unwrap()])
}

fn preflight() -> Request<Body> {
    Request::options("/")
        .header("origin", "https://a.example")
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "idempotency-key")
        .body(Body::empty())
        .unwrap()
}

const ALLOWED: &str = "access-control-allow-origin";

/// Field case B35.
#[tokio::test]
async fn cors_outside_answers_each_origin_for_itself() {
    let layer = layer();
    let (router, runs) = router();
    let app = router.layer(layer.clone()).layer(cors());
    let allowed = send(&app, preflight()).await;
    assert_eq!(
        (allowed.status, layer.counts().without_key),
        (StatusCode::OK, 0)
    );
    for origin in ["https://a.example", "https://b.example"] {
        let seen = send(&app, message(&[("origin", origin)])).await;
        assert_eq!(seen.header(ALLOWED), origin);
    }
    assert_eq!(runs.count(), 1);
}

/// Field case B35.
#[tokio::test]
async fn cors_inside_allows_a_replay_to_nobody_rather_than_to_the_wrong_origin() {
    let (router, runs) = router();
    let app = router.layer(cors()).layer(layer());
    assert_eq!(send(&app, preflight()).await.status, StatusCode::OK);
    let first = send(&app, message(&[("origin", "https://a.example")])).await;
    assert_eq!(first.header(ALLOWED), "https://a.example");
    let second = send(&app, message(&[("origin", "https://b.example")])).await;
    assert!(second.is_replayed());
    assert_eq!((second.header(ALLOWED), runs.count()), ("", 1));
}
