//! Compression of requests, and limits on them.

use std::time::Duration;

use axum::body::Body;
use axum::http::StatusCode;
use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use http_body_util::BodyExt;
use tower::{Layer, ServiceExt, service_fn};
use tower_http::compression::Compression;
use tower_http::decompression::RequestDecompressionLayer;
use tower_http::limit::RequestBodyLimitLayer;
use tower_http::timeout::RequestBodyTimeoutLayer;
use tower_idempotency::IdempotencyLayer;
use tower_idempotency::channel::JsonPath;
use tower_idempotency::store::MemoryStore;

use crate::app::{TEXT, layer, message, router, send, with_body};

/// Compresses a text fifty times over, by asking a compressing server for it.
async fn gzip(text: &'static str) -> Bytes {
    compressed(text.repeat(50)).await
}

async fn compressed(text: String) -> Bytes {
    let plain = service_fn(move |_| {
        let text = text.clone();
        async { Ok::<_, std::convert::Infallible>(http::Response::new(Body::from(text))) }
    });
    let request = message(&[("accept-encoding", "gzip")]);
    let answer = Compression::new(plain).oneshot(request).await.unwrap();
    assert_eq!(answer.headers()["content-encoding"], "gzip");
    answer.into_body().collect().await.unwrap().to_bytes()
}

const GZIPPED: &[(&str, &str)] = &[("content-encoding", "gzip")];

#[tokio::test]
async fn decompression_outside_makes_a_message_the_same_however_it_was_sent() {
    let (router, runs) = router();
    let app = router
        .layer(layer())
        .layer(RequestDecompressionLayer::new());
    let first = send(&app, with_body(GZIPPED, gzip(TEXT).await)).await;
    let second = send(&app, with_body(&[], TEXT.repeat(50))).await;
    assert!(second.is_replayed());
    assert_eq!(first.text(), TEXT.repeat(2500));
    assert_eq!((second.text(), runs.count()), (first.text(), 1));
}

#[tokio::test]
async fn decompression_inside_compares_and_verifies_what_was_sent() {
    let (router, runs) = router();
    let app = router
        .layer(RequestDecompressionLayer::new())
        .layer(layer());
    let first = send(&app, with_body(GZIPPED, gzip(TEXT).await)).await;
    assert_eq!(first.text(), TEXT.repeat(2500));
    assert!(
        send(&app, with_body(GZIPPED, gzip(TEXT).await))
            .await
            .is_replayed()
    );
    let second = send(&app, with_body(&[], TEXT.repeat(50))).await;
    assert_eq!(second.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(runs.count(), 1);
}

/// A webhook's id is read where the body is decompressed in front of the layer, and the limit
/// counts what comes out. Behind it the body has no id, and passes as such.
///
/// Field case B100.
#[tokio::test]
async fn a_compressed_webhook_is_read_where_it_is_decompressed_first() {
    let hook = JsonPath::new("hook", "$.id").unwrap().unverified();
    let layer = IdempotencyLayer::new(MemoryStore::new(), hook);
    let (router, runs) = router();
    let outside = router
        .clone()
        .layer(layer.clone())
        .layer(RequestDecompressionLayer::new());
    let padded = |length| format!("{{\"id\":7{}}}", " ".repeat(length));
    let small = compressed(padded(1000)).await;
    for is_replayed in [false, true] {
        let seen = send(&outside, with_body(GZIPPED, small.clone())).await;
        assert_eq!(
            (seen.status.as_u16(), seen.is_replayed()),
            (201, is_replayed)
        );
    }
    let bomb = compressed(padded(64 << 20)).await;
    assert!(bomb.len() < 1 << 20, "it is no bomb");
    let seen = send(&outside, with_body(GZIPPED, bomb)).await;
    assert_eq!(
        (seen.status, runs.count()),
        (StatusCode::PAYLOAD_TOO_LARGE, 1)
    );
    let inside = router
        .layer(RequestDecompressionLayer::new())
        .layer(layer.clone());
    for run in 2..=3 {
        let seen = send(&inside, with_body(GZIPPED, small.clone())).await;
        assert_eq!((seen.status.as_u16(), runs.count()), (201, run));
    }
    assert_eq!(layer.counts().without_key, 2);
}

/// A thousand bytes of no announced length.
fn unsized_body() -> Body {
    let part = Bytes::from_static(&[b'x'; 100]);
    let parts = stream::iter(std::iter::repeat_n(part, 10));
    Body::from_stream(parts.map(Ok::<_, std::io::Error>))
}

#[tokio::test]
async fn a_body_limit_outside_is_a_413_and_never_a_broken_message() {
    let layer = layer();
    let (router, runs) = router();
    let app = router
        .layer(layer.clone())
        .layer(RequestBodyLimitLayer::new(300));
    let announced = with_body(&[("content-length", "1000")], "x".repeat(1000));
    assert_eq!(
        send(&app, announced).await.status,
        StatusCode::PAYLOAD_TOO_LARGE
    );
    let refused = send(&app, with_body(&[], unsized_body())).await;
    assert_eq!(refused.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert!(
        refused.text().contains("request-too-large"),
        "{}",
        refused.text()
    );
    assert_eq!((runs.count(), layer.counts().runs), (0, 0));
}

#[tokio::test]
async fn a_body_limit_inside_is_an_answer_of_the_handler_and_frees_the_key() {
    let layer = layer();
    let (router, runs) = router();
    let app = router
        .layer(RequestBodyLimitLayer::new(300))
        .layer(layer.clone());
    for _ in 0..2 {
        let refused = send(&app, with_body(&[], unsized_body())).await;
        assert_eq!(refused.status, StatusCode::PAYLOAD_TOO_LARGE);
    }
    assert_eq!((runs.count(), layer.counts().released), (0, 2));
}

#[tokio::test(start_paused = true)]
async fn a_time_limit_on_bodies_outside_claims_nothing_and_inside_there_is_nothing_to_wait_for() {
    let (outside, inside) = (layer(), layer());
    let limit = RequestBodyTimeoutLayer::new(Duration::from_secs(1));
    let (router, runs) = router();
    let outer = router.clone().layer(outside.clone()).layer(limit.clone());
    let inner = router.layer(limit).layer(inside.clone());
    let late = || {
        let part = stream::once(async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            Ok::<_, std::io::Error>(Bytes::from(TEXT))
        });
        with_body(&[], Body::from_stream(part))
    };
    let cut = send(&outer, late()).await;
    assert_eq!(cut.status, StatusCode::BAD_REQUEST);
    assert!(cut.text().contains("body-cut"), "{}", cut.text());
    assert_eq!((runs.count(), outside.counts().runs), (0, 0));
    assert_eq!(send(&inner, late()).await.status, StatusCode::CREATED);
    assert_eq!(runs.count(), 1);
}

#[tokio::test]
async fn a_body_of_another_type_is_boxed_between_the_layers() {
    let service = service_fn(|request: http::Request<Body>| async {
        let body = request.into_body().collect().await?.to_bytes();
        Ok::<_, axum::Error>(http::Response::new(Body::from(body)))
    });
    let boxed = tower_http::map_request_body::MapRequestBodyLayer::new(Body::new);
    let service = layer().layer(boxed.layer(service));
    let answer = service.oneshot(message(&[])).await.unwrap();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, TEXT);
}
