//! Prometheus finds at `/metrics` what the server did.

use tower_idempotency::watch::metric::{ALL, Kind};

use crate::http;
use crate::server::Server;

#[tokio::test]
async fn prometheus_finds_outcomes_latencies_and_what_waits() {
    let server = Server::start(&[("DELAY_MS", "20")]).await;
    let headers = [("x-user", "ann"), ("idempotency-key", "7f0c")];
    let request = http::post("/chat/1/messages", &headers, r#"{"text": "hello"}"#);
    for _ in 0..3 {
        let answer = http::exchange(server.address(), &request).await.unwrap();
        assert!(answer.is_success());
    }
    let page = http::exchange(server.address(), &http::get("/metrics")).await;
    let page = page.unwrap();
    assert_eq!(
        page.header("content-type"),
        Some("text/plain; version=0.0.4")
    );
    let lines: Vec<&str> = page.text().lines().collect();
    for wanted in [
        "# TYPE idempotency_requests_total counter",
        "# HELP idempotency_requests_total Requests, by what they came to",
        r#"idempotency_requests_total{channel="chat",mode="line",outcome="run"} 1"#,
        r#"idempotency_requests_total{channel="chat",mode="line",outcome="replayed"} 2"#,
        r#"idempotency_ends_total{channel="chat",end="recorded"} 1"#,
        r#"idempotency_store_seconds_count{operation="claim",result="ok"} 3"#,
        "idempotency_inbox_waiting 0",
        "idempotency_inbox_dead 0",
    ] {
        assert!(lines.contains(&wanted), "{wanted}:\n{}", page.text());
    }
    // Histograms have buckets, so that they can be summed over servers.
    let histograms = ALL.iter().filter(|metric| metric.kind == Kind::Histogram);
    for metric in histograms {
        let summary = format!("# TYPE {} summary", metric.name);
        assert!(!page.text().contains(&summary), "{summary}");
    }
}
