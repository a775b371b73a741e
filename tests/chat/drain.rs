//! Ctrl-C waits for runs whose callers have left.

use std::time::Duration;

use crate::http;
use crate::server::Server;

#[tokio::test]
async fn a_run_whose_caller_has_left_is_finished_and_recorded_before_the_server_ends() {
    let mut server = Server::start(&[("DELAY_MS", "1000")]).await;
    let headers = [("x-user", "ann"), ("idempotency-key", "7f0c")];
    let request = http::post("/chat/1/messages", &headers, r#"{"text": "hello"}"#);
    http::send_and_leave(server.address(), &request, Duration::from_millis(300))
        .await
        .unwrap();
    let end = server.interrupt().await;
    assert!(end.success(), "{end}");

    server.restart().await;
    assert_eq!(server.count("messages").await, 1);
    let repeat = http::exchange(server.address(), &request).await.unwrap();
    assert!(repeat.is_replay());
    assert_eq!(server.count("runs").await, 1);
}
