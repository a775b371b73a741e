//! The span of a request or an attempt, and what is said in it.

use tracing::Span;
use tracing::field::{Empty, display};

use crate::delivery::Delivery;
use crate::watch::field::{ATTEMPT, CHANNEL, KEY, MESSAGES, OUTCOME, SPAN};
use crate::watch::shown::{KeysInLogs, Shown};

/// A span of which nothing is known yet.
pub(crate) fn span() -> Span {
    tracing::info_span!(
        SPAN,
        { CHANNEL } = Empty,
        { KEY } = Empty,
        { MESSAGES } = Empty,
        { ATTEMPT } = Empty,
        { OUTCOME } = Empty
    )
}

/// Says in the current span who is speaking.
pub(crate) fn say_channel(channel: &str) {
    Span::current().record(CHANNEL, channel);
}

/// Says in the current span which messages a request carries. They are written only if somebody
/// reads them.
pub(crate) fn say_messages(deliveries: &[Delivery], keys: KeysInLogs) {
    let span = Span::current();
    if let Some(first) = deliveries.first() {
        span.record(KEY, display(Shown(first.key(), keys)));
        span.record(MESSAGES, deliveries.len());
    }
}

/// Says in the current span which attempt a run is.
pub(crate) fn say_attempt(attempt: Option<u32>) {
    Span::current().record(ATTEMPT, attempt);
}
