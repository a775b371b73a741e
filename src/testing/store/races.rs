//! Clauses on claims that come at once.

use std::collections::HashSet;
use std::sync::Arc;

use futures_util::future::{join, join_all};
use tokio::task::JoinSet;

use crate::record::Keep;
use crate::store::contract::{Nonce, Store, Verdict, Wanted};
use crate::store::lease::{Lease, Settled, Standing, Token};
use crate::testing::store::fixture::Fixture;
use crate::testing::store::hand::{
    LONG, SHORT, ask, ask_as, begin, done, granted, key, lapse, record, remaining, renew, settle,
};

const CLAIMS: usize = 64;
const ROUNDS: usize = 20;

/// 64 claims through one handle: one runs, the others are told that it does.
pub async fn of_64_claims_through_one_handle_one_runs<F: Fixture>(fixture: F) {
    let store = fixture.store();
    for round in 0..ROUNDS {
        let wanted = Wanted::new(key(&round.to_string()));
        let claims = (0..CLAIMS).map(|_| ask(store, wanted.clone(), LONG));
        let lease = one_runs(join_all(claims).await);
        assert_eq!(lease.attempt(), 1);
    }
}

/// 64 claims through 64 handles, on several threads: one runs.
pub async fn of_64_claims_through_64_handles_one_runs<F: Fixture>(fixture: F) {
    let store = fixture.store();
    for round in 0..ROUNDS {
        let lease = one_runs(race(store, &round.to_string()).await);
        assert_eq!(lease.attempt(), 1);
    }
}

/// 64 claims of a key whose lease has lapsed: one takes over.
pub async fn of_64_claims_of_a_lapsed_key_one_runs<F: Fixture>(fixture: F) {
    let store = fixture.store();
    for round in 0..5 {
        let id = round.to_string();
        let stale = begin(store, Wanted::new(key(&id)), SHORT).await;
        lapse(store, &key(&id)).await;
        let lease = one_runs(race(store, &id).await);
        assert_eq!(lease.attempt(), 2);
        assert!(lease.token() > stale.token());
    }
}

/// One claim that arrives 64 times at once, doubled by a network or a retry, is one lease.
pub async fn the_same_claim_64_times_at_once_is_one_lease<F: Fixture>(fixture: F) {
    let store = fixture.store();
    for round in 0..ROUNDS {
        let (nonce, wanted) = (Nonce::random(), Wanted::new(key(&round.to_string())));
        let claims = (0..CLAIMS).map(|_| ask_as(store, nonce, wanted.clone(), LONG));
        let leases: Vec<Lease> = join_all(claims).await.into_iter().map(granted).collect();
        let tokens: HashSet<Token> = leases.iter().map(Lease::token).collect();
        assert_eq!(tokens.len(), 1, "{tokens:?}");
        assert!(leases.iter().all(|lease| lease.attempt() == 1));
    }
}

/// A late record against a take-over: either it is in force and the claim replays it, or the claim
/// runs and the record is refused.
pub async fn a_record_and_a_take_over_exclude_each_other<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let rounds = (0..ROUNDS).map(async |round| {
        let key = key(&round.to_string());
        let late = begin(store, Wanted::new(key.clone()), SHORT).await;
        lapse(store, &key).await;
        let late = late.record(record("late"), Keep::For(LONG));
        let claim = ask(store, Wanted::new(key.clone()), LONG);
        match join(settle(store, late), claim).await {
            (Settled::Applied, Verdict::Replay(replayed)) => assert_eq!(replayed, record("late")),
            (Settled::Superseded, Verdict::Run(lease)) => {
                let own = lease.record(record("own"), Keep::For(LONG));
                assert_eq!(settle(store, own).await, Settled::Applied);
                assert_eq!(done(store, &key).await, record("own"));
            }
            both => panic!("{both:?}"),
        }
    });
    join_all(rounds).await;
}

/// A late renewal against a take-over: the lease is one's or the other's.
pub async fn a_renewal_and_a_take_over_exclude_each_other<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let rounds = (0..ROUNDS).map(async |round| {
        let key = key(&round.to_string());
        let late = begin(store, Wanted::new(key.clone()), SHORT).await;
        lapse(store, &key).await;
        let claim = ask(store, Wanted::new(key.clone()), LONG);
        match join(renew(store, &late, LONG), claim).await {
            (Standing::Renewed, Verdict::Running { .. }) | (Standing::Lost, Verdict::Run(_)) => {}
            both => panic!("{both:?}"),
        }
        assert!(remaining(store, &key).await > LONG / 2);
    });
    join_all(rounds).await;
}

/// The verdicts of 64 claims that start together, each in a task with its own handle.
async fn race<S: Store>(store: &S, id: &str) -> Vec<Verdict> {
    let start = Arc::new(tokio::sync::Barrier::new(CLAIMS));
    let mut tasks = JoinSet::new();
    for _ in 0..CLAIMS {
        let (store, start, key) = (store.clone(), Arc::clone(&start), key(id));
        tasks.spawn(async move {
            start.wait().await;
            ask(&store, Wanted::new(key), LONG).await
        });
    }
    tasks.join_all().await
}

/// The lease of the one claim that may run; all others are told that it is running.
fn one_runs(verdicts: Vec<Verdict>) -> Lease {
    let (mut runs, others): (Vec<_>, Vec<_>) = verdicts
        .into_iter()
        .partition(|verdict| matches!(verdict, Verdict::Run(_)));
    assert_eq!(runs.len(), 1, "of {CLAIMS} claims");
    assert!(
        others
            .iter()
            .all(|verdict| matches!(verdict, Verdict::Running { .. })),
        "{others:?}"
    );
    granted(runs.remove(0))
}
