//! A repeat gets the first answer again, byte by byte.

use crate::http::{self, Response};
use crate::server::Server;

const PATH: &str = "/chat/1/messages";

#[tokio::test]
async fn a_replay_differs_from_the_first_answer_in_marker_and_date_only() {
    let server = Server::start(&[("DELAY_MS", "20")]).await;
    let first = send(&server, "7f0c", "hello").await;
    let repeat = send(&server, "7f0c", "hello").await;

    assert_eq!(first.status, 201);
    assert!(!first.is_replay() && repeat.is_replay());
    assert_eq!(first.body, repeat.body);
    assert_eq!(
        without_marker_and_date(&first),
        without_marker_and_date(&repeat)
    );
    assert_eq!(server.count("messages").await, 1);
    assert_eq!(server.count("replayed").await, 1);
}

#[tokio::test]
async fn a_replay_after_a_kill_and_restart_is_the_first_answer() {
    let mut server = Server::start(&[("DELAY_MS", "20")]).await;
    let first = send(&server, "7f0c", "hello").await;
    server.kill().await;
    server.restart().await;
    let repeat = send(&server, "7f0c", "hello").await;

    assert!(repeat.is_replay());
    assert_eq!(first.body, repeat.body);
    assert_eq!(
        without_marker_and_date(&first),
        without_marker_and_date(&repeat)
    );
    assert_eq!(server.count("messages").await, 1);
}

#[tokio::test]
async fn the_records_are_in_the_store_that_database_url_names() {
    let settings = [("DELAY_MS", "20"), ("DATABASE_URL", "memory:")];
    let mut server = Server::start(&settings).await;
    send(&server, "7f0c", "hello").await;
    assert!(send(&server, "7f0c", "hello").await.is_replay());
    server.kill().await;
    server.restart().await;

    let repeat = send(&server, "7f0c", "hello").await;
    assert!(!repeat.is_replay(), "memory forgets when its process ends");
    assert_eq!(server.count("messages").await, 2);
}

/// Field case B97.
#[tokio::test]
async fn the_same_text_under_a_new_key_is_a_new_message() {
    let server = Server::start(&[("DELAY_MS", "20")]).await;
    let first = send(&server, "7f0c", "ok").await;
    let second = send(&server, "7f0d", "ok").await;

    assert_eq!((first.status, second.status), (201, 201));
    assert_ne!(first.body, second.body);
    assert_eq!(server.count("messages").await, 2);
}

#[tokio::test]
async fn a_quoted_and_a_bare_key_are_one_key() {
    let server = Server::start(&[("DELAY_MS", "20")]).await;
    send(&server, "7f0c", "hello").await;
    assert!(send(&server, "\"7f0c\"", "hello").await.is_replay());
}

#[tokio::test]
async fn a_repeat_that_comes_while_the_first_runs_waits_for_its_answer() {
    let server = Server::start(&[("DELAY_MS", "300")]).await;
    let (a, b) = tokio::join!(
        send(&server, "7f0c", "hello"),
        send(&server, "7f0c", "hello")
    );
    assert_eq!((a.status, b.status), (201, 201));
    assert_eq!(a.body, b.body);
    assert_eq!(server.count("runs").await, 1);
}

#[tokio::test]
async fn a_page_without_a_key_in_it_is_served_each_time() {
    let server = Server::start(&[]).await;
    for _ in 0..2 {
        let page = http::exchange(server.address(), &http::get("/")).await;
        let page = page.unwrap();
        assert!(page.text().contains("Lose the next response"));
        assert!(!page.is_replay());
    }
}

async fn send(server: &Server, key: &str, text: &str) -> Response {
    let headers = [("x-user", "ann"), ("idempotency-key", key)];
    let request = http::post(PATH, &headers, &format!(r#"{{"text": "{text}"}}"#));
    http::exchange(server.address(), &request).await.unwrap()
}

fn without_marker_and_date(response: &Response) -> Vec<&str> {
    let told_apart = ["idempotency-replayed:", "date:"];
    response
        .head
        .iter()
        .map(String::as_str)
        .filter(|line| {
            let line = line.to_lowercase();
            !told_apart.iter().any(|name| line.starts_with(name))
        })
        .collect()
}
