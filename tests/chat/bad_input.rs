//! Bad input is answered with a problem document that says what is wrong; nothing runs, and
//! nothing is claimed: the same key, sent well, runs.

use serde_json::Value;

use crate::http::{self, Response};
use crate::server::Server;

const PATH: &str = "/chat/1/messages";
const BODY: &str = r#"{"text": "hello"}"#;
/// Over the limit of 1 MiB, and more than the sockets hold: the answer comes while it is sent.
const TOO_LONG: usize = 8 * 1024 * 1024;

/// A bad request, and how it must be answered.
struct Case {
    name: &'static str,
    headers: &'static [(&'static str, &'static str)],
    body: String,
    status: u16,
    /// What the problem's detail must name.
    told: &'static str,
}

fn cases() -> Vec<Case> {
    let case = |name, headers, status, told| Case {
        name,
        headers,
        body: BODY.to_owned(),
        status,
        told,
    };
    let long_key: &'static str = "k".repeat(256).leak();
    let long_key_line = vec![("x-user", "ann"), ("idempotency-key", long_key)].leak();
    vec![
        case(
            "two key lines",
            &[
                ("x-user", "ann"),
                ("idempotency-key", "good"),
                ("idempotency-key", "good"),
            ],
            400,
            "idempotency-key",
        ),
        case(
            "a blank key",
            &[("x-user", "ann"), ("idempotency-key", "  ")],
            400,
            "idempotency-key",
        ),
        case("an over-long key", long_key_line, 400, "255"),
        case(
            "a broken quoted string",
            &[("x-user", "ann"), ("idempotency-key", "\"good")],
            400,
            "quot",
        ),
        case("no key", &[("x-user", "ann")], 400, "idempotency-key"),
        case("no scope", &[("idempotency-key", "good")], 400, "x-user"),
        Case {
            body: format!(r#"{{"text": "{}"}}"#, "x".repeat(TOO_LONG)),
            ..case(
                "a body over the limit",
                &[("x-user", "ann"), ("idempotency-key", "good")],
                413,
                "1048576",
            )
        },
    ]
}

/// Field case B102.
#[tokio::test]
async fn bad_input_is_told_and_neither_runs_nor_claims_its_key() {
    for case in cases() {
        let server = Server::start(&[("DELAY_MS", "1")]).await;
        let request = http::post(PATH, case.headers, &case.body);
        let answer = http::exchange(server.address(), &request).await.unwrap();
        assert_problem(&answer, case.status, case.told, case.name);
        assert_eq!(server.count("runs").await, 0, "{}", case.name);

        assert_runs(&server, "good", case.name).await;
    }
}

#[tokio::test]
async fn a_body_cut_short_neither_runs_nor_claims_nor_gets_a_success() {
    let server = Server::start(&[("DELAY_MS", "1")]).await;
    let headers = [("x-user", "ann"), ("idempotency-key", "good")];
    let request = http::post_declaring(PATH, &headers, BODY, BODY.len() + 1);
    let answer = http::cut_short(server.address(), &request).await;
    assert!(!answer.is_ok_and(|answer| answer.is_success()));
    assert_eq!(server.count("runs").await, 0);

    assert_runs(&server, "good", "a body cut short").await;
}

#[tokio::test]
async fn another_request_under_a_used_key_is_refused_and_the_part_is_named() {
    let server = Server::start(&[("DELAY_MS", "1")]).await;
    assert_runs(&server, "good", "first").await;
    for (path, body, told) in [
        (PATH, r#"{"text": "other"}"#, "body"),
        ("/chat/2/messages", BODY, "path"),
        ("/chat/1/messages?a=b", BODY, "query"),
    ] {
        let headers = [("x-user", "ann"), ("idempotency-key", "good")];
        let request = http::post(path, &headers, body);
        let answer = http::exchange(server.address(), &request).await.unwrap();
        assert_problem(&answer, 422, told, path);
    }
    assert_eq!(server.count("messages").await, 1);
}

#[tokio::test]
async fn a_handlers_refusal_is_not_recorded_and_the_corrected_request_runs() {
    let server = Server::start(&[("DELAY_MS", "1")]).await;
    let headers = [("x-user", "ann"), ("idempotency-key", "good")];
    let request = http::post(PATH, &headers, r#"{"no text": true}"#);
    let answer = http::exchange(server.address(), &request).await.unwrap();
    assert_eq!(
        answer.status, 422,
        "axum's answer to JSON that does not fit"
    );
    assert_runs(&server, "good", "after a refusal").await;
}

fn assert_problem(answer: &Response, status: u16, told: &str, name: &str) {
    assert_eq!(answer.status, status, "{name}: {}", answer.text());
    assert_eq!(
        answer.header("content-type"),
        Some("application/problem+json"),
        "{name}"
    );
    let problem: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(problem["status"], status, "{name}");
    let detail = problem["detail"].as_str().unwrap().to_lowercase();
    assert!(detail.contains(told), "{name}: {detail}");
}

/// A well-formed request runs now, and is not a replay.
async fn assert_runs(server: &Server, key: &str, name: &str) {
    let runs = server.count("runs").await;
    let headers = [("x-user", "ann"), ("idempotency-key", key)];
    let request = http::post(PATH, &headers, BODY);
    let answer = http::exchange(server.address(), &request).await.unwrap();
    assert_eq!(answer.status, 201, "{name}: {}", answer.text());
    assert!(!answer.is_replay(), "{name}");
    assert_eq!(server.count("runs").await, runs + 1, "{name}");
}
