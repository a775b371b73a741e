//! From the acceptance to the end, by several processes.

use std::time::Duration;

use tokio::task::JoinSet;
use tower_idempotency::store::{Arrival, PostgresStore, Queue};

use crate::child::{By, HOT, Task};
use crate::message;
use crate::options::Options;
use crate::server::Server;
use crate::sheet::{Sheet, measured};

pub(crate) fn run(options: &Options) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        if options.wants("ends") {
            ends(options).await;
        }
        if options.wants("latency") {
            latency(options).await;
        }
        if options.wants("hot") {
            hot(options).await;
        }
    });
}

/// A task that only sends and handles for a time.
pub(crate) fn task(server: &Server, by: By, time: Duration) -> Task {
    Task {
        url: server.url(),
        by,
        time,
        senders: 0,
        rate: 0,
        drain: false,
        handler: Duration::ZERO,
        idle: Duration::from_millis(50),
        hot: false,
    }
}

async fn ends(options: &Options) {
    let server = Server::start().await;
    let mut sheet = Sheet::default();
    for _ in 0..options.rounds {
        for count in [1, 2, 4] {
            for (by, name) in [
                (By::Jobs, "SKIP LOCKED, in order"),
                (By::Store, "PostgresStore"),
            ] {
                server.clear().await;
                let task = Task {
                    senders: 256 / count,
                    ..task(&server, by, options.time)
                };
                let shown = measured(&server, &vec![task; count]).await;
                sheet.push(&format!("{count} processes, {name}"), shown);
            }
        }
    }
    sheet.print(
        "accepted, handled and done, 256 in flight",
        "SKIP LOCKED, in order",
    );
}

async fn latency(options: &Options) {
    let server = Server::start().await;
    let mut sheet = Sheet::default();
    for _ in 0..options.rounds {
        for (count, rate) in [(1, 1000), (3, 1000), (1, 5000)] {
            server.clear().await;
            let task = Task {
                rate: rate / u32::try_from(count).unwrap(),
                idle: Duration::from_millis(500),
                ..task(&server, By::Store, options.time * 2)
            };
            let shown = measured(&server, &vec![task; count]).await;
            sheet.push(&format!("{rate}/s, {count} processes"), shown);
        }
    }
    sheet.print("from sent to handled, idle poll 500 ms", "1 processes");
}

/// How many messages wait in the hot line.
const WAITING: usize = 10_000;

async fn hot(options: &Options) {
    let server = Server::start().await;
    let mut sheet = Sheet::default();
    for _ in 0..options.rounds {
        for hot in [false, true] {
            server.clear().await;
            if hot {
                let arrivals = (0..WAITING).map(|_| message::of(HOT)).collect();
                fill(&server, arrivals).await;
            }
            let task = Task {
                rate: 1000,
                handler: Duration::from_millis(1),
                idle: Duration::from_millis(20),
                hot,
                ..task(&server, By::Store, options.time * 2)
            };
            let shown = measured(&server, &[task]).await;
            let name = if hot { "beside it" } else { "without it" };
            sheet.push(name, shown);
        }
    }
    let title = "others at 1000/s beside a line of 10,000, handler 1 ms";
    sheet.print(title, "without it");
}

/// Accepts all of these.
pub(crate) async fn fill(server: &Server, arrivals: Vec<Arrival>) {
    let store = PostgresStore::connect(&server.url()).await.unwrap();
    let mut tasks = JoinSet::new();
    for some in arrivals.chunks(200) {
        let (store, some) = (store.clone(), some.to_vec());
        tasks.spawn(async move { drop(store.accept(&some, None).await.unwrap()) });
        if tasks.len() == 4 {
            tasks.join_next().await.unwrap().unwrap();
        }
    }
    tasks.join_all().await;
}
