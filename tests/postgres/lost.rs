//! What was sent or answered is lost on the way: the key is run once, and by whom it was granted.

use std::time::Duration;

use tower_idempotency::store::{PostgresStore, Settled, Store};

use crate::cluster::Cluster;
use crate::database::Schema;
use crate::fixture::{open, options};
use crate::hand::{ask, begin, claim_of, done, granted, is_done, is_running, key, look, settle};
use crate::proxy::{Proxy, Way};

/// A store behind a proxy, whose calls may take a moment, and one past the proxy.
struct Behind {
    proxied: PostgresStore,
    direct: PostgresStore,
    proxy: Proxy,
    _schema: Schema,
    _cluster: Cluster,
}

async fn behind() -> Behind {
    let cluster = Cluster::start(&[]);
    let schema = Schema::new(&cluster.url());
    let proxy = Proxy::before(&cluster.socket());
    let direct = open(&cluster.url(), &options(&schema)).await;
    let hasty = options(&schema).limit(Duration::from_millis(1500));
    let proxied = open(&proxy.url(), &hasty).await;
    // The connection is there, and its statements are prepared.
    let first = done(begin(&proxied, &key("first")).await);
    settle(&proxied, &first).await.unwrap();
    Behind {
        proxied,
        direct,
        proxy,
        _schema: schema,
        _cluster: cluster,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_whose_answer_was_cut_off_is_granted_to_its_own_attempt() {
    let behind = behind().await;
    behind.proxy.to_client(Way::CutOnce);
    let lease = begin(&behind.proxied, &key("a")).await;
    assert_eq!(lease.attempt(), 1);
    assert_eq!(behind.proxy.accepted(), 2);
    let end = done(lease);
    assert_eq!(
        settle(&behind.proxied, &end).await.unwrap(),
        Settled::Applied
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_whose_answer_never_came_is_found_by_its_nonce() {
    let behind = behind().await;
    let claim = claim_of(&[key("a")]);
    behind.proxy.to_client(Way::Swallow);
    assert!(behind.proxied.claim(&claim).await.unwrap_err().is_overdue());
    assert!(is_running(&look(&behind.direct, &key("a")).await));
    behind.proxy.to_client(Way::Open);
    let lease = granted(behind.proxied.claim(&claim).await.unwrap().pop().unwrap());
    assert_eq!(lease.attempt(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_never_arrived_leaves_the_key_free() {
    let behind = behind().await;
    behind.proxy.to_server(Way::Swallow);
    assert!(
        ask(&behind.proxied, &key("a"))
            .await
            .unwrap_err()
            .is_overdue()
    );
    begin(&behind.direct, &key("a")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_whose_answer_was_cut_off_is_told_to_be_in_force() {
    let behind = behind().await;
    let end = done(begin(&behind.proxied, &key("a")).await);
    behind.proxy.to_client(Way::CutOnce);
    assert_eq!(
        settle(&behind.proxied, &end).await.unwrap(),
        Settled::Applied
    );
    assert!(is_done(&look(&behind.direct, &key("a")).await));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_whose_answer_never_came_is_told_to_be_in_force_when_sent_again() {
    let behind = behind().await;
    let end = done(begin(&behind.proxied, &key("a")).await);
    behind.proxy.to_client(Way::Swallow);
    assert!(
        settle(&behind.proxied, &end)
            .await
            .unwrap_err()
            .is_overdue()
    );
    assert!(is_done(&look(&behind.direct, &key("a")).await));
    behind.proxy.to_client(Way::Open);
    assert_eq!(
        settle(&behind.proxied, &end).await.unwrap(),
        Settled::Applied
    );
}

/// Field case B72.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_silent_costs_one_call_and_is_not_used_again() {
    let behind = behind().await;
    let silent = behind.proxy.mute_the_open_ones();
    assert!(
        ask(&behind.proxied, &key("a"))
            .await
            .unwrap_err()
            .is_overdue()
    );
    assert_eq!(silent, 1);
    begin(&behind.proxied, &key("b")).await;
}

/// Field case B72.
#[tokio::test(flavor = "multi_thread")]
async fn several_silent_connections_cost_one_call() {
    let behind = behind().await;
    let slow = Way::Late(Duration::from_millis(100));
    behind.proxy.to_server(slow);
    // Looks, claims and settlements go by connections of their own when they meet.
    let end = done(begin(&behind.direct, &key("a")).await);
    tokio::join!(
        async { look(&behind.proxied, &key("b")).await },
        async { begin(&behind.proxied, &key("c")).await },
        async { settle(&behind.proxied, &end).await.unwrap() },
    );
    behind.proxy.to_server(Way::Open);
    assert!(behind.proxy.mute_the_open_ones() >= 3);
    assert!(
        ask(&behind.proxied, &key("d"))
            .await
            .unwrap_err()
            .is_overdue()
    );
    begin(&behind.proxied, &key("e")).await;
    look(&behind.proxied, &key("e")).await;
}
