//! Clauses on calls that concern several keys.

use futures_util::future::join_all;

use crate::record::Keep;
use crate::store::contract::{Claim, Nonce, Sight, Store, Verdict, Wanted};
use crate::store::lease::{Hold, Lease, Settled, Token};
use crate::testing::store::fixture::Fixture;
use crate::testing::store::hand::{
    LONG, begin, done, finish, granted, key, print, record, remaining,
};

/// Some may run, some are busy, some done, some another request's: each says its own, in the order
/// of the question, and the free ones are granted although others are not.
pub async fn each_key_is_answered_by_itself_and_in_order<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let lease = begin(store, Wanted::new(key("busy")), LONG).await;
    finish(store, Wanted::new(key("done")), Keep::For(LONG)).await;
    finish(
        store,
        Wanted::new(key("other")).fingerprint(print(1)),
        Keep::For(LONG),
    )
    .await;
    let mut kinds = vec!["done", "free", "other", "busy"];
    for round in 0..kinds.len() {
        kinds.rotate_left(1);
        let free = format!("free {round}");
        let id = |kind: &&str| {
            if *kind == "free" {
                free.clone()
            } else {
                (*kind).to_owned()
            }
        };
        let wanted = |kind| Wanted::new(key(&id(kind))).fingerprint(print(2));
        let wanted: Vec<Wanted> = kinds.iter().map(wanted).collect();
        let asked = Claim::new(Nonce::random(), LONG, wanted);
        let verdicts = store.claim(&asked).await.unwrap();
        let answers: Vec<&str> = verdicts.iter().map(kind).collect();
        assert_eq!(answers, kinds);
        assert!(remaining(store, &key(&free)).await > LONG / 2);
    }
    drop(lease);
}

/// A settlement that matches nothing does not keep the others of its call from being applied.
pub async fn settlements_of_one_call_are_answered_by_themselves<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let a = begin(store, Wanted::new(key("a")), LONG).await;
    let b = begin(store, Wanted::new(key("b")), LONG).await;
    let nobody = Lease::new(key("c"), Token::new(a.token().number()), 1);
    let settlements = [
        b.record(record("b"), Keep::For(LONG)),
        a.release(),
        nobody.record(record("c"), Keep::For(LONG)),
    ];
    let settled = store.settle(&settlements).await.unwrap();
    let applied = settled.iter().map(|settled| *settled == Settled::Applied);
    assert_eq!(applied.collect::<Vec<_>>(), [true, true, false]);
    let sights = store.look(&["a", "b", "c"].map(key)).await.unwrap();
    assert!(
        matches!(
            sights.as_slice(),
            [Sight::Absent, Sight::Done(_), Sight::Absent]
        ),
        "{sights:?}"
    );
    assert_eq!(done(store, &key("b")).await, record("b"));
}

/// Calls that name the same keys in opposite orders do not block each other, and no deadlock
/// reaches a caller; each key goes to one of them.
pub async fn overlapping_claims_in_opposite_order_all_end<F: Fixture>(fixture: F) {
    let store = fixture.store();
    for round in 0..10 {
        let calls = join_all((0..32).map(|call| claim_of(store, round, call))).await;
        let mut leases: Vec<Lease> = calls.into_iter().flatten().collect();
        leases.sort_by(|a, b| a.key().cmp(b.key()));
        let count = leases.len();
        leases.dedup_by(|a, b| a.key() == b.key());
        assert_eq!((count, leases.len()), (KEYS, KEYS), "a lease for each key");
    }
}

/// The same for settlements.
pub async fn overlapping_settlements_in_opposite_order_all_end<F: Fixture>(fixture: F) {
    let store = fixture.store();
    for round in 0..10 {
        let leases = claim_of(store, round, 0).await;
        assert_eq!(leases.len(), KEYS);
        let holds: Vec<Hold> = leases.iter().map(Lease::hold).collect();
        let settle = async |call: usize| {
            let lease = |hold: &Hold| Lease::new(hold.key.clone(), hold.token, 1);
            let record = |hold: &Hold| lease(hold).record(record("a"), Keep::For(LONG));
            let mut settlements: Vec<_> = holds.iter().map(record).collect();
            if call % 2 == 1 {
                settlements.reverse();
            }
            store.settle(&settlements).await.unwrap()
        };
        let settled = join_all((0..32).map(settle)).await;
        assert!(
            settled
                .concat()
                .iter()
                .all(|settled| *settled == Settled::Applied)
        );
    }
}

/// A batch whose answer was lost is asked again: the same leases, none more.
pub async fn a_repeated_batch_gives_the_same_leases<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let busy = begin(store, Wanted::new(key("b")), LONG).await;
    let wanted = ["a", "b", "c"].map(|id| Wanted::new(key(id)));
    let claim = Claim::new(Nonce::random(), LONG, wanted.to_vec());
    let first = store.claim(&claim).await.unwrap();
    let again = store.claim(&claim).await.unwrap();
    let holds = |verdicts: Vec<Verdict>| -> Vec<Hold> {
        let granted = |verdict| match verdict {
            Verdict::Run(lease) => Some(lease.hold()),
            _ => None,
        };
        verdicts.into_iter().filter_map(granted).collect()
    };
    let first = holds(first);
    assert_eq!(first.len(), 2);
    assert_eq!(first, holds(again));
    drop(busy);
}

/// A call without keys is a call like any other.
pub async fn calls_that_ask_nothing_are_answered_nothing<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let claim = Claim::new(Nonce::random(), LONG, Vec::new());
    assert!(store.claim(&claim).await.unwrap().is_empty());
    assert!(store.renew(&[], LONG).await.unwrap().is_empty());
    assert!(store.settle(&[]).await.unwrap().is_empty());
    assert!(store.look(&[]).await.unwrap().is_empty());
}

const KEYS: usize = 10;

/// Claims ten keys of this round; every other call names them backwards.
async fn claim_of<S: Store>(store: &S, round: usize, call: usize) -> Vec<Lease> {
    let id = |number| format!("{round} {number}");
    let mut wanted: Vec<Wanted> = (0..KEYS).map(|n| Wanted::new(key(&id(n)))).collect();
    if call % 2 == 1 {
        wanted.reverse();
    }
    let claim = Claim::new(Nonce::random(), LONG, wanted);
    let verdicts = store.claim(&claim).await.unwrap();
    let runs = verdicts
        .into_iter()
        .filter(|v| matches!(v, Verdict::Run(_)));
    runs.map(granted).collect()
}

fn kind(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Run(_) => "free",
        Verdict::Running { .. } => "busy",
        Verdict::Replay(_) => "done",
        Verdict::Unknown { .. } => "unknown",
        Verdict::Other { .. } => "other",
    }
}
