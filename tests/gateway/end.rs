//! The gateway ends in order: who waits is answered, and what runs is recorded.

use std::time::Duration;

use tokio::time::{sleep, timeout};

use crate::fixtures::TEXT;
use crate::gateway::Gateway;
use crate::upstream::Upstream;

/// Until a delivery has reached the upstream.
async fn reached(upstream: &Upstream) {
    while upstream.seen().await.is_empty() {
        sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_client_that_waits_is_answered() {
    let upstream = Upstream::start().await;
    let gateway = Gateway::before(upstream.address).await;
    let waits = async {
        let slow = [("x-do", "slow 1")];
        gateway.deliver_with(TEXT, &slow).await.status()
    };
    let stops = async {
        reached(&upstream).await;
        gateway.terminate().await;
    };
    let (status, ()) = tokio::join!(waits, stops);
    assert_eq!(status, 201);
    let (ended, _) = gateway.ended().await;
    assert!(ended.success(), "{ended}");
}

#[tokio::test]
async fn a_run_whose_client_left_is_recorded_and_its_repeat_is_replayed_after_a_restart() {
    let upstream = Upstream::start().await;
    let gateway = Gateway::before(upstream.address).await;
    let slow = [("x-do", "slow 2")];
    let leaves = timeout(
        Duration::from_millis(500),
        gateway.deliver_with(TEXT, &slow),
    );
    assert!(leaves.await.is_err());
    reached(&upstream).await;
    gateway.terminate().await;
    let (ended, folder) = gateway.ended().await;
    assert!(ended.success(), "{ended}");
    let gateway = Gateway::again(folder).await;
    let answer = gateway.deliver(TEXT).await;
    assert_eq!(answer.headers()["idempotency-replayed"], "true");
    assert_eq!(upstream.seen().await.len(), 1);
}
