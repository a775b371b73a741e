//! Proves that clients that hang up at any moment cost nothing: no run is lost, none is doubled, no
//! task is left, and memory is where it was.
//!
//! `HANG_UPS=10000` sets the number of clients; without it there are fewer, so that the test is
//! short.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "helpers of tests"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "a test owns the tasks that it spawns"
)]

mod client;
mod server;

use std::thread;
use std::time::Duration;

use allocation_counter::measure;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};
use tower_idempotency::Counts;
use tower_idempotency::store::Store;

use crate::server::Server;

fn clients() -> usize {
    let said = std::env::var("HANG_UPS").ok();
    said.map_or(1000, |said| said.parse().unwrap())
}

/// Field case B82.
#[test]
fn no_run_is_lost_or_doubled_and_no_task_is_left() {
    let runtime = Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let server = Server::start().await;
        let (alone, before) = (alive(), server.layer.counts());
        client::all(server.address, 0, clients()).await;
        nothing_is_lost_doubled_or_left(&server, alone, before).await;
    });
}

/// Memory is counted by thread: the server has one, and its clients another.
///
/// Field case B23.
#[test]
fn memory_is_where_it_began() {
    let mut held: Option<(Runtime, Server, usize)> = None;
    // What a server holds when it has seen many clients, and has forgotten their messages.
    let before = measure(|| {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let server = runtime.block_on(Server::start());
        let alone = runtime.block_on(async { alive() });
        // Twice, since tables grow at random.
        runtime.block_on(forgetful_round(&server, 0, alone));
        runtime.block_on(forgetful_round(&server, 1, alone));
        held = Some((runtime, server, alone));
    });
    let (runtime, server, alone) = held.unwrap();
    let after = measure(|| runtime.block_on(forgetful_round(&server, 2, alone)));
    let (began, grown) = (before.bytes_current, after.bytes_current);
    println!("{began} bytes were held, and {grown} more after as many clients again");
    assert!(grown.abs() * 10 <= began, "{grown} bytes more than {began}");
}

async fn forgetful_round(server: &Server, number: usize, alone: usize) {
    let before = server.layer.counts();
    let (done, all_done) = oneshot::channel();
    let address = server.address;
    let elsewhere = thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(client::all(address, number, clients()));
        done.send(()).unwrap();
    });
    all_done.await.unwrap();
    elsewhere.join().unwrap();
    nothing_is_lost_doubled_or_left(server, alone, before).await;
    server.runs.forget();
    tokio::time::pause();
    tokio::time::advance(server::KEPT * 2).await;
    while server.store.sweep(1000).await.unwrap() > 0 {}
    tokio::time::resume();
    assert_eq!(server.store.keys(), 0);
}

async fn nothing_is_lost_doubled_or_left(server: &Server, alone: usize, before: Counts) {
    assert_eq!(server.layer.drain(Duration::from_secs(30)).await, 0);
    let after = server.layer.counts();
    let expected = u64::try_from(clients()).unwrap();
    assert_eq!(after.runs - before.runs, expected, "{after:?}");
    assert_eq!(after.recorded - before.recorded, expected, "{after:?}");
    let failures = (after.released, after.superseded, after.unconfirmed);
    assert_eq!(failures, (0, 0, 0));
    server.runs.each_was_one(clients());
    let detached = after.detached - before.detached;
    let replayed = after.replayed - before.replayed;
    println!("{detached} runs went on without their callers, {replayed} repeats were replayed");
    assert!(detached > 0, "nobody hung up in a run");
    let began = Instant::now();
    while alive() > alone {
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "{} tasks",
            alive()
        );
        sleep(Duration::from_millis(10)).await;
    }
}

fn alive() -> usize {
    Handle::current().metrics().num_alive_tasks()
}
