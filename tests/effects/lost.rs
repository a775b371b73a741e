//! The answer to a commit is lost, or the commit itself: the row tells which.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use tokio::task::block_in_place;
use tokio::time::sleep;
use tower_idempotency::channel::{IdempotencyKey, Scope};
use tower_idempotency::store::{PostgresOptions, PostgresStore};
use tower_idempotency::{Claimed, IdempotencyLayer};

use crate::cluster::{Cluster, Stop};
use crate::database::client;
use crate::proxy::{Proxy, Way};
use crate::side::{Got, Runs, Tables, make_in, send};

/// What becomes of the end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// The last statements do not reach the server; their connection is cut.
    Unsent,
    /// The server commits, and the answer is lost with the connection.
    Unanswered,
    /// The server commits, and the answer is lost in silence.
    Silence,
    /// The server is stopped as by a crash before they are sent.
    Crash,
}

/// A commit waits for this lock, so that it can be met in the middle.
const SLOW_COMMIT: &str = "
CREATE FUNCTION waits() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(1);
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER waits AFTER INSERT ON messages
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION waits();";

const IS_COMMITTING: &str = "
SELECT EXISTS (SELECT FROM pg_stat_activity WHERE query = 'COMMIT' AND wait_event = 'advisory')";

/// Holds the next commit up, does something in the middle of it, and lets it go on.
async fn in_the_commit(cluster: Arc<Cluster>, fault: impl FnOnce() + Send + 'static) {
    let client = client(&cluster.url()).await;
    client
        .batch_execute("SELECT pg_advisory_lock(1)")
        .await
        .unwrap();
    tokio::spawn(async move {
        let is_committing = async || client.query_one(IS_COMMITTING, &[]).await.unwrap().get(0);
        while !is_committing().await {
            sleep(Duration::from_millis(2)).await;
        }
        fault();
        client
            .batch_execute("SELECT pg_advisory_unlock(1)")
            .await
            .unwrap();
    });
}

/// What the caller of the first run and that of the second got, and what was written then.
async fn run(fault: Fault) -> (Got, Got, (i64, i64), usize) {
    let cluster = Arc::new(Cluster::start(&["fsync = on"]));
    let proxy = Arc::new(Proxy::before(&cluster.socket()));
    let options = PostgresOptions::new().limit(Duration::from_secs(2));
    let store = PostgresStore::connect_with(&proxy.url(), &options)
        .await
        .unwrap();
    store.migrate().await.unwrap();
    make_in(&cluster.url(), "public").await;
    let past = client(&cluster.url()).await;
    past.batch_execute(SLOW_COMMIT).await.unwrap();
    let tables = Tables::Postgres("public".to_owned());
    let runs = Runs::new([fault, Fault::None]);
    let (told, faulty, server) = (runs.clone(), Arc::clone(&proxy), Arc::clone(&cluster));
    let handler = move |claimed: Claimed| async move {
        tables.write(&claimed, "hello").await.unwrap();
        match told.next() {
            Fault::None => {}
            Fault::Unsent => faulty.to_server(Way::CutOnce),
            Fault::Unanswered => {
                in_the_commit(server, move || faulty.to_client(Way::CutOnce)).await;
            }
            Fault::Silence => {
                in_the_commit(server, move || {
                    faulty.mute_the_open_ones();
                })
                .await;
            }
            Fault::Crash => block_in_place(|| {
                server.stop(Stop::Immediate);
                server.resume();
            }),
        }
        StatusCode::CREATED
    };
    let channel = IdempotencyKey::scoped_by(Scope::header("x-user"));
    let layer = IdempotencyLayer::new(store, channel);
    let app = Router::new()
        .route("/messages", post(handler))
        .layer(layer.clone());
    let first = send(&app, "1").await;
    layer.drain(Duration::from_secs(30)).await;
    let second = send(&app, "1").await;
    let client = client(&cluster.url()).await;
    let sql = "SELECT (SELECT count(*) FROM messages), (SELECT unread FROM counter)";
    let row = client.query_one(sql, &[]).await.unwrap();
    let written = (row.get(0), row.get::<_, i32>(1).into());
    (first, second, written, runs.count())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_never_came_is_run_again() {
    let (first, second, written, runs) = run(Fault::Unsent).await;
    assert_eq!(first.status, StatusCode::SERVICE_UNAVAILABLE, "{first:?}");
    assert_eq!(
        (second.status, second.is_replay),
        (StatusCode::CREATED, false)
    );
    assert_eq!((written, runs), ((1, 1), 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_answer_was_lost_is_found_in_the_row() {
    let (first, second, written, runs) = run(Fault::Unanswered).await;
    assert_eq!(
        (first.status, first.is_replay),
        (StatusCode::CREATED, false)
    );
    assert_eq!(
        (second.status, second.is_replay),
        (StatusCode::CREATED, true)
    );
    assert_eq!((written, runs), ((1, 1), 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_answer_does_not_come_is_committed_once() {
    let (first, second, written, runs) = run(Fault::Silence).await;
    let expected = [StatusCode::CREATED, StatusCode::SERVICE_UNAVAILABLE];
    assert!(expected.contains(&first.status), "{first:?}");
    assert_eq!(
        (second.status, second.is_replay),
        (StatusCode::CREATED, true)
    );
    assert_eq!((written, runs), ((1, 1), 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_crashed_before_the_commit_is_asked_again() {
    let (first, second, written, runs) = run(Fault::Crash).await;
    assert_eq!(first.status, StatusCode::SERVICE_UNAVAILABLE, "{first:?}");
    assert_eq!(
        (second.status, second.is_replay),
        (StatusCode::CREATED, false)
    );
    assert_eq!((written, runs), ((1, 1), 2));
}
