//! `PostgresStore` against the same work a row at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tower_idempotency::store::{PostgresOptions, PostgresStore};

use crate::cluster::Cluster;
use crate::flush::SlowFlush;
use crate::footprint;
use crate::load::{self, Shown};
use crate::message;
use crate::options::Options;
use crate::rows::Rows;
use crate::seasoned;
use crate::table::Runs;

pub(crate) fn run(options: &Options) {
    if options.wants("postgres") || options.wants("postgres-first") {
        let bench = Bench::start(None);
        first(
            &bench,
            options,
            "first delivery: claim and completion, 1 KiB",
        );
    }
    if options.wants("postgres") || options.wants("postgres-replay") {
        let bench = Bench::start(None);
        replays(&bench, options);
    }
    if options.wants("postgres") || options.wants("postgres-footprint") {
        footprint::run(&Bench::start(None), options);
    }
    if options.wants("postgres") || options.wants("postgres-slow") {
        let slow = SlowFlush::compile();
        let bench = Bench::start(Some(&slow));
        first(&bench, options, "first delivery, each flush 2 ms longer");
    }
}

/// A server of the bench's own, and both ways to it.
pub(crate) struct Bench {
    pub(crate) runtime: Runtime,
    pub(crate) store: PostgresStore,
    pub(crate) cluster: Cluster,
    rows: Rows,
}

impl Bench {
    fn start(slow: Option<&SlowFlush>) -> Self {
        let library = slow.map(SlowFlush::path);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let cluster = runtime.block_on(seasoned::start(library.as_deref()));
        let (store, rows) = runtime.block_on(async {
            let options = PostgresOptions::new().without_sweeper();
            let store = PostgresStore::connect_with(&cluster.url(), &options).await;
            let store = store.unwrap();
            store.migrate().await.unwrap();
            (store, Rows::open(&cluster.url()).await)
        });
        Self {
            runtime,
            store,
            cluster,
            rows,
        }
    }

    fn load<F>(
        &self,
        callers: usize,
        time: Duration,
        request: impl Fn() -> F + Clone + Send + 'static,
    ) -> Shown
    where
        F: Future<Output = ()> + Send,
    {
        let server = Some(self.cluster.pid());
        self.runtime
            .block_on(load::closed(callers, time, server, request))
    }
}

fn first(bench: &Bench, options: &Options, title: &str) {
    let mut runs = Runs::default();
    for _ in 0..options.rounds {
        for callers in options.in_flight() {
            bench.clear();
            let shown = bench.first_by_row(callers, options.time);
            runs.push(&format!("{callers} in flight, a row at a time"), shown);
            bench.clear();
            let shown = bench.first_by_store(callers, options.time);
            runs.push(&format!("{callers} in flight, PostgresStore"), shown);
        }
    }
    runs.print(title, "a row at a time");
}

fn replays(bench: &Bench, options: &Options) {
    let ids: Arc<[String]> = (0..options.keys.min(100_000))
        .map(|_| message::id())
        .collect();
    bench.runtime.block_on(bench.fill(&ids));
    bench.runtime.block_on(bench.rows.vacuum());
    let mut runs = Runs::default();
    for _ in 0..options.rounds {
        for callers in options.in_flight() {
            let shown = bench.replay_by_row(callers, options.time, &ids);
            runs.push(&format!("{callers} in flight, a SELECT by key"), shown);
            let shown = bench.replay_by_store(callers, options.time, &ids);
            runs.push(&format!("{callers} in flight, PostgresStore"), shown);
        }
    }
    runs.print("replay of a done key, 1 KiB", "a SELECT by key");
}

impl Bench {
    /// Empties both tables: all runs begin alike.
    fn clear(&self) {
        self.runtime.block_on(self.rows.clear());
    }

    fn first_by_row(&self, callers: usize, time: Duration) -> Shown {
        let rows = self.rows.clone();
        let response: Arc<[u8]> = message::bytes().into();
        self.load(callers, time, move || {
            let (rows, response) = (rows.clone(), Arc::clone(&response));
            async move { rows.run(&message::id(), &response).await }
        })
    }

    /// So many callers run new messages through the store.
    pub(crate) fn first_by_store(&self, callers: usize, time: Duration) -> Shown {
        let (store, record) = (self.store.clone(), message::record());
        self.load(callers, time, move || {
            let (store, record) = (store.clone(), Arc::clone(&record));
            async move { message::handle(&store, &message::id(), record).await }
        })
    }

    fn replay_by_row(&self, callers: usize, time: Duration, ids: &Arc<[String]>) -> Shown {
        let (rows, ids) = (self.rows.clone(), Arc::clone(ids));
        self.load(callers, time, move || {
            let (rows, ids) = (rows.clone(), Arc::clone(&ids));
            async move { drop(rows.replay(message::pick(&ids)).await) }
        })
    }

    fn replay_by_store(&self, callers: usize, time: Duration, ids: &Arc<[String]>) -> Shown {
        let (store, ids) = (self.store.clone(), Arc::clone(ids));
        self.load(callers, time, move || {
            let (store, ids) = (store.clone(), Arc::clone(&ids));
            async move { message::replay(&store, message::pick(&ids)).await }
        })
    }

    /// Runs these messages through both.
    async fn fill(&self, ids: &Arc<[String]>) {
        let next = Arc::new(AtomicUsize::new(0));
        let mut tasks = JoinSet::new();
        for _ in 0..256 {
            let (rows, store) = (self.rows.clone(), self.store.clone());
            tasks.spawn(run_all((rows, store), Arc::clone(ids), Arc::clone(&next)));
        }
        tasks.join_all().await;
    }
}

async fn run_all((rows, store): (Rows, PostgresStore), ids: Arc<[String]>, next: Arc<AtomicUsize>) {
    let (response, record) = (message::bytes(), message::record());
    while let Some(id) = ids.get(next.fetch_add(1, Ordering::Relaxed)) {
        rows.run(id, &response).await;
        message::handle(&store, id, Arc::clone(&record)).await;
    }
}
