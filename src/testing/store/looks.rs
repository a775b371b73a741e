//! Clauses on looks: they see, and change nothing.

use crate::record::Keep;
use crate::store::contract::{Sight, Store, Wanted};
use crate::testing::store::fixture::Fixture;
use crate::testing::store::hand::{
    LONG, SHORT, ask, begin, busy, done, finish, is_absent, key, lapse, remaining, swept, take_over,
};

/// Absent, running with what is left of the lease, lapsed with nothing left, done.
pub async fn a_look_sees_each_state<F: Fixture>(fixture: F) {
    let store = fixture.store();
    assert!(is_absent(store, &key("a")).await);
    let first = begin(store, Wanted::new(key("a")), SHORT).await;
    assert!(remaining(store, &key("a")).await <= SHORT);
    lapse(store, &key("a")).await;
    assert!(remaining(store, &key("a")).await.is_zero());
    let second = take_over(store, &Wanted::new(key("a")), LONG).await;
    let left = remaining(store, &key("a")).await;
    assert!(left > LONG / 2 && left <= LONG, "{left:?}");
    let record = finish(store, Wanted::new(key("b")), Keep::For(LONG)).await;
    assert_eq!(done(store, &key("b")).await, record);
    drop((first, second));
}

/// Looks at several keys are answered in the order of the question.
pub async fn looks_are_answered_in_order<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let lease = begin(store, Wanted::new(key("running")), LONG).await;
    finish(store, Wanted::new(key("done")), Keep::For(LONG)).await;
    let keys = ["running", "absent", "done", "done", "absent too"].map(key);
    let sights = store.look(&keys).await.unwrap();
    assert!(
        matches!(
            sights.as_slice(),
            [
                Sight::Running { .. },
                Sight::Absent,
                Sight::Done(_),
                Sight::Done(_),
                Sight::Absent
            ]
        ),
        "{sights:?}"
    );
    drop(lease);
}

/// A look claims nothing, and extends neither a lease nor a retention.
pub async fn a_look_changes_nothing<F: Fixture>(fixture: F) {
    let store = fixture.store();
    assert!(is_absent(store, &key("a")).await);
    let lease = begin(store, Wanted::new(key("a")), SHORT).await;
    busy_until_lapsed(store).await;
    finish(store, Wanted::new(key("b")), Keep::For(SHORT)).await;
    swept(store, &key("b")).await;
    drop(lease);
}

/// Looks all the time; a look that extended the lease would never let it lapse.
async fn busy_until_lapsed<S: Store>(store: &S) {
    lapse(store, &key("a")).await;
    let next = begin(store, Wanted::new(key("a")), LONG).await;
    busy(ask(store, Wanted::new(key("a")), LONG).await);
    assert_eq!(next.attempt(), 2);
}
