//! Crashes at chosen points.

use std::path::PathBuf;
use std::time::Duration;

use tempfile::TempDir;
use tokio::time::sleep;
use tower_idempotency::inbox::{Letter, Letters};
use tower_idempotency::store::{BoxStore, connect};

use crate::chaos::drained;
use crate::child::Server;
use crate::journal::{Event, Journal};
use crate::senders::{client, post};

/// A store in a scratch folder, with the processes' journal beside it.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder }
    }

    fn url(&self) -> String {
        format!("sqlite:{}", self.folder.path().join("inbox.db").display())
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("journal")
    }

    fn journal(&self) -> Journal {
        Journal::open(&self.path())
    }

    fn start(&self, options: &str) -> Server {
        let options = format!("lease-1000 {options}");
        Server::start(&self.url(), &self.path(), &options)
    }

    async fn store(&self) -> BoxStore {
        connect(&self.url()).await.unwrap()
    }

    /// The attempts of a message, as its handler was told.
    fn attempts(&self, id: &str) -> Vec<u32> {
        let mut attempts = Vec::new();
        for event in Journal::read(&self.path()) {
            if let Event::Began(began, _, attempt) = event
                && began == id
            {
                attempts.push(attempt);
            }
        }
        attempts
    }

    async fn until(&self, is_so: impl Fn(&[Event]) -> bool) {
        while !is_so(&Journal::read(&self.path())) {
            sleep(Duration::from_millis(10)).await;
        }
    }
}

async fn dead(store: &BoxStore) -> Vec<Letter> {
    Letters::new(store.clone()).dead(None, 10).await.unwrap()
}

/// A process that dies between the commit of a message and its handling: another one handles it.
///
/// Field case B115.
#[tokio::test]
async fn a_message_survives_a_crash_before_it_is_handled() {
    let place = Place::new();
    let mut first = place.start("no-worker");
    assert!(post(&client(), first.address, "a", "a-1").await);
    first.kill(&place.journal());
    let _second = place.start("");
    drained(&place.store().await).await;
    assert_eq!(place.attempts("a-1"), [1]);
}

/// A process that dies while it handles a message: another one handles it again, when the lease
/// has lapsed, as the second attempt.
///
/// Field cases P97, P100, P103.
#[tokio::test]
async fn a_message_survives_a_crash_while_it_is_handled() {
    let place = Place::new();
    let mut first = place.start("");
    assert!(post(&client(), first.address, "a", "slow-a-1").await);
    place.until(|events| events.len() == 1).await;
    first.kill(&place.journal());
    let _second = place.start("");
    place.until(|events| events.len() == 3).await;
    assert_eq!(place.attempts("slow-a-1"), [1, 2]);
}

/// A crash in the last attempt: the message is dead and not lost, and the next one comes.
///
/// Field cases P93, P95.
#[tokio::test]
async fn a_crash_in_the_last_attempt_is_a_death() {
    let place = Place::new();
    let mut first = place.start("attempts-1");
    assert!(post(&client(), first.address, "a", "slow-a-1").await);
    assert!(post(&client(), first.address, "a", "a-2").await);
    place.until(|events| events.len() == 1).await;
    first.kill(&place.journal());
    let _second = place.start("attempts-1");
    let store = place.store().await;
    drained(&store).await;
    assert_eq!(place.attempts("slow-a-1"), [1]);
    assert_eq!(place.attempts("a-2"), [1]);
    let letters = dead(&store).await;
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0].attempts, 1);
    let fault = letters[0].fault.as_deref().unwrap();
    assert!(
        fault.contains("went away during the last attempt"),
        "{fault}"
    );
}

/// A message that kills its process, every time: dead after its attempts, and the conversation
/// goes on.
///
/// Field cases B113, P90.
#[tokio::test]
async fn a_poison_message_dies_after_its_attempts() {
    let place = Place::new();
    let store = place.store().await;
    let mut server = place.start("attempts-3");
    assert!(post(&client(), server.address, "a", "poison-a-1").await);
    // Where it was accepted before its process died, and where not, its sender does not know.
    let mut is_next_accepted = post(&client(), server.address, "a", "a-2").await;
    for _ in 0..3 {
        server.ended(&place.journal()).await;
        server = place.start("attempts-3");
        while !is_next_accepted {
            is_next_accepted = post(&client(), server.address, "a", "a-2").await;
        }
    }
    drained(&store).await;
    assert_eq!(place.attempts("poison-a-1"), [1, 2, 3]);
    assert_eq!(place.attempts("a-2").len(), 1);
    assert_eq!(dead(&store).await[0].attempts, 3);
}
