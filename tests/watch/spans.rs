//! What spans and events tell.

use tower_idempotency::store::MemoryStore;
use tower_idempotency::watch::field;
use tower_idempotency::{IdempotencyLayer, KeysInLogs};

use crate::app::{Notes, key, post};
use crate::log::Log;
use crate::store::{Mood, Moody};

/// The digits by which a row is found.
fn digits(id: &str) -> String {
    let digest = key(id).digest();
    let number = u128::from_be_bytes(digest[..16].try_into().unwrap());
    format!("{number:032x}")
}

#[tokio::test(start_paused = true)]
async fn what_a_handler_says_stands_in_a_span_that_names_its_message() {
    Log::begin();
    let layer = IdempotencyLayer::new(MemoryStore::new(), Notes::new());
    post(&layer, "secret", "one").await;
    let line = Log::line("is handled");
    let wanted = [
        format!("{}{{{}=\"notes\"", field::SPAN, field::CHANNEL),
        format!("{}={}", field::KEY, digits("secret")),
        format!("{}=1", field::MESSAGES),
        format!("{}=1", field::ATTEMPT),
        format!("{}=\"run\"", field::OUTCOME),
    ];
    for wanted in wanted {
        assert!(line.contains(&wanted), "{wanted}: {line}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_id_is_logged_unless_asked_for() {
    Log::begin();
    let store = Moody::default();
    let layer = IdempotencyLayer::new(store.clone(), Notes::new());
    post(&layer, "secret", "one").await;
    post(&layer, "secret", "one").await;
    store.is(Mood::Fails);
    post(&layer, "secret", "one").await;
    assert!(Log::text().contains("store call failed"));
    assert!(
        !Log::text().contains("secret") && !Log::text().contains("alice"),
        "{}",
        Log::text()
    );
    store.is(Mood::Well);
    post(&layer.keys_in_logs(KeysInLogs::Plain), "secret", "one").await;
    assert!(Log::text().contains("idempotency.key=notes/alice/secret"));
}

#[tokio::test(start_paused = true)]
async fn a_failure_of_the_store_is_logged_with_the_message_it_concerns() {
    Log::begin();
    let store = Moody::default();
    store.is(Mood::Fails);
    let layer = IdempotencyLayer::new(store, Notes::new());
    post(&layer, "a", "one").await;
    let line = Log::line("store call failed");
    assert!(
        line.contains("WARN") && line.contains(&digits("a")),
        "{line}"
    );
}

#[tokio::test(start_paused = true)]
async fn each_outcome_is_an_event() {
    Log::begin();
    let layer = IdempotencyLayer::new(MemoryStore::new(), Notes::new());
    for (id, outcome) in [
        ("a", "run"),
        ("a", "replayed"),
        ("", "without_key"),
        ("bad", "refused"),
    ] {
        post(&layer, id, "one").await;
        Log::line(&format!("outcome=\"{outcome}\""));
    }
}
