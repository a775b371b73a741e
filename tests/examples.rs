//! Proves that the examples of one page do what they say.
//!
//! They are built by `cargo test`; a single `cargo test --test examples` needs
//! `cargo build --examples` before it.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Child;

use crate::example::example;

#[path = "support/example.rs"]
mod example;

/// A server on a free port.
async fn serve(name: &str) -> (Child, String) {
    let mut server = example(name).arg("127.0.0.1:0").spawn().unwrap();
    let mut output = BufReader::new(server.stdout.as_mut().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).await.unwrap();
    let url = line
        .trim()
        .strip_prefix("listening on ")
        .unwrap()
        .to_owned();
    (server, url)
}

#[tokio::test]
async fn a_message_sent_twice_to_the_axum_and_the_hyper_server_is_handled_once() {
    for (name, path) in [("axum_chat", "/messages"), ("hyper_server", "/")] {
        let (_server, url) = serve(name).await;
        let mut answers = Vec::new();
        for replayed in [false, true] {
            let request = reqwest::Client::new()
                .post(format!("{url}{path}"))
                .header("x-user", "ann")
                .header("idempotency-key", "1")
                .body("hello");
            let answer = request.send().await.unwrap();
            let mark = answer.headers().contains_key("idempotency-replayed");
            assert_eq!((answer.status().as_u16(), mark), (200, replayed), "{name}");
            answers.push(answer.text().await.unwrap());
        }
        assert!(answers.iter().all(|it| it.contains("hello")), "{answers:?}");
        assert!(answers.windows(2).all(|two| two.first() == two.last()));
    }
}

#[tokio::test]
async fn a_call_sent_twice_to_the_tonic_server_is_handled_once() {
    let said = said("tonic_chat").await;
    let answers = said.matches("hello is message 1").count();
    assert_eq!(
        (
            answers,
            said.matches("\"idempotency-replayed\": \"true\"").count()
        ),
        (2, 1)
    );
    assert!(said.contains("runs: 1, replayed: 1"), "{said}");
}

/// Acknowledged three times in much less than the handler takes, handled once, with one line about
/// it; and not again after a restart.
#[cfg(feature = "sqlite")]
#[tokio::test]
async fn a_yes_delivered_three_times_to_the_inbox_places_one_order() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("inbox.db");
    let body = r#"{"entry":[{"changes":[{"value":{"metadata":{"phone_number_id":"1"},
        "messages":[{"id":"wamid.1","from":"447700900123","text":{"body":"yes"}}]}}]}]}"#;
    for is_restarted in [false, true] {
        let mut server = example("inbox")
            .arg("127.0.0.1:0")
            .arg(&file)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
        let line = lines.next_line().await.unwrap().unwrap();
        let url = line.strip_prefix("listening on ").unwrap();
        for _ in 0..3 {
            let request = reqwest::Client::new()
                .post(format!("{url}/whatsapp"))
                .header("content-type", "application/json")
                .body(body);
            assert_eq!(request.send().await.unwrap().status(), 200);
        }
        let pid = server.id().unwrap().to_string();
        let interrupted = tokio::process::Command::new("kill")
            .args(["-INT", &pid])
            .status()
            .await;
        assert!(interrupted.unwrap().success());
        // At its end it finishes what it is handling.
        let mut said = Vec::new();
        while let Some(line) = lines.next_line().await.unwrap() {
            said.push(line);
        }
        let order = r#"wamid.1 says "yes": one order of £48.00, attempt 1"#;
        let orders = said.iter().filter(|line| *line == order).count();
        assert_eq!(
            (orders, said.len()),
            if is_restarted { (0, 0) } else { (1, 1) }
        );
        assert!(server.wait().await.unwrap().success());
    }
}

async fn said(name: &str) -> String {
    let output = example(name).output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[cfg(feature = "verify")]
#[tokio::test]
async fn a_channel_of_ones_own_cuts_out_what_is_done_and_refuses_a_guessed_token() {
    let expected = "\
posted with the token \"guessed\"
  answered: 401 Unauthorized
posted with the token \"secret\"
  handled: 1;ann;hello
  handled: 2;bob;hi
  handled: 3;ann;bye
  answered: 200 OK
posted with the token \"secret\"
  handled: 4;bob;hm
  answered: 200 OK
";
    assert_eq!(said("own_channel").await, expected);
}

#[cfg(feature = "verify")]
#[tokio::test]
async fn a_token_made_for_another_body_is_refused_and_a_repeat_is_handled_once() {
    let expected = "\
first
  handled: {\"message_uuid\":\"aaaa-bbbb\",\"text\":\"hi\"}
  answered: 200 OK
again
  answered: 200 OK
changed
  answered: 401 Unauthorized
";
    assert_eq!(said("jwt_channel").await, expected);
}
