//! Proves over real sockets what becomes of a WhatsApp request with several messages: those that
//! are done or run elsewhere are cut out, the rest runs, and the sender is told to come again
//! until all are done, however it groups them.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]
#![expect(
    clippy::disallowed_methods,
    reason = "a test owns the tasks that it spawns"
)]

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Extension, Router};
use reqwest::Response;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tower_idempotency::channel::WhatsApp;
use tower_idempotency::store::MemoryStore;
use tower_idempotency::{Claimed, Disposition, IdempotencyLayer, Message};

/// What the handler was given, run by run, and what it waits for.
#[derive(Clone, Default)]
struct Shop {
    runs: Arc<Mutex<Vec<Vec<String>>>>,
    bodies: Arc<Mutex<Vec<String>>>,
    go_on: Arc<Notify>,
}

/// Takes its time over a message called `slow`, and gives one called `late` back the first time.
async fn handle(
    State(shop): State<Shop>,
    Extension(claimed): Extension<Claimed>,
    body: String,
) -> StatusCode {
    let ids = ids_in(&body);
    let is_late = |it: &&Message| it.key().id() == "wamid.late";
    let first = |run: &Vec<String>| !run.iter().any(|id| id == "wamid.late");
    if let Some(late) = claimed.messages().iter().find(is_late)
        && shop.runs.lock().unwrap().iter().all(first)
    {
        assert!(claimed.settle(late.key(), Disposition::Release));
    }
    let is_slow = ids.iter().any(|id| id == "wamid.slow");
    shop.runs.lock().unwrap().push(ids);
    shop.bodies.lock().unwrap().push(body);
    if is_slow {
        shop.go_on.notified().await;
    }
    StatusCode::OK
}

fn ids_in(body: &str) -> Vec<String> {
    let body: Value = serde_json::from_str(body).unwrap();
    let messages = body.pointer("/entry/0/changes/0/value/messages").unwrap();
    let messages = messages.as_array().unwrap().iter();
    messages
        .map(|message| message["id"].as_str().unwrap().to_owned())
        .collect()
}

async fn serve(wait: Duration) -> (SocketAddr, Shop) {
    let shop = Shop::default();
    let layer = IdempotencyLayer::new(MemoryStore::new(), WhatsApp::unverified()).wait(wait);
    let app = Router::new()
        .route("/", post(handle))
        .layer(layer)
        .with_state(shop.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(axum::serve(listener, app).into_future());
    (address, shop)
}

/// One request, with numbers, escapes and white space that a cut must leave alone.
fn body_of(names: &[&str]) -> String {
    let messages: Vec<String> = names
        .iter()
        .map(|name| {
            format!(
                "{{ \"id\":\"wamid.{name}\", \"n\": 9007199254740993, \"text\": {{\"body\":\"\\u00e9 {name}\"}} }}"
            )
        })
        .collect();
    format!(
        "{{\"object\": \"whatsapp_business_account\",\n \"entry\": [{{\"id\": \"1\", \"changes\": [{{\"field\": \
         \"messages\", \"value\": {{\"messages\": [{}], \"metadata\": {{\"phone_number_id\": \"106\"}}}}}}]}}]}}",
        messages.join(", ")
    )
}

async fn deliver(address: SocketAddr, names: &[&str]) -> Response {
    let request = reqwest::Client::new().post(format!("http://{address}/"));
    let request = request
        .header("content-type", "application/json")
        .body(body_of(names));
    request.send().await.unwrap()
}

async fn until_runs(shop: &Shop, count: usize) {
    while shop.runs.lock().unwrap().len() < count {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn of_five_messages_two_are_done_one_runs_elsewhere_and_two_run() {
    let (address, shop) = serve(Duration::from_millis(100)).await;
    assert_eq!(deliver(address, &["a", "b"]).await.status(), 200);
    let slow = tokio::spawn(async move { deliver(address, &["slow"]).await.status() });
    until_runs(&shop, 2).await;

    let mixed = deliver(address, &["a", "c", "slow", "b", "d"]).await;
    assert_eq!(mixed.status(), 503);
    assert!(mixed.headers().contains_key("retry-after"));
    let given = shop.bodies.lock().unwrap().last().unwrap().clone();
    // What stood between the elements stays as well.
    let expected = body_of(&["c", "d"]).replace("[{ \"id", "[ { \"id");
    let expected = expected.replace("}, { \"id", "},   { \"id");
    assert_eq!(given, expected, "other bytes changed");

    // Regrouped: everything but the slow one is done.
    assert_eq!(deliver(address, &["d", "a"]).await.status(), 200);
    let repeat = deliver(address, &["slow", "c"]).await;
    assert_eq!(repeat.status(), 503);
    shop.go_on.notify_waiters();
    assert_eq!(slow.await.unwrap(), 200);
    let all = deliver(address, &["b", "slow", "a", "c", "d"]).await;
    assert_eq!(all.status(), 200);
    assert!(all.headers().contains_key("idempotency-replayed"));

    let runs = shop.runs.lock().unwrap().clone();
    let expected = [
        vec!["wamid.a", "wamid.b"],
        vec!["wamid.slow"],
        vec!["wamid.c", "wamid.d"],
    ];
    assert_eq!(runs, expected);
}

/// Field case B60.
#[tokio::test]
async fn of_three_messages_two_are_handled_and_only_the_third_comes_back() {
    let (address, shop) = serve(Duration::from_millis(100)).await;
    let first = deliver(address, &["a", "late", "b"]).await;
    assert_eq!(first.status(), 503, "the sender must come back");
    // Together with one that is new.
    let again = deliver(address, &["b", "late", "c", "a"]).await;
    assert_eq!(again.status(), 200);
    assert_eq!(
        deliver(address, &["late", "a", "b", "c"]).await.status(),
        200
    );
    let runs = shop.runs.lock().unwrap().clone();
    let expected = [
        vec!["wamid.a", "wamid.late", "wamid.b"],
        vec!["wamid.late", "wamid.c"],
    ];
    assert_eq!(runs, expected);
}

#[tokio::test]
async fn a_message_that_is_twice_in_a_request_is_one_and_does_not_wait_for_itself() {
    let (address, shop) = serve(Duration::from_mins(1)).await;
    let began = tokio::time::Instant::now();
    assert_eq!(deliver(address, &["a", "b", "a"]).await.status(), 200);
    assert_eq!(deliver(address, &["a"]).await.status(), 200);
    assert!(began.elapsed() < Duration::from_secs(30));
    assert_eq!(shop.runs.lock().unwrap().len(), 1);
}
