//! What waits is handled; beside many done keys; and what it takes on the disk.

use std::time::{Duration, Instant};

use tower_idempotency::store::Arrival;

use crate::child::{By, Task};
use crate::jobs::Jobs;
use crate::message;
use crate::options::Options;
use crate::processes::{fill, task};
use crate::server::Server;
use crate::sheet::{Sheet, Shown, measured};

/// How many messages wait, and how many of them in each conversation.
const WAITING: u64 = 40_000;
const EACH: u64 = 8;

pub(crate) fn run(options: &Options) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        if options.wants("drain") {
            drained(options).await;
        }
        if options.wants("history") {
            history(options).await;
        }
        if options.wants("size") {
            size(options).await;
        }
    });
}

async fn drained(options: &Options) {
    let server = Server::start().await;
    let mut sheet = Sheet::default();
    for _ in 0..options.rounds {
        server.clear().await;
        let jobs = drain(&server, By::Jobs, 1).await;
        sheet.push("1 process, SKIP LOCKED, in order", jobs);
        for count in [1, 2, 4] {
            server.clear().await;
            let name = format!("{count} processes, PostgresStore");
            sheet.push(&name, drain(&server, By::Store, count).await);
        }
    }
    let title = "40,000 waiting, 8 in each conversation, are handled";
    sheet.print(title, "in order");
}

/// Lets so many wait, and then handles them by so many processes.
async fn drain(server: &Server, by: By, count: usize) -> Shown {
    let of = |n: u64| message::of(&format!("44790{}", n % (WAITING / EACH)));
    let arrivals: Vec<Arrival> = (0..WAITING).map(of).collect();
    match by {
        By::Store => fill(server, arrivals).await,
        By::Jobs => {
            let jobs = Jobs::open(&server.url());
            for some in arrivals.chunks(32) {
                futures_util::future::join_all(some.iter().map(|one| jobs.accept(one))).await;
            }
        }
    }
    server.run("CHECKPOINT").await;
    let task = Task {
        drain: true,
        idle: Duration::from_millis(1),
        ..task(server, by, Duration::ZERO)
    };
    let tasks: Vec<Task> = (0..count).map(|_| task.clone()).collect();
    measured(server, &tasks).await
}

async fn history(options: &Options) {
    let server = Server::start().await;
    let mut sheet = Sheet::default();
    for _ in 0..options.rounds {
        sheet.push("beside none", drain(&server, By::Store, 2).await);
    }
    let began = Instant::now();
    server
        .run(&format!(
            "INSERT INTO idempotency_seen SELECT gen_random_uuid(), \
             md5('c' || n % 100000)::uuid, nextval('idempotency_place'), now(), \
             now() + interval '7 days', 604800000, 'whatsapp', '1065', 'wamid.HBgM' || n, \
             '44790' || n % 100000 FROM generate_series(1, {}) n",
            options.keys
        ))
        .await;
    server.run("VACUUM ANALYZE").await;
    println!("\n{} keys in {:.0?}", options.keys, began.elapsed());
    let keys = format!("beside {} done keys", options.keys);
    for _ in 0..options.rounds {
        sheet.push(&keys, drain(&server, By::Store, 2).await);
    }
    sheet.print("40,000 waiting are handled by 2 processes", "beside none");
}

/// Runs messages through one process, step by step, with the store's own vacuum.
async fn size(options: &Options) {
    const STEPS: u32 = 6;
    let server = Server::start().await;
    let mut handled = 0.0;
    println!("\n## tables while messages go through, one process, 256 in flight\n");
    println!("| handled | seen | life | line | message |\n|---|---|---|---|---|");
    for _ in 0..STEPS {
        let task = Task {
            senders: 256,
            // Long enough for the store's own vacuum to come more than once.
            ..task(&server, By::Store, options.time * 8)
        };
        let shown = measured(&server, &[task]).await;
        handled += shown.count();
        let mut sizes = server.sizes().await;
        sizes.sort();
        let size = |name: &str| {
            let (_, table, indexes) = sizes.iter().find(|(n, ..)| n.ends_with(name)).unwrap();
            format!("{} + {} MB", table / 1_000_000, indexes / 1_000_000)
        };
        let parts = ["seen", "life", "line", "message"].map(size);
        println!("| {handled:.0} | {} |", parts.join(" | "));
    }
}
