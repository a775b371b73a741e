//! A "yes" that is delivered again orders once. Without the layer it orders again, or answers the
//! next question.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::json;
use tokio::join;
use tokio::time::sleep;

use crate::http::{self, Response};
use crate::server::Server;
use crate::whatsapp;

const QUESTION: &str = "Which delivery slot would you like?";

#[tokio::test]
async fn a_whatsapp_yes_delivered_three_times_orders_once() {
    let server = Server::start(&[]).await;
    let replies = order_by_whatsapp(&server).await;
    assert_eq!(server.count("orders").await, 1);
    assert_eq!(questions(&server, "whatsapp:15550102222").await, 1);
    assert_eq!(replies, vec![200, 200, 200]);
}

#[tokio::test]
async fn without_the_layer_the_same_yes_orders_twice_and_asks_again() {
    let server = Server::start(&[("UNPROTECTED", "1")]).await;
    order_by_whatsapp(&server).await;
    assert_eq!(server.count("orders").await, 2);
    assert_eq!(questions(&server, "whatsapp:15550102222").await, 3);
}

/// The number whose bot is slow: each delivery is acknowledged without its reply, and the bot runs
/// behind, in order, once per message, also through a kill.
#[tokio::test]
async fn a_slow_bot_is_acknowledged_first_and_orders_once() {
    let mut server = Server::start(&[("BOT_DELAY_MS", "300"), ("LEASE_MS", "1000")]).await;
    for (id, text) in [("wamid.1", "order"), ("wamid.2", "yes"), ("wamid.2", "yes")] {
        acknowledge(&server, id, text).await;
    }
    server.kill().await;
    server.restart().await;
    acknowledge(&server, "wamid.2", "yes").await;
    while server.count("orders").await == 0 {
        sleep(Duration::from_millis(20)).await;
    }
    acknowledge(&server, "wamid.2", "yes").await;
    assert!(server.interrupt().await.success());
    server.restart().await;
    assert_eq!(server.count("orders").await, 1);
    assert_eq!(questions(&server, "whatsapp:15550102222").await, 1);
}

async fn acknowledge(server: &Server, id: &str, text: &str) {
    let body = whatsapp::text(id, "15550102222", text);
    let answer = post(server.address(), "/inbox/whatsapp".to_owned(), body).await;
    assert_eq!((answer.status, answer.body.len()), (200, 0), "{id}");
}

#[tokio::test]
async fn a_telegram_yes_delivered_three_times_orders_once() {
    let server = Server::start(&[]).await;
    order_by_telegram(&server, "shop").await;
    assert_eq!(server.count("orders").await, 1);
    assert_eq!(questions(&server, "telegram:shop:42").await, 1);
}

#[tokio::test]
async fn the_same_update_id_at_two_bots_is_two_messages() {
    let server = Server::start(&[("DELAY_MS", "1")]).await;
    order_by_telegram(&server, "shop").await;
    order_by_telegram(&server, "other").await;
    assert_eq!(server.count("orders").await, 2);
}

/// "order", then a "yes" that is delivered twice at once and once more. Gives the statuses of the
/// three.
async fn order_by_whatsapp(server: &Server) -> Vec<u16> {
    let deliver = |id: &str, text: &str| {
        let body = whatsapp::text(id, "15550102222", text);
        post(server.address(), whatsapp::PATH.to_owned(), body)
    };
    deliver("wamid.1", "order").await;
    let (first, second) = join!(deliver("wamid.2", "yes"), deliver("wamid.2", "yes"));
    let third = deliver("wamid.2", "yes").await;
    [first, second, third].map(|answer| answer.status).to_vec()
}

async fn order_by_telegram(server: &Server, bot: &str) {
    let deliver = |id: u64, text: &str| {
        let body = json!({
            "update_id": id,
            "message": { "message_id": 7, "date": 1_749_416_383, "chat": { "id": 42 }, "text": text },
        });
        let path = format!("/webhooks/telegram/{bot}");
        post(server.address(), path, body.to_string())
    };
    deliver(1, "order").await;
    let answers = join!(deliver(2, "yes"), deliver(2, "yes"));
    let third = deliver(2, "yes").await;
    assert_eq!(answers.0.body, answers.1.body);
    assert_eq!(answers.0.body, third.body);
}

async fn post(address: SocketAddr, path: String, body: String) -> Response {
    let request = http::post(&path, &[], &body);
    http::exchange(address, &request).await.unwrap()
}

/// How often the bot has asked for the slot.
async fn questions(server: &Server, conversation: &str) -> usize {
    let messages = server.read(&format!("/chat/{conversation}/messages")).await;
    let messages = messages.as_array().unwrap();
    let asked = |message: &&serde_json::Value| message["text"] == QUESTION;
    messages.iter().filter(asked).count()
}
