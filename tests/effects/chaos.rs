//! Many messages, two processes, kills, pauses, callers that hang up, and a database that restarts.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use reqwest::Client;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tower_idempotency::store::connect;

use crate::child::{LEASE, Server};
use crate::cluster::{Cluster, Stop};
use crate::tables::{Chat, Sums};

/// How many messages.
fn size() -> usize {
    let messages = std::env::var("EFFECTS_MESSAGES").ok();
    messages.map_or(300, |text| text.parse().unwrap())
}

/// How many are sent at the same time.
const SENDERS: usize = 8;

/// What the first caller who was answered with success got.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) is_replay: bool,
    pub(crate) body: String,
}

/// Sends messages over HTTP.
#[derive(Clone)]
pub(crate) struct Sender(Client);

impl Sender {
    pub(crate) fn new() -> Self {
        let client = Client::builder().timeout(Duration::from_secs(5)).build();
        Self(client.unwrap())
    }

    /// Sends a message; `None` if it is not answered with success.
    pub(crate) async fn post(&self, address: SocketAddr, key: &str) -> Option<Done> {
        let request = self
            .0
            .post(format!("http://{address}/messages"))
            .header("idempotency-key", key)
            .header("x-user", "ann")
            .body("hello");
        let answer = request.send().await.ok()?;
        if !answer.status().is_success() {
            return None;
        }
        let is_replay = answer.headers().contains_key("idempotency-replayed");
        let body = answer.text().await.ok()?;
        Some(Done { is_replay, body })
    }

    pub(crate) async fn until_done(&self, address: SocketAddr, key: &str) -> Done {
        loop {
            if let Some(done) = self.post(address, key).await {
                return done;
            }
            sleep(Duration::from_millis(50)).await;
        }
    }
}

/// Waits until so many are notified.
pub(crate) async fn notified(chat: &Chat, count: i64) {
    let began = Instant::now();
    loop {
        let [.., different] = chat.sums().await;
        if different >= count {
            return;
        }
        assert!(
            began.elapsed() < Duration::from_mins(2),
            "{different} of {count}"
        );
        sleep(Duration::from_millis(50)).await;
    }
}

type Addresses = Arc<Mutex<[SocketAddr; 2]>>;

/// Sends a message until it is done, up to five times over: to either server, now and then hanging
/// up before the answer.
async fn send(sender: &Sender, addresses: &Addresses, key: &str, random: &mut StdRng) {
    let mut copies = random.random_range(1..=5);
    while copies > 0 {
        let address = addresses.lock().unwrap()[random.random_range(0..2)];
        let patience = if random.random_bool(0.2) {
            Duration::from_millis(random.random_range(0..20))
        } else {
            Duration::from_secs(5)
        };
        let posted = tokio::time::timeout(patience, sender.post(address, key)).await;
        if let Ok(Some(_)) = posted {
            copies -= 1;
        } else {
            sleep(Duration::from_millis(20)).await;
        }
    }
}

async fn send_all(addresses: &Addresses, messages: usize) {
    let sender = Sender::new();
    let mut senders = JoinSet::new();
    for first in 0..SENDERS {
        let (sender, addresses) = (sender.clone(), Arc::clone(addresses));
        let mut random = StdRng::seed_from_u64(u64::try_from(first).unwrap());
        senders.spawn(async move {
            for number in (first..messages).step_by(SENDERS) {
                send(&sender, &addresses, &format!("m{number}"), &mut random).await;
            }
        });
    }
    senders.join_all().await;
}

/// Sends all messages to two processes, which are paused for longer than a lease and killed by
/// turns, with `meanwhile` after each kill. Gives what was written, and how often was killed.
async fn run(url: &str, options: &str, mut meanwhile: impl FnMut()) -> (Sums, usize) {
    let folder = tempfile::tempdir().unwrap();
    drop(connect(url).await.unwrap());
    let chat = Chat::open(url);
    chat.make().await;
    let mut servers = [0, 1].map(|_| Server::start(url, folder.path(), options));
    let addresses: Addresses = Arc::new(Mutex::new([0, 1].map(|n: usize| servers[n].address)));
    let messages = size();
    let all = {
        let addresses = Arc::clone(&addresses);
        tokio::spawn(async move { send_all(&addresses, messages).await })
    };
    let mut kills = 0;
    while !all.is_finished() {
        let victim = kills % 2;
        sleep(Duration::from_millis(500)).await;
        servers[victim].signal("STOP");
        sleep(LEASE * 2).await;
        servers[victim].signal("CONT");
        sleep(Duration::from_millis(700)).await;
        servers[victim].kill();
        meanwhile();
        servers[victim] = Server::start(url, folder.path(), options);
        addresses.lock().unwrap()[victim] = servers[victim].address;
        kills += 1;
    }
    all.await.unwrap();
    notified(&chat, i64::try_from(messages).unwrap()).await;
    // Whatever would come twice has the time to.
    sleep(LEASE * 2).await;
    let sums = chat.sums().await;
    println!("{messages} messages, {kills} kills and pauses: {sums:?}");
    (sums, kills)
}

fn exactly() -> Sums {
    [i64::try_from(size()).unwrap(); 5]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_sqlite_everything_is_once() {
    let folder = tempfile::tempdir().unwrap();
    let path: &Path = folder.path();
    let url = format!("sqlite:{}", path.join("chat.db").display());
    let (sums, kills) = run(&url, "", || {}).await;
    assert!(kills > 0);
    assert_eq!(sums, exactly());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_postgresql_everything_is_once() {
    let cluster = Cluster::start(&["max_connections = 200"]);
    let mut restarts = [Stop::Immediate, Stop::Fast].into_iter();
    let (sums, kills) = run(&cluster.url(), "", || {
        if let Some(how) = restarts.next() {
            cluster.stop(how);
            cluster.resume();
        }
    })
    .await;
    assert!(kills > 0);
    assert_eq!(sums, exactly());
}

/// The same without the transaction, so that the tests above can fail at all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn apart_from_the_transaction_things_come_twice() {
    let cluster = Cluster::start(&["max_connections = 200"]);
    let (sums, _) = run(&cluster.url(), "apart", || {}).await;
    let [messages, different, unread, notifications, people] = sums;
    assert_eq!((different, people), (exactly()[0], exactly()[0]));
    assert!(messages > different, "{sums:?}");
    assert!(unread > different && notifications > people, "{sums:?}");
}
