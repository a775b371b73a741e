//! `SqliteStore` against a transaction for each call, with `synchronous=FULL`, in the system's
//! folder for temporary files (`TMPDIR`).

use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio::runtime::Runtime;
use tower_idempotency::Key;
use tower_idempotency::store::{SqliteStore, Store, Verdict};

use crate::load::closed;
use crate::message::{ask, bytes, handle, id, pick, record, replay};
use crate::options::Options;
use crate::single::Single;
use crate::table::Runs;

const IN_FLIGHT: [usize; 4] = [1, 16, 64, 256];

pub(crate) fn run(options: &Options) {
    if !options.wants("sqlite") {
        return;
    }
    let runtime = Runtime::new().unwrap();
    println!("\na flush of 8 KiB to the disk takes {:.1?}", flush());
    runtime.block_on(claims(options));
    runtime.block_on(firsts(options));
    runtime.block_on(repeats(options));
}

/// New files, so that no run finds what another left.
struct Files {
    store: SqliteStore,
    single: Single,
    _folder: TempDir,
}

impl Files {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            store: SqliteStore::open(folder.path().join("store.db")).unwrap(),
            single: Single::open(&folder.path().join("single.db")),
            _folder: folder,
        }
    }
}

async fn claims(options: &Options) {
    let mut runs = Runs::default();
    for (_, callers) in rounds(options) {
        let files = Files::new();
        let single = files.single.clone();
        let work = move || claim_singly(single.clone());
        let shown = closed(callers, options.time, None, work).await;
        runs.push(&format!("{callers}, a transaction per claim"), shown);
        let store = files.store.clone();
        let work = move || claim(store.clone());
        let shown = closed(callers, options.time, None, work).await;
        runs.push(&format!("{callers}, SqliteStore"), shown);
    }
    runs.print("SQLite: claims", "a transaction per claim");
}

async fn firsts(options: &Options) {
    let mut runs = Runs::default();
    for (_, callers) in rounds(options) {
        let files = Files::new();
        let single = files.single.clone();
        let work = move || first_singly(single.clone());
        let shown = closed(callers, options.time, None, work).await;
        runs.push(&format!("{callers}, a transaction per call"), shown);
        let store = files.store.clone();
        let work = move || first(store.clone());
        let shown = closed(callers, options.time, None, work).await;
        runs.push(&format!("{callers}, SqliteStore"), shown);
    }
    let title = "SQLite: first delivery: claim and completion, 1 KiB";
    runs.print(title, "a transaction per call");
}

async fn repeats(options: &Options) {
    let files = Files::new();
    let ids: Arc<[String]> = (0..2_000).map(|_| id()).collect();
    for id in ids.iter() {
        handle(&files.store, id, record()).await;
    }
    let mut runs = Runs::default();
    for (_, callers) in rounds(options) {
        let (store, some) = (files.store.clone(), Arc::clone(&ids));
        let work = move || look(store.clone(), Arc::clone(&some));
        let shown = closed(callers, options.time, None, work).await;
        runs.push(&format!("{callers}, a look"), shown);
        let (store, some) = (files.store.clone(), Arc::clone(&ids));
        let work = move || repeat(store.clone(), Arc::clone(&some));
        let shown = closed(callers, options.time, None, work).await;
        runs.push(&format!("{callers}, a repeat"), shown);
    }
    runs.print("SQLite: replays, 1 KiB", "a look");
}

fn rounds(options: &Options) -> impl Iterator<Item = (usize, usize)> + use<> {
    let rounds = 0..options.rounds;
    rounds.flat_map(|round| IN_FLIGHT.map(|callers| (round, callers)))
}

async fn claim(store: SqliteStore) {
    let verdict = ask(&store, &id()).await;
    assert!(matches!(verdict, Verdict::Run(_)));
}

async fn first(store: SqliteStore) {
    handle(&store, &id(), record()).await;
}

async fn look(store: SqliteStore, ids: Arc<[String]>) {
    drop(store.look(&[key(pick(&ids))]).await.unwrap());
}

async fn repeat(store: SqliteStore, ids: Arc<[String]>) {
    replay(&store, pick(&ids)).await;
}

async fn claim_singly(single: Single) {
    single.claim(key(&id())).await;
}

async fn first_singly(single: Single) {
    let key = key(&id());
    single.claim(key.clone()).await;
    single.record(key, bytes()).await;
}

fn key(id: &str) -> Key {
    Key::new("whatsapp", "1065", &[id])
}

/// What a flush takes, which sets the scale: the median of 51.
fn flush() -> Duration {
    let folder = tempfile::tempdir().unwrap();
    let mut file = File::create(folder.path().join("flush")).unwrap();
    let flush = |_| {
        file.write_all(&[7; 8192]).unwrap();
        let began = Instant::now();
        file.sync_data().unwrap();
        began.elapsed()
    };
    let mut times: Vec<Duration> = (0..51).map(flush).collect();
    times.sort();
    times[25]
}
