//! The layer's counts, in Prometheus' text format.

use std::fmt::Write;

use tower_idempotency::Counts;

type Count = (&'static str, fn(&Counts) -> u64);

const COUNTS: [Count; 18] = [
    ("without_key", |it| it.without_key),
    ("runs", |it| it.runs),
    ("replayed", |it| it.replayed),
    ("acked", |it| it.acked),
    ("waited", |it| it.waited),
    ("busy", |it| it.busy),
    ("refused", |it| it.refused),
    ("mismatched", |it| it.mismatched),
    ("not_kept", |it| it.not_kept),
    ("recorded", |it| it.recorded),
    ("released", |it| it.released),
    ("superseded", |it| it.superseded),
    ("unconfirmed", |it| it.unconfirmed),
    ("unprotected", |it| it.unprotected),
    ("store_failures", |it| it.store_failures),
    ("renewals_lost", |it| it.renewals_lost),
    ("detached", |it| it.detached),
    ("overloaded", |it| it.overloaded),
];

/// The counts of each route, by its path.
pub(crate) fn text(routes: &[(&str, Counts)]) -> String {
    let mut text = String::new();
    for (name, count) in COUNTS {
        for (path, counts) in routes {
            // Writing to a text does not fail.
            writeln!(
                text,
                "idempotency_{name}_total{{route={path:?}}} {}",
                count(counts)
            )
            .ok();
        }
    }
    text
}
