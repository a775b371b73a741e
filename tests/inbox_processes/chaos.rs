//! Many messages, several processes, kills, and a database that restarts.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::time::sleep;
use tower_idempotency::inbox::Letters;
use tower_idempotency::store::{BoxStore, connect};

use crate::check::{Findings, judge};
use crate::child::Server;
use crate::cluster::{Cluster, Stop};
use crate::journal::{Event, Journal};
use crate::senders::{Addresses, id, send_all};

const BETWEEN_KILLS: Duration = Duration::from_millis(1500);

/// How many messages in how many conversations.
fn size() -> (usize, usize) {
    let messages = std::env::var("INBOX_MESSAGES").ok();
    let messages = messages.map_or(1200, |text| text.parse().unwrap());
    (messages, (messages / 40).max(1))
}

/// Field case B119.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_sqlite_through_kills() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("inbox.db").display());
    run(&url, folder.path(), || {}).await;
}

/// Field case B117.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_postgresql_through_kills_and_two_restarts_of_the_database() {
    let cluster = Cluster::start(&["max_connections = 60"]);
    let folder = tempfile::tempdir().unwrap();
    let mut restarts = [Stop::Immediate, Stop::Fast].into_iter();
    run(&cluster.url(), folder.path(), || {
        if let Some(how) = restarts.next() {
            cluster.stop(how);
            cluster.resume();
        }
    })
    .await;
}

/// Sends all messages to two processes, one of which is killed again and again, with `meanwhile`
/// after each kill; then all that was acknowledged must have been handled as promised.
async fn run(url: &str, folder: &Path, mut meanwhile: impl FnMut()) {
    let path = folder.join("journal");
    let journal = Journal::open(&path);
    let mut servers = [0, 1].map(|_| Server::start(url, &path, ""));
    let addresses: Addresses = Arc::new(Mutex::new(servers.iter().map(|s| s.address).collect()));
    let (messages, chats) = size();
    let per_chat = messages / chats;
    let mut senders = tokio::spawn({
        let addresses = Arc::clone(&addresses);
        async move { send_all(&addresses, chats, per_chat, 7).await }
    });
    let mut kills = 0;
    while !senders.is_finished() {
        sleep(BETWEEN_KILLS).await;
        let victim = kills % 2;
        servers[victim].kill(&journal);
        meanwhile();
        servers[victim] = Server::start(url, &path, "");
        addresses.lock().unwrap()[victim] = servers[victim].address;
        kills += 1;
    }
    (&mut senders).await.unwrap();
    assert!(kills > 0);
    drained(&connect(url).await.unwrap()).await;
    drop(servers);
    let events = Journal::read(&path);
    let all = (0..chats).flat_map(|chat| (0..per_chat).map(move |number| id(chat, number)));
    assert_eq!(judge(&events, all), Findings::default());
    let began = events
        .iter()
        .filter(|event| matches!(event, Event::Began(..)));
    let runs = began.count();
    let again = runs - chats * per_chat;
    println!("{messages} messages, {kills} kills, {again} of them handled again");
}

/// Waits until nothing waits.
pub(crate) async fn drained(store: &BoxStore) {
    let letters = Letters::new(store.clone());
    let began = Instant::now();
    while letters
        .backlog()
        .await
        .is_ok_and(|backlog| backlog.waiting > 0)
    {
        assert!(began.elapsed() < Duration::from_mins(2), "it does not end");
        sleep(Duration::from_millis(50)).await;
    }
}
