//! Clauses on calls that are given up: polled some times, and dropped.
//!
//! Each clause gives up after no poll, one poll, two …, until the call ends by itself.

use futures_util::future::{join, join_all};

use crate::record::Keep;
use crate::store::contract::{Claim, Nonce, Store, Wanted};
use crate::store::lease::{Hold, Lease, Settled, Settlement};
use crate::testing::store::fixture::Fixture;
use crate::testing::store::hand::{
    LONG, SHORT, ask, begin, done, give_up, granted, key, only, record, replayed, settle, take_over,
};

/// More polls than any call takes.
const MOST_POLLS: usize = 10_000;

/// Whether a given-up claim was applied or not, the same attempt that asks again may run, once.
pub async fn a_claim_given_up_at_any_point_is_found_by_its_nonce<F: Fixture>(fixture: F) {
    let store = fixture.store();
    for polls in 0..MOST_POLLS {
        let key = key(&polls.to_string());
        let claim = Claim::new(Nonce::random(), LONG, vec![Wanted::new(key.clone())]);
        let ended = give_up(polls, store.claim(&claim)).await.is_some();
        let lease = granted(only(store.claim(&claim).await.unwrap()));
        assert_eq!(lease.attempt(), 1, "given up after {polls} polls");
        let own = lease.record(record("own"), Keep::For(LONG));
        assert_eq!(settle(store, own).await, Settled::Applied);
        assert_eq!(done(store, &key).await, record("own"));
        if ended {
            return;
        }
    }
}

/// Another attempt gets the key of a given-up claim when a lease has passed, and owns it wholly.
pub async fn a_claim_given_up_at_any_point_blocks_for_a_lease_at_most<F: Fixture>(fixture: F) {
    let store = fixture.store();
    for polls in 0..MOST_POLLS {
        let wanted = Wanted::new(key(&polls.to_string()));
        let claim = Claim::new(Nonce::random(), SHORT, vec![wanted.clone()]);
        let ended = give_up(polls, store.claim(&claim)).await.is_some();
        owned_wholly(store, &wanted).await;
        if ended {
            return;
        }
    }
}

/// The same for a claim of several keys: none of them stays half owned.
pub async fn a_batch_given_up_at_any_point_blocks_no_key_for_longer<F: Fixture>(fixture: F) {
    let store = fixture.store();
    for polls in 0..MOST_POLLS {
        let wanted: Vec<Wanted> = ["a", "b", "c"]
            .map(|id| Wanted::new(key(&format!("{polls} {id}"))))
            .to_vec();
        let claim = Claim::new(Nonce::random(), SHORT, wanted.clone());
        let ended = give_up(polls, store.claim(&claim)).await.is_some();
        join_all(wanted.iter().map(|wanted| owned_wholly(store, wanted))).await;
        if ended {
            return;
        }
    }
}

/// A record whose call was given up is sent again, and is in force once.
pub async fn a_record_given_up_at_any_point_can_be_sent_again<F: Fixture>(fixture: F) {
    let store = fixture.store();
    for polls in 0..MOST_POLLS {
        let ids = ["a", "b"].map(|id| format!("{polls} {id}"));
        let (a, b) = (
            begin(store, Wanted::new(key(&ids[0])), LONG).await,
            begin(store, Wanted::new(key(&ids[1])), LONG).await,
        );
        let both = [a, b].map(|lease| lease.record(record("a"), Keep::For(LONG)));
        let ended = give_up(polls, store.settle(&both)).await.is_some();
        let settled = store.settle(&both).await.unwrap();
        assert_eq!(
            settled,
            [Settled::Applied; 2],
            "given up after {polls} polls"
        );
        for id in &ids {
            assert_eq!(done(store, &key(id)).await, record("a"));
        }
        if ended {
            return;
        }
    }
}

/// A release whose call was given up is sent again, and harms no run that came between.
pub async fn a_release_given_up_at_any_point_can_be_sent_again<F: Fixture>(fixture: F) {
    let store = fixture.store();
    for polls in 0..MOST_POLLS {
        let wanted = Wanted::new(key(&polls.to_string()));
        let lease = begin(store, wanted.clone(), LONG).await;
        let hold = lease.hold();
        let ended = give_up(polls, store.settle(&[lease.release()]))
            .await
            .is_some();
        settle(store, release_of(&hold)).await;
        let next = begin(store, wanted.clone(), LONG).await;
        assert_eq!(settle(store, release_of(&hold)).await, Settled::Superseded);
        let own = next.record(record("own"), Keep::For(LONG));
        assert_eq!(settle(store, own).await, Settled::Applied);
        if ended {
            return;
        }
    }
}

/// Calls that wait beside one that is given up get their answers.
pub async fn calls_given_up_harm_no_others<F: Fixture>(fixture: F) {
    let store = fixture.store();
    for polls in 0..MOST_POLLS {
        let name = |call: usize| key(&format!("{polls} {call}"));
        let wanted = |call| vec![Wanted::new(name(call))];
        let claim = Claim::new(Nonce::random(), SHORT, wanted(0));
        let others = (1..8).map(async |call| {
            let lease = begin(store, Wanted::new(name(call)), LONG).await;
            settle(store, lease.record(record("a"), Keep::For(LONG))).await
        });
        let (given_up, others) = join(give_up(polls, store.claim(&claim)), join_all(others)).await;
        assert!(others.iter().all(|settled| *settled == Settled::Applied));
        if given_up.is_some() {
            return;
        }
    }
}

/// A claim that is repeated until it may run gets a lease that can be spent.
async fn owned_wholly<S: Store>(store: &S, wanted: &Wanted) {
    let lease = take_over(store, wanted, LONG).await;
    let own = lease.record(record("own"), Keep::For(LONG));
    assert_eq!(settle(store, own).await, Settled::Applied);
    let again = replayed(ask(store, wanted.clone(), LONG).await);
    assert_eq!(again, record("own"));
}

fn release_of(hold: &Hold) -> Settlement {
    Lease::new(hold.key.clone(), hold.token, 1).release()
}
