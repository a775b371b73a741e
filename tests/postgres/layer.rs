//! The layer on this store: what its callers are answered when the database is not there, and how
//! many statements those take who wait for another's run.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tower::{Layer, ServiceExt, service_fn};
use tower_idempotency::channel::IdempotencyKey;
use tower_idempotency::store::PostgresStore;
use tower_idempotency::{IdempotencyLayer, RequestBody};

use crate::cluster::{Cluster, Stop};
use crate::database::{Schema, client};
use crate::fixture::{open, options};
use crate::hand::until;

/// Posts a message to a handler that takes a moment and counts its runs.
async fn post(store: PostgresStore, id: String, runs: Arc<AtomicU32>) -> StatusCode {
    let handler = service_fn(move |_: Request<RequestBody<Full<Bytes>>>| {
        let runs = Arc::clone(&runs);
        async move {
            runs.fetch_add(1, Ordering::Relaxed);
            sleep(Duration::from_secs(1)).await;
            Ok::<_, Infallible>(Response::new(Full::<Bytes>::from("done")))
        }
    });
    let layer = IdempotencyLayer::new(store, IdempotencyKey::unscoped());
    let request = Request::post("/").header("idempotency-key", id);
    let request = request.body(Full::<Bytes>::from("hello")).unwrap();
    let answer = layer.layer(handler).oneshot(request).await.unwrap();
    let status = answer.status();
    assert_eq!(status == 503, answer.headers().contains_key("retry-after"));
    status
}

/// Field case B69.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_down_is_503_and_runs_nothing_until_it_is_back() {
    let cluster = Cluster::start(&[]);
    let schema = Schema::new(&cluster.url());
    let store = open(&cluster.url(), &options(&schema)).await;
    let runs = Arc::new(AtomicU32::new(0));
    cluster.stop(Stop::Fast);
    let down = post(store.clone(), "a".to_owned(), Arc::clone(&runs)).await;
    assert_eq!(down, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(runs.load(Ordering::Relaxed), 0);
    cluster.resume();
    let back = post(store, "a".to_owned(), Arc::clone(&runs)).await;
    assert_eq!((back, runs.load(Ordering::Relaxed)), (StatusCode::OK, 1));
}

/// Field cases B88, P71.
#[tokio::test(flavor = "multi_thread")]
async fn those_who_wait_for_a_run_look_together() {
    let cluster = Cluster::start(&["track_functions = pl"]);
    let schema = Schema::new(&cluster.url());
    // Two processes: the waiting one cannot hear of the end in its own memory.
    let (one, other) = (
        open(&cluster.url(), &options(&schema)).await,
        open(&cluster.url(), &options(&schema)).await,
    );
    let runs = Arc::new(AtomicU32::new(0));
    let mut callers = JoinSet::new();
    for number in 0..10 {
        callers.spawn(post(one.clone(), format!("{number}"), Arc::clone(&runs)));
    }
    sleep(Duration::from_millis(200)).await;
    for number in 0..200 {
        callers.spawn(post(
            other.clone(),
            format!("{}", number % 10),
            Arc::clone(&runs),
        ));
    }
    for status in callers.join_all().await {
        assert_eq!(status, StatusCode::OK);
    }
    assert_eq!(runs.load(Ordering::Relaxed), 10);
    let client = client(&cluster.url()).await;
    let calls = "SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_user_functions \
        WHERE funcname = 'idempotency_look'";
    let calls: i64 = until("the server has counted", async || {
        sleep(Duration::from_millis(1500)).await;
        let calls: i64 = client.query_one(calls, &[]).await.unwrap().get(0);
        (calls > 0).then_some(calls)
    })
    .await;
    // Two hundred callers, each looking some ten times: two thousand looks. How many share a
    // statement depends on how long a statement takes.
    assert!(calls < 1000, "{calls} statements");
}
