//! Acceptance alone: the store against one INSERT per message over a pool of 32.

use std::time::Duration;

use tower_idempotency::store::{PostgresStore, Queue};

use crate::jobs::Jobs;
use crate::load;
use crate::message;
use crate::options::Options;
use crate::server::Server;
use crate::table::Runs;

pub(crate) fn run(options: &Options) {
    if !options.wants("accept") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(compare(options));
}

async fn compare(options: &Options) {
    let server = Server::start().await;
    let store = PostgresStore::connect(&server.url()).await.unwrap();
    let jobs = Jobs::open(&server.url());
    let mut runs = Runs::default();
    for _ in 0..options.rounds {
        for callers in options.in_flight() {
            let shown = by_rows(&server, &jobs, callers, options.time).await;
            runs.push(&format!("{callers} in flight, an INSERT each"), shown);
            let shown = by_store(&server, &store, callers, options.time).await;
            runs.push(&format!("{callers} in flight, PostgresStore"), shown);
        }
    }
    runs.print("accepted, 1 KiB, 5000 conversations", "an INSERT each");
}

async fn by_rows(server: &Server, jobs: &Jobs, callers: usize, time: Duration) -> load::Shown {
    server.clear().await;
    let jobs = jobs.clone();
    let accept = move || {
        let jobs = jobs.clone();
        async move { jobs.accept(&message::fresh(message::CONVERSATIONS)).await }
    };
    load::closed(callers, time, Some(server.pid()), accept).await
}

async fn by_store(
    server: &Server,
    store: &PostgresStore,
    callers: usize,
    time: Duration,
) -> load::Shown {
    server.clear().await;
    let store = store.clone();
    let accept = move || {
        let store = store.clone();
        async move {
            let arrival = message::fresh(message::CONVERSATIONS);
            drop(store.accept(&[arrival], None).await.unwrap());
        }
    };
    load::closed(callers, time, Some(server.pid()), accept).await
}
