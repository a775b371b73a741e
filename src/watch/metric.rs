//! The names of all metrics and their labels.

/// One metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metric {
    /// Its name, in the form that Prometheus asks for.
    pub name: &'static str,
    /// What is measured.
    pub kind: Kind,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// What it tells.
    pub about: &'static str,
}

/// What a metric measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// A number that only grows.
    Counter,
    /// A number as it stands.
    Gauge,
    /// Durations, in seconds.
    Histogram,
}

/// Requests, by what they came to.
pub const REQUESTS: Metric = counter(
    "idempotency_requests_total",
    &[CHANNEL, MODE, OUTCOME],
    "Requests, by what they came to",
);

/// How long after its sender wrote it a message came again.
pub const REPEAT_AGE_SECONDS: Metric = histogram(
    "idempotency_repeat_age_seconds",
    &[CHANNEL],
    "How long after it was sent a message came again",
);

/// How long repeats waited for a run.
pub const WAIT_SECONDS: Metric = histogram(
    "idempotency_wait_seconds",
    &[CHANNEL],
    "How long a repeat waited for the first run",
);

/// Ends of runs, by message.
pub const ENDS: Metric = counter(
    "idempotency_ends_total",
    &[CHANNEL, END],
    "Ends of runs: recorded, released, parked, or superseded because another run took over",
);

/// Runs of messages whose earlier run ended without a word.
pub const TAKEOVERS: Metric = counter(
    "idempotency_takeovers_total",
    &[CHANNEL],
    "Runs begun because the lease of an earlier one had lapsed",
);

/// Renewals of leases and turns.
pub const RENEWALS: Metric = counter(
    "idempotency_renewals_total",
    &[OF, RESULT],
    "Renewals of leases (of a run) and turns (of an inbox)",
);

/// Ends that the store did not confirm in time.
pub const UNCONFIRMED: Metric = counter(
    "idempotency_unconfirmed_total",
    &[],
    "Runs whose end the store did not confirm in time",
);

/// Transactions that did not come to be in force.
pub const ROLLED_BACK: Metric = counter(
    "idempotency_rolled_back_total",
    &[],
    "Runs whose transaction was to be committed and was not, or is not known to be",
);

/// Runs that went on without their caller.
pub const DETACHED: Metric = counter(
    "idempotency_detached_total",
    &[],
    "Runs that went on after their caller had left",
);

/// How long store calls took.
pub const STORE_SECONDS: Metric = histogram(
    "idempotency_store_seconds",
    &[OPERATION, RESULT],
    "How long a call of the store took",
);

/// Messages that came to an inbox.
pub const INBOX_ARRIVALS: Metric = counter(
    "idempotency_inbox_arrivals_total",
    &[CHANNEL, STAGE],
    "Messages that came to an inbox: new, or repeats by how far the first one is",
);

/// Attempts of an inbox's worker.
pub const INBOX_ATTEMPTS: Metric = counter(
    "idempotency_inbox_attempts_total",
    &[CHANNEL, END],
    "Attempts of an inbox's worker, by how they ended",
);

/// Messages that wait in the store's inbox.
pub const INBOX_WAITING: Metric = gauge(
    "idempotency_inbox_waiting",
    "Messages that wait or are being handled",
);

/// Lines of the store's inbox.
pub const INBOX_LINES: Metric = gauge(
    "idempotency_inbox_lines",
    "Conversations with messages that wait or are being handled",
);

/// Dead messages of the store's inbox.
pub const INBOX_DEAD: Metric = gauge("idempotency_inbox_dead", "Dead messages");

/// The age of the message that waits longest.
pub const INBOX_OLDEST_SECONDS: Metric = gauge(
    "idempotency_inbox_oldest_seconds",
    "How long ago the message that waits longest was accepted",
);

/// All metrics.
pub const ALL: [Metric; 16] = [
    REQUESTS,
    REPEAT_AGE_SECONDS,
    WAIT_SECONDS,
    ENDS,
    TAKEOVERS,
    RENEWALS,
    UNCONFIRMED,
    ROLLED_BACK,
    DETACHED,
    STORE_SECONDS,
    INBOX_ARRIVALS,
    INBOX_ATTEMPTS,
    INBOX_WAITING,
    INBOX_LINES,
    INBOX_DEAD,
    INBOX_OLDEST_SECONDS,
];

/// Label: the channel's name.
pub const CHANNEL: &str = "channel";
/// Label: `line`, `inbox`, or `observe` where the layer only looks.
pub const MODE: &str = "mode";
/// Label: what a request came to.
pub const OUTCOME: &str = "outcome";
/// Label: how a run or an attempt ended.
pub const END: &str = "end";
/// Label: what was renewed, `lease` or `turn`.
pub const OF: &str = "of";
/// Label: what came of it.
pub const RESULT: &str = "result";
/// Label: which call of the store.
pub const OPERATION: &str = "operation";
/// Label: how far a message is.
pub const STAGE: &str = "stage";

const fn counter(
    name: &'static str,
    labels: &'static [&'static str],
    about: &'static str,
) -> Metric {
    Metric {
        name,
        kind: Kind::Counter,
        labels,
        about,
    }
}

const fn histogram(
    name: &'static str,
    labels: &'static [&'static str],
    about: &'static str,
) -> Metric {
    Metric {
        name,
        kind: Kind::Histogram,
        labels,
        about,
    }
}

const fn gauge(name: &'static str, about: &'static str) -> Metric {
    Metric {
        name,
        kind: Kind::Gauge,
        labels: &[],
        about,
    }
}
