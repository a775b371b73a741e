//! What cannot work is refused when it is built.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use tower_idempotency::Keep;
use tower_idempotency::channel::{ByPath, Channel, Scope, Slack, Telegram, WhatsApp};
use tower_idempotency::inbox::Inbox;
use tower_idempotency::store::{MemoryStore, Queue, SqliteStore};

use crate::world::{Log, handler, hook};

fn refused<Q: Queue, C: Channel>(inbox: Inbox<Q, C>) -> String {
    let error = inbox
        .wrap::<_, Full<Bytes>>(handler(&Log::default()))
        .unwrap_err();
    assert!(error.is_misconfigured());
    error.to_string()
}

fn accepted<Q: Queue, C: Channel>(inbox: Inbox<Q, C>) {
    assert!(
        inbox
            .wrap::<_, Full<Bytes>>(handler(&Log::default()))
            .is_ok()
    );
}

/// Field case B116.
#[test]
fn a_store_in_memory_is_refused_unless_its_loss_is_accepted() {
    let error = refused(Inbox::new(MemoryStore::new(), hook()));
    assert!(error.contains("may_lose_waiting"), "{error}");
    accepted(Inbox::new(MemoryStore::new(), hook()).may_lose_waiting());
}

/// Field case B129.
#[test]
fn a_channel_whose_answer_is_the_reply_is_refused_unless_it_goes_elsewhere() {
    let telegram = || Telegram::unverified(Scope::path_segment(1));
    let inbox = |channel| Inbox::new(MemoryStore::new(), channel).may_lose_waiting();
    let error = refused(inbox(ByPath::new().at("/t", telegram())));
    assert!(
        error.contains("`telegram`") && error.contains("reply_elsewhere"),
        "{error}"
    );
    accepted(inbox(ByPath::new().at("/t", telegram())).reply_elsewhere());
    accepted(inbox(ByPath::new().at("/w", WhatsApp::unverified())));
    let both = ByPath::new()
        .at("/w", WhatsApp::unverified())
        .at("/s", Slack::unverified());
    assert!(refused(inbox(both)).contains("reply_elsewhere"));
}

/// Field case B64.
#[test]
fn keys_that_go_before_the_last_repeat_are_refused() {
    let inbox = |keep| {
        Inbox::new(MemoryStore::new(), WhatsApp::unverified())
            .may_lose_waiting()
            .keep(keep)
    };
    let error = refused(inbox(Keep::For(Duration::from_hours(24))));
    assert!(error.contains("`whatsapp`"), "{error}");
    accepted(inbox(Keep::For(Duration::from_hours(24 * 8))));
}

#[test]
fn no_places_attempts_or_time_are_refused() {
    let inbox = || Inbox::new(MemoryStore::new(), hook()).may_lose_waiting();
    refused(inbox().concurrency(0));
    refused(inbox().attempts(0));
    refused(inbox().lease(Duration::ZERO));
    refused(inbox().attempt_limit(Duration::ZERO));
}

#[test]
fn a_store_on_the_disk_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("inbox.db")).unwrap();
    accepted(Inbox::new(store, WhatsApp::unverified()));
}
