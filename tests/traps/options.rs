//! Options that do not go together.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http_body_util::Full;
use tower::{Layer, service_fn};
use tower_idempotency::channel::{ByPath, Channel, IdempotencyKey, Scope, Slack, Twilio, WhatsApp};
use tower_idempotency::store::MemoryStore;
use tower_idempotency::{IdempotencyLayer, Keep};

use crate::log::Log;
use crate::said;

/// Makes two services; gives what the check and the log say: errors and warnings.
fn built<C: Channel>(layer: &IdempotencyLayer<MemoryStore, C>) -> (Option<String>, usize, usize) {
    Log::begin();
    let handler =
        service_fn(|(): ()| async { Ok::<_, Infallible>(Response::new(Full::<Bytes>::default())) });
    drop((layer.layer(handler), layer.layer(handler)));
    let fault = layer.check().err();
    assert!(
        fault
            .as_ref()
            .is_none_or(tower_idempotency::Error::is_misconfigured)
    );
    (fault.map(|it| it.to_string()), said("ERROR"), said("WARN"))
}

fn on<C: Channel>(channel: C) -> IdempotencyLayer<MemoryStore, C> {
    IdempotencyLayer::new(MemoryStore::new(), channel)
}

#[test]
fn the_defaults_say_nothing() {
    let channels = ByPath::new()
        .at("/chat", IdempotencyKey::scoped_by(Scope::header("x-user")))
        .at("/whatsapp", WhatsApp::unverified())
        .at("/slack", Slack::unverified());
    assert_eq!(built(&on(channels)), (None, 0, 0));
}

#[test]
fn keys_that_go_before_the_last_repeat_are_an_error() {
    let day = Keep::For(Duration::from_hours(24));
    let channels = ByPath::new().at("/whatsapp", WhatsApp::unverified());
    let (fault, errors, warnings) = built(&on(channels).keep(day));
    assert!(fault.unwrap().contains("`whatsapp`"));
    assert_eq!((errors, warnings), (1, 0));
    let week = Keep::For(Duration::from_hours(24 * 8));
    assert_eq!(on(WhatsApp::unverified()).keep(week).check().ok(), Some(()));
}

/// Twilio repeats for 15 s: where a process dies, its lease of 30 s outlasts the last repeat.
///
/// Field case B17.
#[test]
fn a_lease_that_outlasts_the_senders_repeats_is_a_warning() {
    assert_eq!(built(&on(Twilio::unverified())), (None, 0, 1));
    assert!(Log::line("WARN").contains("`twilio`"));
}

#[test]
fn a_shorter_lease_is_none() {
    let lease = Duration::from_secs(10);
    assert_eq!(built(&on(Twilio::unverified()).lease(lease)), (None, 0, 0));
}
