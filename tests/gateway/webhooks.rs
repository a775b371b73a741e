//! Each message reaches the upstream once.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::join_all;
use reqwest::StatusCode;
use tokio::time::sleep;

use crate::fixtures::{DELIVERIES, TEXT, messages};
use crate::gateway::Gateway;
use crate::upstream::Upstream;

#[tokio::test]
async fn whatsapp_redelivers_and_the_upstream_sees_each_message_once() {
    let upstream = Upstream::start().await;
    let gateway = Gateway::before(upstream.address).await;
    for body in DELIVERIES.iter().chain(&DELIVERIES) {
        // Twice at once, then again. Two groupings that meet are told to come back.
        let all = join_all([gateway.deliver(body), gateway.deliver(body)]).await;
        for answer in all {
            let status = answer.status();
            assert!(status.is_success(), "{status} {body}");
        }
        assert!(gateway.deliver(body).await.status().is_success());
    }
    let sent: BTreeSet<String> = DELIVERIES.iter().flat_map(|it| messages(it)).collect();
    let seen = upstream.seen().await;
    let seen: Vec<String> = seen.iter().flat_map(|it| messages(&it.body)).collect();
    let distinct: BTreeSet<String> = seen.iter().cloned().collect();
    assert_eq!(distinct, sent);
    assert_eq!(seen.len(), sent.len(), "{seen:#?}");
}

#[tokio::test]
async fn many_deliveries_at_once_are_one_request_to_a_slow_upstream() {
    let upstream = Upstream::start().await;
    let gateway = Gateway::before(upstream.address).await;
    let slow = [("x-do", "slow 0.5")];
    let all = (0..20).map(|_| gateway.deliver_with(TEXT, &slow));
    for answer in join_all(all).await {
        assert_eq!(answer.status(), StatusCode::CREATED);
    }
    assert_eq!(upstream.seen().await.len(), 1);
}

#[tokio::test]
async fn a_sender_without_the_secret_reaches_nobody() {
    let upstream = Upstream::start().await;
    let gateway = Gateway::before(upstream.address).await;
    for signature in ["", "sha256=00", "sha256="] {
        let forged = reqwest::Client::new()
            .post(gateway.url("/webhooks/whatsapp"))
            .header("x-hub-signature-256", signature)
            .body(TEXT);
        let answer = forged.send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
    }
    assert_eq!(upstream.seen().await.len(), 0);
    // The real one is not suppressed by them.
    assert!(gateway.deliver(TEXT).await.status().is_success());
    assert_eq!(upstream.seen().await.len(), 1);
}

#[tokio::test]
async fn a_delivery_that_the_upstream_failed_reaches_it_again() {
    let upstream = Upstream::start().await;
    let gateway = Gateway::before(upstream.address).await;
    let failed = gateway.deliver_with(TEXT, &[("x-do", "fail")]).await;
    assert_eq!(failed.status(), StatusCode::INTERNAL_SERVER_ERROR);
    for _ in 0..2 {
        assert!(gateway.deliver(TEXT).await.status().is_success());
    }
    assert_eq!(upstream.seen().await.len(), 2);
}

#[tokio::test]
async fn a_chat_client_that_sends_again_gets_the_first_answer() {
    let upstream = Upstream::start().await;
    let gateway = Gateway::before(upstream.address).await;
    let first = gateway.say("k", "hello", &[]).await;
    let second = gateway.say("k", "hello", &[]).await;
    assert_eq!(second.headers()["idempotency-replayed"], "true");
    assert_eq!(first.headers()["x-number"], second.headers()["x-number"]);
    assert_eq!(first.text().await.unwrap(), second.text().await.unwrap());
    let other = gateway.say("k", "something else", &[]).await;
    assert_eq!(other.status(), StatusCode::UNPROCESSABLE_ENTITY);
    let bob = gateway.say("k", "hello", &[("x-user", "bob")]).await;
    assert_eq!(bob.status(), StatusCode::BAD_REQUEST, "two scopes");
    let keyless = gateway.say("", "hello", &[]).await;
    assert_eq!(keyless.status(), StatusCode::BAD_REQUEST);
    assert_eq!(upstream.seen().await.len(), 1);
}

/// Field case P68.
#[tokio::test]
async fn an_upstream_that_is_down_or_hangs_leaves_the_key_free() {
    let gone = Upstream::start().await;
    let address = gone.address;
    drop(gone);
    let gateway = Gateway::before(address).await;
    let down = gateway.say("k", "hello", &[]).await;
    assert_eq!(down.status(), StatusCode::BAD_GATEWAY);
    let upstream = Upstream::start_at(address.port()).await;
    let hung = gateway.say("k", "hello", &[("x-do", "slow 10")]).await;
    assert_eq!(hung.status(), StatusCode::GATEWAY_TIMEOUT);
    let well = gateway.say("k", "hello", &[]).await;
    assert_eq!(well.status(), StatusCode::CREATED);
    assert!(!well.headers().contains_key("idempotency-replayed"));
    assert_eq!(upstream.seen().await.len(), 2);
}

#[tokio::test]
async fn any_sender_of_json_is_read_by_a_path() {
    let upstream = Upstream::start().await;
    let gateway = Gateway::with(&format!(
        r#"
        [[route]]
        path = "/shop"
        upstream = "http://{}"
        json_path = "$.events[*].id"
        name = "shop"
        unverified = true
        "#,
        upstream.address
    ))
    .await;
    let post = async |body: &str| {
        let request = reqwest::Client::new().post(gateway.url("/shop/hook"));
        let answer = request.body(body.to_owned()).send().await.unwrap();
        assert!(answer.status().is_success());
    };
    post(r#"{"events": [{"id": 1}, {"id": 2}]}"#).await;
    post(r#"{"events": [{"id": 2}, {"id": 3}]}"#).await;
    let seen = upstream.seen().await;
    let bodies: Vec<&str> = seen.iter().map(|it| it.body.as_str()).collect();
    assert_eq!(
        bodies,
        [
            r#"{"events": [{"id": 1}, {"id": 2}]}"#,
            r#"{"events": [ {"id": 3}]}"#
        ]
    );
    let elsewhere = reqwest::get(gateway.url("/elsewhere")).await.unwrap();
    assert_eq!(elsewhere.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_counts_are_told_by_route() {
    let upstream = Upstream::start().await;
    let gateway = Gateway::before(upstream.address).await;
    for _ in 0..3 {
        gateway.deliver(TEXT).await;
    }
    let url = format!("http://{}/metrics", gateway.metrics);
    let text = reqwest::get(url).await.unwrap().text().await.unwrap();
    for line in [
        "idempotency_runs_total{route=\"/webhooks/whatsapp\"} 1",
        "idempotency_replayed_total{route=\"/webhooks/whatsapp\"} 2",
        "idempotency_runs_total{route=\"/chat\"} 0",
    ] {
        assert!(text.lines().any(|it| it == line), "{line} in {text}");
    }
}

/// Ack first: the sender has its answer while the upstream is busy, or down; the upstream gets each
/// message by itself, again until it succeeds, and not again after a restart of the gateway.
#[tokio::test]
async fn a_route_can_acknowledge_first() {
    let upstream = Upstream::start().await;
    let route = format!(
        r#"
        [[route]]
        path = "/shop"
        upstream = "http://{}"
        json_path = "$.events[*].id"
        name = "shop"
        unverified = true
        mode = "ack-first"
        "#,
        upstream.address
    );
    let gateway = Gateway::with(&route).await;
    let post = async |gateway: &Gateway, body: &str| {
        let request = reqwest::Client::new().post(gateway.url("/shop/hook"));
        let answer = request.body(body.to_owned()).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
        assert_eq!(answer.text().await.unwrap(), "");
    };
    let address = upstream.address;
    drop(upstream);
    post(&gateway, r#"{"events": [{"id": 1}, {"id": 2}]}"#).await;
    post(&gateway, r#"{"events": [{"id": 2}, {"id": 3}]}"#).await;
    let upstream = Upstream::start_at(address.port()).await;
    while upstream.seen().await.len() < 3 {
        sleep(Duration::from_millis(50)).await;
    }
    gateway.terminate().await;
    let (status, folder) = gateway.ended().await;
    assert!(status.success());
    let gateway = Gateway::again(folder).await;
    post(&gateway, r#"{"events": [{"id": 1}, {"id": 2}, {"id": 3}]}"#).await;
    let url = format!("http://{}/metrics", gateway.metrics);
    let text = reqwest::get(url).await.unwrap().text().await.unwrap();
    let line = "inbox_repeats_of_done_total{route=\"/shop\"} 3";
    assert!(text.lines().any(|it| it == line), "{text}");
    let seen = upstream.seen().await;
    let bodies: BTreeSet<&str> = seen.iter().map(|it| it.body.as_str()).collect();
    let alone = [
        r#"{"events": [ {"id": 3}]}"#,
        r#"{"events": [ {"id": 2}]}"#,
        r#"{"events": [{"id": 1} ]}"#,
    ];
    assert_eq!((bodies, seen.len()), (BTreeSet::from(alone), 3));
}
