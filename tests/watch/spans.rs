//! What spans and events tell.

use std::cell::RefCell;
use std::io::Write;
use std::sync::Once;

use tower_idempotency::store::MemoryStore;
use tower_idempotency::watch::field;
use tower_idempotency::{IdempotencyLayer, KeysInLogs};
use tracing::Level;
use tracing_subscriber::fmt::MakeWriter;

use crate::app::{Notes, key, post};
use crate::store::{Mood, Moody};

/// Keeps what is logged, by thread: each test has one.
///
/// One subscriber for all of them: tests that set theirs and drop it at the same time could miss
/// events, since what is listened to is remembered for the whole process.
#[derive(Clone, Copy)]
struct Log;

thread_local! {
    static LOGGED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        LOGGED.with_borrow_mut(|logged| logged.extend(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        *self
    }
}

impl Log {
    /// Listens to everything from here on.
    fn begin() {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            let subscriber = tracing_subscriber::fmt()
                .with_max_level(Level::TRACE)
                .with_ansi(false)
                .with_writer(Self)
                .finish();
            tracing::subscriber::set_global_default(subscriber).unwrap();
        });
    }

    /// The first line that says this.
    fn line(says: &str) -> String {
        let all = Self::text();
        let mut lines = all.lines().filter(|line| line.contains(says));
        let line = lines.next();
        line.unwrap_or_else(|| panic!("nobody says {says}: {all}"))
            .to_owned()
    }

    fn text() -> String {
        LOGGED.with_borrow(|logged| String::from_utf8(logged.clone()).unwrap())
    }
}

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
