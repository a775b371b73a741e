//! The file holds what is there at a time, and does not grow with what came and went.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tower_idempotency::Keep;
use tower_idempotency::store::{SqliteOptions, SqliteStore, Store};

use crate::support::{DAY, File, eventually, finish_many, key, run};

/// What the log may hold: SQLite moves it into the file after every 1,000 pages, or 4 MiB, and
/// begins it again when no reader needs it.
const LOG: u64 = 32 << 20;

/// 200,000 messages come and go.
///
/// Field case B66.
#[tokio::test(flavor = "multi_thread")]
async fn the_file_stays_as_large_as_what_it_holds() {
    const MESSAGES: u32 = 200_000;
    let file = File::new();
    let store = file.open_with(&SqliteOptions::new().sweep_every(Duration::from_millis(20)));
    let keep = Keep::Conversation {
        idle: Duration::from_millis(100),
    };
    let mut largest = [0, 0];
    for round in 0..10 {
        churn(&store, &format!("{round}"), MESSAGES / 10, keep).await;
        let half = &mut largest[usize::from(round >= 5)];
        *half = fs::metadata(file.path()).unwrap().len().max(*half);
        assert!(log_size(&file) <= LOG);
    }
    let [early, late] = largest;
    assert!(late <= early * 2, "{early} bytes, and {late} later");
    eventually(async || rows(&file) == 0).await;
}

#[tokio::test]
async fn a_conversation_goes_with_its_last_row() {
    let file = File::new();
    let store = file.open();
    finish_many(&store, "a", 3, Keep::For(Duration::ZERO)).await;
    finish_many(&store, "b", 3, DAY).await;
    assert_eq!(store.sweep(2).await.unwrap(), 2);
    assert_eq!(conversations(&file), 2);
    assert_eq!(store.sweep(100).await.unwrap(), 1);
    assert_eq!(conversations(&file), 1);
}

/// A look is a reader of the log, and the log cannot begin again under a reader.
#[tokio::test(flavor = "multi_thread")]
async fn looks_all_the_time_do_not_keep_the_log_from_beginning_again() {
    let file = File::new();
    let store = file.open();
    let stop = Arc::new(AtomicBool::new(false));
    let looks = [(); 8].map(|()| tokio::task::spawn(looking(store.clone(), Arc::clone(&stop))));
    for round in 0..8 {
        churn(&store, &format!("{round}"), 2_000, DAY).await;
        assert!(log_size(&file) <= LOG);
    }
    stop.store(true, Ordering::Relaxed);
    for look in looks {
        look.await.unwrap();
    }
}

async fn looking(store: SqliteStore, stop: Arc<AtomicBool>) {
    while !stop.load(Ordering::Relaxed) {
        store.look(&[key("0-0-0-0")]).await.unwrap();
    }
}

/// As a backup does, or a person who left a transaction open.
#[tokio::test(flavor = "multi_thread")]
async fn the_log_begins_again_when_a_long_reader_has_gone() {
    let file = File::new();
    let store = file.open();
    drop(run(&store, "a").await);
    let reader = file.connection();
    reader
        .execute_batch("BEGIN; SELECT * FROM idempotency_claims")
        .unwrap();
    churn(&store, "beside", 8_000, DAY).await;
    let held = frames(&file);
    assert!(held > 3_000, "{held} frames: the reader held nothing up");
    reader.execute_batch("COMMIT").unwrap();
    churn(&store, "after", 800, DAY).await;
    let now = frames(&file);
    assert!(now < held / 2, "{held} frames, and {now} later");
}

/// Claims and records so many messages, in eight lanes.
async fn churn(store: &SqliteStore, name: &str, messages: u32, keep: Keep) {
    const LANES: u32 = 8;
    const AT_ONCE: u32 = 50;
    let lane = |lane: u32| {
        let (store, name) = (store.clone(), name.to_owned());
        tokio::task::spawn(async move {
            for i in 0..messages / LANES / AT_ONCE {
                finish_many(&store, &format!("{name}-{lane}-{i}"), AT_ONCE, keep).await;
            }
        })
    };
    for lane in (0..LANES).map(lane).collect::<Vec<_>>() {
        lane.await.unwrap();
    }
}

fn log_size(file: &File) -> u64 {
    fs::metadata(file.log_path()).unwrap().len()
}

/// How many frames the log holds.
fn frames(file: &File) -> i64 {
    let sql = "PRAGMA wal_checkpoint(PASSIVE)";
    let connection = file.connection();
    connection.query_row(sql, [], |row| row.get(1)).unwrap()
}

fn rows(file: &File) -> i64 {
    file.count("SELECT count(*) FROM idempotency_claims") + conversations(file)
}

fn conversations(file: &File) -> i64 {
    file.count("SELECT count(*) FROM idempotency_conversations")
}
