//! Callers that come together go together: how many statements a crowd takes, and that each of a
//! crowd has its own answer.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::sleep;
use tower_idempotency::store::{
    Accepted, Claim, Nonce, PostgresStore, Queue, Settled, Store, Verdict, Wanted,
};
use tower_idempotency::{Keep, Key, Record};

use crate::cluster::Cluster;
use crate::database::{Schema, client};
use crate::fixture::{fresh, open, options};
use crate::hand::until;
use crate::inbox::message;

const CALLERS: usize = 32;
const EACH: usize = 60;

/// Runs messages one after another, each from its claim to its record.
async fn run(store: PostgresStore, caller: usize) {
    for number in 0..EACH {
        let key = Key::new("test", "crowd", &[&format!("{caller}-{number}")]);
        let claim = Claim::new(
            Nonce::random(),
            Duration::from_secs(30),
            vec![Wanted::new(key)],
        );
        let Verdict::Run(lease) = store.claim(&claim).await.unwrap().pop().unwrap() else {
            panic!("a new message is not run");
        };
        let end = lease.record(
            Record::tombstone().into(),
            Keep::For(Duration::from_mins(1)),
        );
        assert_eq!(store.settle(&[end]).await.unwrap(), [Settled::Applied]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_of_a_crowd_goes_with_the_others() {
    let cluster = Cluster::start(&["track_functions = pl"]);
    let schema = Schema::new(&cluster.url());
    let store = open(&cluster.url(), &options(&schema)).await;
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        callers.spawn(run(store.clone(), caller));
    }
    callers.join_all().await;
    let client = client(&cluster.url()).await;
    let calls = "SELECT coalesce(sum(calls) FILTER (WHERE funcname ~ '_(begin|end)$'), 0)::bigint, \
        coalesce(sum(calls) FILTER (WHERE funcname ~ '_(claim|settle)$'), 0)::bigint \
        FROM pg_stat_user_functions";
    let (alone, together): (i64, i64) = until("the server has counted", async || {
        sleep(Duration::from_millis(1500)).await;
        let row = client.query_one(calls, &[]).await.unwrap();
        let (alone, together) = (row.get(0), row.get(1));
        (together > 0).then_some((alone, together))
    })
    .await;
    // Where the first goes by itself, there are as many of the ones as of the others.
    assert!(
        3 * alone < 2 * together,
        "{alone} statements of one call, {together} of several"
    );
}

/// Accepts the messages of a sender one after another, and counts those that are new.
async fn send(store: PostgresStore, sender: usize) -> usize {
    let mut new = Vec::new();
    for number in 0..MESSAGES {
        let coming = message(&format!("{sender}"), &format!("{sender}-{number}"));
        match store.accept(&[coming], None).await.unwrap()[..] {
            [Accepted::New { place, .. }] => new.push(place),
            [Accepted::Repeat(_)] => {}
            ref other => panic!("one message has several answers: {other:?}"),
        }
    }
    assert!(new.is_sorted(), "{new:?}");
    new.len()
}

const SENDERS: usize = 200;
const MESSAGES: usize = 10;

/// So many that acceptances part in two; each message comes twice at the same time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_that_parts_has_each_message_accepted_once_and_in_the_order_of_its_sender() {
    let (store, _schema) = fresh().await;
    let mut senders = JoinSet::new();
    for sender in 0..SENDERS * 2 {
        senders.spawn(send(store.clone(), sender / 2));
    }
    let new: usize = senders.join_all().await.iter().sum();
    assert_eq!(new, SENDERS * MESSAGES);
    let kept = store.backlog().await.unwrap().waiting;
    assert_eq!(kept, u64::try_from(SENDERS * MESSAGES).unwrap());
}
