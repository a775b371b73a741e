//! What the routes did, in Prometheus' text format.

use std::fmt::Write;

use tower_idempotency::Counts;
use tower_idempotency::inbox::InboxCounts;

use crate::route::Told;

type Count = (&'static str, fn(&Counts) -> u64);
type InboxCount = (&'static str, fn(&InboxCounts) -> u64);

const COUNTS: [Count; 20] = [
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
    ("unavailable", |it| it.unavailable),
    ("store_failures", |it| it.store_failures),
    ("renewals_lost", |it| it.renewals_lost),
    ("detached", |it| it.detached),
    ("overloaded", |it| it.overloaded),
    ("nested", |it| it.nested),
];

const INBOX_COUNTS: [InboxCount; 12] = [
    ("accepted", |it| it.accepted),
    ("repeats_of_waiting", |it| it.repeats_of_waiting),
    ("repeats_of_done", |it| it.repeats_of_done),
    ("repeats_of_dead", |it| it.repeats_of_dead),
    ("handled", |it| it.handled),
    ("failed", |it| it.failed),
    ("died", |it| it.died),
    ("lost", |it| it.lost),
    ("given_back", |it| it.given_back),
    ("store_failures", |it| it.store_failures),
    ("without_key", |it| it.without_key),
    ("refused", |it| it.refused),
];

/// The counts of each route, by its path.
pub(crate) fn text(routes: &[(&str, Told)]) -> String {
    let mut text = String::new();
    let mut add = |kind: &str, name: &str, path: &str, count: u64| {
        // Writing to a text does not fail.
        writeln!(text, "{kind}_{name}_total{{route={path:?}}} {count}").ok();
    };
    for (path, told) in routes {
        match told {
            Told::InLine(counts) => {
                for (name, count) in COUNTS {
                    add("idempotency", name, path, count(counts));
                }
            }
            Told::AckFirst(counts) => {
                for (name, count) in INBOX_COUNTS {
                    add("inbox", name, path, count(counts));
                }
            }
        }
    }
    text
}
