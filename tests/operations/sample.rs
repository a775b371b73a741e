//! The message that the page speaks of, as it runs, and as it is dead in an inbox.

use std::time::Duration;

use bytes::Bytes;
use tower_idempotency::store::{
    Arrival, Claim, Ended, Hold, Lease, Nonce, Queue, Report, Settled, Standing, Store, Then,
    Verdict, Wanted,
};
use tower_idempotency::{Keep, Key};

use crate::turns::begun;

/// The page's message.
pub(crate) fn key() -> Key {
    Key::new("whatsapp", "106540352242922", &["wamid.A"])
}

fn claim() -> Claim {
    let lease = Duration::from_hours(1);
    Claim::new(Nonce::random(), lease, vec![Wanted::new(key())])
}

/// The message is claimed by a run that does not end.
pub(crate) async fn begin(store: &impl Store) -> Lease {
    match store.claim(&claim()).await.unwrap().pop() {
        Some(Verdict::Run(lease)) => lease,
        other => panic!("not free: {other:?}"),
    }
}

/// The message's key was freed: its run has lost it, and the next repeat runs.
pub(crate) async fn freed(store: &impl Store, stuck: Lease) {
    let hold: Hold = stuck.hold();
    let renewed = store.renew(&[hold], Duration::from_hours(1)).await.unwrap();
    assert_eq!(renewed, [Standing::Lost]);
    let next = begin(store).await;
    assert_eq!(next.attempt(), 2);
    assert!(next.token() > stuck.token());
    let settled = store.settle(&[stuck.release()]).await.unwrap();
    assert_eq!(settled, [Settled::Superseded]);
}

/// The message waits in the inbox; another one is dead.
pub(crate) async fn fill_inbox(store: &impl Queue) {
    let keep = Keep::For(Duration::from_hours(24));
    let lease = Duration::from_hours(1);
    let dead = Key::new("whatsapp", "106540352242922", &["wamid.B"]);
    for (key, dies) in [(dead, true), (key(), false)] {
        let arrival = Arrival::new(key, keep, Bytes::from_static(b"raw"));
        let line = arrival.line();
        let accepted = store.accept(&[arrival], Some(lease)).await.unwrap();
        let (place, turn) = begun(line, &accepted);
        let ended = Ended::Dead {
            attempt: 1,
            fault: "answered 500".to_owned(),
        };
        let report = Report::new(turn, place, ended, Then::GiveBack);
        if dies {
            store.report(&[report]).await.unwrap();
        }
    }
    let backlog = store.backlog().await.unwrap();
    assert_eq!((backlog.waiting, backlog.dead), (1, 1));
}
