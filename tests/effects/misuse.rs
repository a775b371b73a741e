//! Transactions that cannot be committed: nothing is half done, and the caller is told.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use tokio::time::sleep;
use tower_idempotency::channel::{IdempotencyKey, Scope};
use tower_idempotency::store::{
    MemoryStore, PostgresOptions, PostgresStore, PostgresTransaction, Queue, SqliteOptions,
};
use tower_idempotency::{Claimed, IdempotencyLayer};

use crate::database::{Schema, url};
use crate::side::{Got, Runs, Side, Tables, make_in, send};

/// An application on PostgreSQL whose handler does what it should not.
struct Wrong {
    app: Router,
    tables: Tables,
    /// What each run did before it went wrong is told apart from what comes after.
    store: PostgresStore,
    kept: Kept,
    _schema: Schema,
}

type Kept = Arc<Mutex<Vec<PostgresTransaction>>>;

async fn wrong(sql: &'static [&'static str], keeps: bool) -> Wrong {
    let schema = Schema::new(&url());
    let options = PostgresOptions::with_table(&schema.table())
        .unwrap()
        .transactions(1)
        .limit(Duration::from_secs(1));
    let store = PostgresStore::connect_with(&url(), &options).await.unwrap();
    store.migrate().await.unwrap();
    let name = schema.table().split('.').next().unwrap().to_owned();
    make_in(&url(), &name).await;
    let tables = Tables::Postgres(name.clone());
    let kept = Kept::default();
    let (writes, keep) = (tables.clone(), Arc::clone(&kept));
    let handler = move |claimed: Claimed| async move {
        writes.write(&claimed, "hello").await.unwrap();
        claimed.enqueue("notify", "ann").unwrap();
        let transaction = claimed.transaction().await.unwrap();
        for sql in sql {
            // What comes of it is swallowed.
            let sql = sql.replace("{s}", &format!("{name}."));
            drop(transaction.batch_execute(&sql).await);
        }
        if keeps {
            keep.lock().unwrap().push(transaction);
        }
        StatusCode::CREATED
    };
    let channel = IdempotencyKey::scoped_by(Scope::header("x-user"));
    let layer = IdempotencyLayer::new(store.clone(), channel).lease(Duration::from_secs(30));
    Wrong {
        app: Router::new().route("/messages", post(handler)).layer(layer),
        tables,
        store,
        kept,
        _schema: schema,
    }
}

impl Wrong {
    async fn send(&self) -> Got {
        send(&self.app, "1").await
    }

    async fn effects(&self) -> u64 {
        let outbox = self.store.outbox().unwrap();
        outbox.backlog().await.unwrap().waiting
    }

    /// The pool hands out no connection with a transaction open, and there is a place for the next.
    async fn is_as_before(&self) {
        for _ in 0..8 {
            self.store.migrate().await.unwrap();
        }
        assert_eq!(self.tables.open_transactions().await, 0);
    }
}

fn is_rolled_back(got: &Got) {
    assert_eq!(got.status, StatusCode::SERVICE_UNAVAILABLE, "{got:?}");
    assert!(got.body.contains("rolled-back"), "{got:?}");
}

#[tokio::test]
async fn a_swallowed_error_commits_nothing_and_is_no_success() {
    let wrong = wrong(&["SELECT 1 / 0"], false).await;
    for _ in 0..2 {
        let got = wrong.send().await;
        is_rolled_back(&got);
    }
    assert_eq!(wrong.tables.written().await, (0, 0));
    wrong.is_as_before().await;
}

#[tokio::test]
async fn an_error_behind_a_savepoint_is_the_handlers_own_affair() {
    let sql = ["SAVEPOINT a", "SELECT 1 / 0", "ROLLBACK TO SAVEPOINT a"];
    let wrong = wrong(Box::leak(Box::new(sql)), false).await;
    assert_eq!(wrong.send().await.status, StatusCode::CREATED);
    assert!(wrong.send().await.is_replay);
    assert_eq!(wrong.tables.written().await, (1, 1));
    assert_eq!(wrong.effects().await, 1);
    wrong.is_as_before().await;
}

#[tokio::test]
async fn a_constraint_that_fails_at_the_commit_is_no_success() {
    let wrong = wrong(
        &[
            "CREATE TABLE {s}once (n integer PRIMARY KEY DEFERRABLE INITIALLY DEFERRED)",
            "INSERT INTO {s}once VALUES (1), (1)",
        ],
        false,
    )
    .await;
    let got = wrong.send().await;
    is_rolled_back(&got);
    assert_eq!(wrong.tables.written().await, (0, 0));
    wrong.is_as_before().await;
}

/// The record is not written in a transaction that is not the one that was lent.
#[tokio::test]
async fn a_handler_that_ends_the_transaction_by_itself_is_found_out() {
    for sql in [
        &["ROLLBACK"][..],
        &["ROLLBACK", "BEGIN"],
        &["COMMIT"],
        &["COMMIT; BEGIN"],
    ] {
        let wrong = wrong(sql, false).await;
        for run in 1..=2 {
            let got = wrong.send().await;
            assert_eq!(
                got.status,
                StatusCode::INTERNAL_SERVER_ERROR,
                "{sql:?} {got:?}"
            );
            assert!(got.body.contains("transaction-misused"), "{sql:?} {got:?}");
            // What it committed by itself is its own.
            let is_own = sql.iter().any(|sql| sql.starts_with("COMMIT"));
            let own = run * i64::from(is_own);
            assert_eq!(wrong.tables.written().await, (own, own), "{sql:?}");
            assert_eq!(wrong.effects().await, 0, "{sql:?}");
        }
        wrong.is_as_before().await;
    }
}

#[tokio::test]
async fn a_handler_that_keeps_the_transaction_gets_nothing_committed() {
    let wrong = wrong(&[], true).await;
    let got = wrong.send().await;
    assert_eq!(got.status, StatusCode::INTERNAL_SERVER_ERROR, "{got:?}");
    assert!(got.body.contains("transaction-misused"), "{got:?}");
    // Whoever holds it can still write, into what is rolled back.
    let kept = wrong.kept.lock().unwrap().pop().unwrap();
    kept.batch_execute("SELECT 1").await.unwrap();
    drop(kept);
    assert_eq!(wrong.tables.written().await, (0, 0));
    wrong.is_as_before().await;
}

#[tokio::test]
async fn a_second_borrower_waits_and_then_gets_an_error() {
    let side = Side::postgres().await;
    let handler = |claimed: Claimed| async move {
        let first = claimed.transaction().await.unwrap();
        let second = tokio::time::timeout(Duration::from_millis(50), claimed.transaction()).await;
        assert!(second.is_err(), "two have one transaction");
        drop(first);
        drop(claimed.transaction().await.unwrap());
        StatusCode::CREATED
    };
    let app = Router::new()
        .route("/messages", post(handler))
        .layer(side.layer());
    assert_eq!(send(&app, "1").await.status, StatusCode::CREATED);
}

/// More runs than connections to be lent: each comes to its turn, and nothing else waits for them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_share_the_connections_that_are_lent() {
    let wrong = wrong(&["SELECT pg_sleep(0.005)"], false).await;
    let sends = (0..24).map(|key| {
        let app = wrong.app.clone();
        async move { send(&app, &key.to_string()).await.status }
    });
    let got = futures_util::future::join_all(sends).await;
    assert!(
        got.iter().all(|status| *status == StatusCode::CREATED),
        "{got:?}"
    );
    assert_eq!(wrong.tables.written().await, (24, 24));
    wrong.is_as_before().await;
}

/// A transaction that lies idle holds its locks no longer than that.
#[tokio::test]
async fn a_run_that_lies_idle_is_rolled_back() {
    let schema = Schema::new(&url());
    let options = PostgresOptions::with_table(&schema.table())
        .unwrap()
        .idle_limit(Duration::from_millis(50));
    let store = PostgresStore::connect_with(&url(), &options).await.unwrap();
    store.migrate().await.unwrap();
    let name = schema.table().split('.').next().unwrap().to_owned();
    make_in(&url(), &name).await;
    let tables = Tables::Postgres(name);
    let runs = Runs::new([500, 0]);
    let (writes, told) = (tables.clone(), runs.clone());
    let handler = move |claimed: Claimed| async move {
        writes.write(&claimed, "hello").await.unwrap();
        sleep(Duration::from_millis(told.next())).await;
        StatusCode::CREATED
    };
    let channel = IdempotencyKey::scoped_by(Scope::header("x-user"));
    let layer = IdempotencyLayer::new(store, channel);
    let app = Router::new().route("/messages", post(handler)).layer(layer);
    let got = send(&app, "1").await;
    assert_eq!(got.status, StatusCode::SERVICE_UNAVAILABLE, "{got:?}");
    assert_eq!(tables.written().await, (0, 0));
    assert_eq!(send(&app, "1").await.status, StatusCode::CREATED);
    assert_eq!(tables.written().await, (1, 1));
}

/// What the handler of an application on SQLite does wrong.
fn wrong_on_sqlite(side: &Side, sql: &'static str, pause: Duration) -> Router {
    let tables = side.tables.clone();
    let handler = move |claimed: Claimed| async move {
        tables.write(&claimed, "hello").await.unwrap();
        drop(claimed.in_transaction(move |c| c.execute_batch(sql)).await);
        sleep(pause).await;
        StatusCode::CREATED
    };
    Router::new()
        .route("/messages", post(handler))
        .layer(side.layer())
}

#[tokio::test]
async fn on_sqlite_a_transaction_that_the_handler_ended_is_found_out() {
    for sql in [
        "ROLLBACK",
        "ROLLBACK; BEGIN",
        "COMMIT",
        "COMMIT; BEGIN IMMEDIATE",
    ] {
        let side = Side::sqlite().await;
        let app = wrong_on_sqlite(&side, sql, Duration::ZERO);
        let got = send(&app, "1").await;
        assert!(got.status.is_server_error(), "{sql} {got:?}");
        let own = i64::from(sql.starts_with("COMMIT"));
        assert_eq!(side.written().await, (own, own), "{sql}");
        // The file is free, and nothing was recorded.
        let got = send(&app, "1").await;
        assert!(!got.is_replay, "{sql} {got:?}");
    }
}

#[tokio::test]
async fn on_sqlite_what_failed_is_undone_and_the_rest_stays() {
    let side = Side::sqlite().await;
    let sql = "INSERT INTO messages VALUES ('lost'); INSERT INTO messages VALUES (NULL)";
    let app = wrong_on_sqlite(&side, sql, Duration::ZERO);
    assert_eq!(send(&app, "1").await.status, StatusCode::CREATED);
    assert_eq!(side.written().await, (1, 1));
}

#[tokio::test]
async fn on_sqlite_a_run_that_lies_idle_is_rolled_back_and_holds_up_nobody() {
    let options = SqliteOptions::new().idle_limit(Duration::from_millis(20));
    let side = Side::sqlite_with(&options).await;
    let app = wrong_on_sqlite(&side, "SELECT 1", Duration::from_millis(300));
    let got = send(&app, "1").await;
    is_rolled_back(&got);
    assert_eq!(side.written().await, (0, 0));
}

#[tokio::test]
async fn on_sqlite_a_panic_is_the_handlers_and_the_store_lives_on() {
    let side = Side::sqlite().await;
    let handler = |claimed: Claimed| async move {
        let panics = claimed.in_transaction(|_| -> rusqlite::Result<()> { panic!("as told") });
        panics.await.unwrap();
        StatusCode::CREATED
    };
    let app = Router::new()
        .route("/messages", post(handler))
        .layer(side.layer());
    let panicked = tokio::spawn({
        let app = app.clone();
        async move { send(&app, "1").await }
    });
    assert!(panicked.await.unwrap_err().is_panic());
    let app = wrong_on_sqlite(&side, "SELECT 1", Duration::ZERO);
    assert_eq!(send(&app, "1").await.status, StatusCode::CREATED);
}

#[tokio::test]
async fn a_store_without_transactions_says_so() {
    let handler = |claimed: Claimed| async move {
        assert!(claimed.transaction().await.unwrap_err().is_misconfigured());
        let work = claimed.in_transaction(|_| Ok(()));
        assert!(work.await.unwrap_err().is_misconfigured());
        assert!(
            claimed
                .enqueue("notify", "ann")
                .unwrap_err()
                .is_misconfigured()
        );
        StatusCode::CREATED
    };
    let channel = IdempotencyKey::scoped_by(Scope::header("x-user"));
    let layer = IdempotencyLayer::new(MemoryStore::new(), channel);
    let app = Router::new().route("/messages", post(handler)).layer(layer);
    assert_eq!(send(&app, "1").await.status, StatusCode::CREATED);
}

#[tokio::test]
async fn an_effect_has_a_plain_name() {
    let side = Side::sqlite().await;
    let handler = |claimed: Claimed| async move {
        for name in ["", "a b", "a?b", "é", "a\nb"] {
            let error = claimed.enqueue(name, "ann").unwrap_err();
            assert!(error.is_misconfigured(), "{name:?}");
        }
        StatusCode::CREATED
    };
    let app = Router::new()
        .route("/messages", post(handler))
        .layer(side.layer());
    assert_eq!(send(&app, "1").await.status, StatusCode::CREATED);
    assert_eq!(side.effects().await, 0);
}
