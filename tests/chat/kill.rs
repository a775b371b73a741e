//! 500 WhatsApp messages, each posted four times by senders of which half go away, to a server that
//! is killed three times: each is answered in the end, runs once unless a kill cut its run, and no
//! success is given for what did not run.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::join;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::http::{self, Response};
use crate::log;
use crate::server::Server;
use crate::whatsapp::{PATH, Webhook, webhooks};

const MESSAGES: usize = 500;
const KILLS: usize = 3;
/// How many webhooks are on their way at once.
const AT_ONCE: usize = 96;
/// How long a run takes; senders that go away do it within.
const RUN: &str = "120";
const LEAVE_AFTER: Duration = Duration::from_millis(50);
/// How soon the work of a killed process may be taken over.
const LEASE: &str = "5000";

#[tokio::test]
async fn five_hundred_messages_survive_repeats_leaving_senders_and_three_kills() {
    let mut server = Server::start(&[("DELAY_MS", RUN), ("LEASE_MS", LEASE)]).await;
    let webhooks = webhooks(MESSAGES);
    let post = Arc::new(Post::new(server.address()));

    let mut senders = JoinSet::new();
    for (number, webhook) in webhooks.iter().cloned().enumerate() {
        senders.spawn(Arc::clone(&post).deliver(number, webhook));
    }
    let mut cuts = Cuts::default();
    for kill in 1..=KILLS {
        post.wait_for(webhooks.len() * kill / (KILLS + 1)).await;
        server.kill().await;
        cuts.note(&server, &post, &webhooks).await;
        server.restart().await;
    }
    while let Some(sender) = senders.join_next().await {
        sender.unwrap();
    }

    let runs = log::runs(&server.file());
    for (_, id) in &messages(&webhooks) {
        let runs = runs.get(id).copied().unwrap_or_default();
        let cut = cuts.of.get(id).copied().unwrap_or_default();
        assert!(runs.ended > 0, "{id} was answered and never ran");
        assert_eq!(runs.begun, 1 + cut, "{id}, cut by {cut} kills: {runs:?}");
    }
    assert!(!cuts.of.is_empty(), "no kill cut a run: nothing was shown");
    assert_eq!(runs.len(), messages(&webhooks).len());
    assert!(post.replays.load(Ordering::Relaxed) > webhooks.len() / 4);
    assert!(server.interrupt().await.success());
}

/// Which runs the kills have cut.
#[derive(Default)]
struct Cuts {
    of: HashMap<String, u32>,
    begun: HashMap<String, u32>,
}

impl Cuts {
    /// Looks at the file of a server that was just killed. A run is cut if it had begun since the
    /// last kill and its message is not done.
    async fn note(&mut self, server: &Server, post: &Post, webhooks: &[Webhook]) {
        let runs = log::runs(&server.file());
        let done = log::done(&server.file(), &messages(webhooks)).await;
        let answered = post.answered();
        for (number, id) in numbered(webhooks) {
            let begun = runs.get(id).map_or(0, |runs| runs.begun);
            let before = self.begun.insert(id.to_owned(), begun).unwrap_or_default();
            if done.contains(id) {
                continue;
            }
            assert!(!answered.contains(&number), "{id} was answered and is lost");
            if begun > before {
                *self.of.entry(id.to_owned()).or_default() += 1;
            }
        }
    }
}

/// The id of each message, with the number of the webhook that carries it.
fn numbered(webhooks: &[Webhook]) -> impl Iterator<Item = (usize, &str)> {
    let numbered = webhooks.iter().enumerate();
    numbered.flat_map(|(number, webhook)| {
        let ids = webhook.messages.iter().map(|(_, id)| id.as_str());
        ids.map(move |id| (number, id))
    })
}

fn messages(webhooks: &[Webhook]) -> Vec<(String, String)> {
    webhooks.iter().flat_map(|w| w.messages.clone()).collect()
}

/// All senders together.
struct Post {
    address: SocketAddr,
    room: Semaphore,
    /// The body of the first success that each webhook was given.
    successes: Mutex<HashMap<usize, Vec<u8>>>,
    replays: AtomicUsize,
}

impl Post {
    fn new(address: SocketAddr) -> Self {
        Self {
            address,
            room: Semaphore::new(AT_ONCE),
            successes: Mutex::default(),
            replays: AtomicUsize::default(),
        }
    }

    /// Posts one webhook four times: two at once, one while they run, one after; and then goes on
    /// until it has a success. Every other attempt goes away early.
    async fn deliver(self: Arc<Self>, number: usize, webhook: Webhook) {
        let _room = self.room.acquire().await.unwrap();
        let request = http::post(PATH, &[], &webhook.body);
        let attempt = |turn: usize| self.attempt(number, turn, &request);
        let late = async {
            sleep(LEAVE_AFTER).await;
            attempt(2).await;
        };
        join!(attempt(0), attempt(1), late);
        attempt(3).await;
        while !self.has_answered(number) {
            sleep(Duration::from_millis(200)).await;
            self.stay(number, &request).await;
        }
    }

    async fn attempt(&self, number: usize, turn: usize, request: &[u8]) {
        if (number + turn).is_multiple_of(2) {
            // A failure is what this sender does not wait to see.
            drop(http::send_and_leave(self.address, request, LEAVE_AFTER).await);
        } else {
            self.stay(number, request).await;
        }
    }

    /// Posts once and reads the answer. No answer and 503 are what a sender repeats after.
    async fn stay(&self, number: usize, request: &[u8]) {
        match http::exchange(self.address, request).await {
            Ok(answer) if answer.is_success() => self.note(number, &answer),
            Ok(answer) => assert_eq!(answer.status, 503, "{}", answer.text()),
            Err(error) => assert_ne!(error.kind(), io::ErrorKind::TimedOut),
        }
    }

    fn note(&self, number: usize, answer: &Response) {
        if answer.is_replay() {
            self.replays.fetch_add(1, Ordering::Relaxed);
        }
        let mut successes = self.successes.lock().unwrap();
        let first = successes
            .entry(number)
            .or_insert_with(|| answer.body.clone());
        assert_eq!(*first, answer.body, "webhook {number} has two successes");
    }

    fn has_answered(&self, number: usize) -> bool {
        self.successes.lock().unwrap().contains_key(&number)
    }

    fn answered(&self) -> Vec<usize> {
        self.successes.lock().unwrap().keys().copied().collect()
    }

    async fn wait_for(&self, successes: usize) {
        while self.successes.lock().unwrap().len() < successes {
            sleep(Duration::from_millis(5)).await;
        }
    }
}
