//! The router for operators.

use axum::body::Body;
use http::{Method, Request, StatusCode};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;
use tower_idempotency::inbox::admin;

use crate::world::World;

async fn ask(world: &World, method: Method, uri: &str) -> (StatusCode, Value) {
    let request = Request::builder().method(method).uri(uri);
    let request = request.body(Body::empty()).unwrap();
    let response = admin(world.letters()).oneshot(request).await.unwrap();
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&body).unwrap_or_default())
}

#[tokio::test(start_paused = true)]
async fn dead_messages_are_shown_redriven_and_dropped() {
    let world = World::with(|inbox| inbox.attempts(1));
    for id in ["fail-1", "fail-2", "fail-3"] {
        world.deliver("a", id).await;
    }
    world.drained().await;
    let (status, dead) = ask(&world, Method::GET, "/dead").await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(dead.as_array().unwrap().len(), 3);
    let first = &dead[0];
    let shown = [
        "channel",
        "id",
        "conversation",
        "method",
        "uri",
        "attempts",
        "fault",
    ];
    assert_eq!(
        json!(shown.map(|field| first[field].clone())),
        json!([
            "hook",
            "fail-1",
            "a",
            "POST",
            "/hook?x=1",
            1,
            "answered 500 Internal Server Error: out of order"
        ])
    );
    let body: Value = serde_json::from_str(first["body"].as_str().unwrap()).unwrap();
    assert_eq!(body["messages"][0]["id"], "fail-1");
    assert!(first["received_at"].as_str().unwrap().ends_with('Z'));

    let death = first["death"].as_i64().unwrap();
    let page = ask(&world, Method::GET, &format!("/dead?after={death}&limit=1"))
        .await
        .1;
    assert_eq!(
        (page[0]["id"].clone(), page[1].clone()),
        (json!("fail-2"), Value::Null)
    );
    let redrive = format!("/dead/{death}/redrive");
    let once = ask(&world, Method::POST, &redrive).await;
    assert_eq!(once, (StatusCode::OK, json!({"redriven": 1})));
    assert_eq!(
        ask(&world, Method::POST, &redrive).await.0,
        StatusCode::NOT_FOUND
    );
    world.drained().await;
    assert_eq!(world.log.of("fail-1").len(), 2);

    let second = dead[1]["death"].as_i64().unwrap();
    let drop = format!("/dead/{second}");
    let once = ask(&world, Method::DELETE, &drop).await;
    assert_eq!(once, (StatusCode::OK, json!({"dropped": 1})));
    assert_eq!(
        ask(&world, Method::DELETE, &drop).await.0,
        StatusCode::NOT_FOUND
    );
    let all = ask(&world, Method::POST, "/dead/redrive").await;
    assert_eq!(all, (StatusCode::OK, json!({"redriven": 2})));
}

#[tokio::test(start_paused = true)]
async fn what_waits_is_shown_and_counted() {
    let world = World::new();
    world.deliver("a", "slow-1").await;
    world.deliver("a", "slow-2").await;
    let (_, waiting) = ask(&world, Method::GET, "/waiting?limit=5").await;
    assert_eq!(waiting[0]["id"], "slow-1");
    assert_eq!(waiting[1]["id"], "slow-2");
    assert_eq!(waiting[0]["death"], Value::Null);
    let (_, stats) = ask(&world, Method::GET, "/stats").await;
    assert_eq!(
        (
            stats["waiting"].clone(),
            stats["lines"].clone(),
            stats["dead"].clone()
        ),
        (json!(2), json!(1), json!(0))
    );
    assert!(stats["oldest_seconds"].as_f64().unwrap() < 60.0);
}

#[tokio::test]
async fn a_malformed_question_is_refused() {
    let world = World::new();
    for (method, uri) in [
        (Method::GET, "/dead?after=x"),
        (Method::GET, "/waiting?limit=-1"),
        (Method::POST, "/dead/x/redrive"),
    ] {
        let (status, _) = ask(&world, method, uri).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{uri}");
    }
}
