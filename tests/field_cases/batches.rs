//! Requests with several messages: each is a message by itself.

use std::sync::{Arc, Mutex};

use futures_util::future::join;
use tower_idempotency::channel::{JsonPath, WhatsApp};
use tower_idempotency::store::MemoryStore;
use tower_idempotency::verify::Unverified;
use tower_idempotency::{Claimed, Disposition, IdempotencyLayer};

use crate::app::{App, JSON, post, status, text};

/// What the handler was given, run by run, by the ids of its messages.
#[derive(Clone, Default)]
struct Given(Arc<Mutex<Vec<Vec<String>>>>);

impl Given {
    fn note(&self, claimed: &Claimed) {
        let ids = claimed.messages().iter().map(|it| it.key().id().to_owned());
        self.0.lock().unwrap().push(ids.collect());
    }

    fn runs(&self) -> Vec<Vec<String>> {
        self.0.lock().unwrap().clone()
    }
}

/// Notes what it is given.
fn noting(given: &Given) -> App {
    let given = given.clone();
    App::new(move |asked| {
        let given = given.clone();
        async move {
            given.note(asked.head.extensions.get::<Claimed>().unwrap());
            text("received")
        }
    })
}

fn change(what: &str) -> String {
    format!(r#"{{"field":"messages","value":{{"metadata":{{"phone_number_id":"1"}},{what}}}}}"#)
}

fn messages(ids: &[&str]) -> String {
    let messages = ids
        .iter()
        .map(|id| format!(r#"{{"id":"{id}","from":"9"}}"#));
    let messages: Vec<String> = messages.collect();
    format!(r#""messages":[{}]"#, messages.join(","))
}

fn entries(entries: &[&[String]]) -> String {
    let entries = entries
        .iter()
        .map(|changes| format!(r#"{{"id":"e","changes":[{}]}}"#, changes.join(",")));
    let entries: Vec<String> = entries.collect();
    format!(
        r#"{{"object":"whatsapp_business_account","entry":[{}]}}"#,
        entries.join(",")
    )
}

/// Every message of every change of every entry, and the statuses between them, are messages; a
/// repeat of all runs none, one with a new message among them runs that one.
///
/// Field case B58.
#[tokio::test]
async fn all_places_of_a_whatsapp_request_are_read() {
    let layer = IdempotencyLayer::new(MemoryStore::new(), WhatsApp::unverified());
    let given = Given::default();
    let app = noting(&given);
    let statuses = r#","statuses":[{"id":"a","status":"read"}]"#;
    let deliver = |last: &str| {
        let body = entries(&[
            &[
                change(&(messages(&["a", "b"]) + statuses)),
                change(&messages(&["c", "d"])),
            ],
            &[
                change(&messages(&["e", "f"])),
                change(&messages(&["g", last])),
            ],
        ]);
        app.send(&layer, post("/", JSON, body))
    };
    for last in ["h", "h", "i"] {
        assert_eq!(deliver(last).await.status, 200);
    }
    let [all, new] = <[Vec<String>; 2]>::try_from(given.runs()).unwrap();
    let mut sorted = all;
    sorted.sort();
    assert_eq!(
        sorted,
        ["a", "b", "c", "d", "e", "f", "g", "h", "status|a|read"]
    );
    assert_eq!(new, ["i"]);
}

/// A status whose handling fails does not take the message beside it along: the message is done
/// once, the status comes again alone.
///
/// Field case B59.
#[tokio::test]
async fn a_status_that_fails_comes_again_without_the_message_beside_it() {
    let layer = IdempotencyLayer::new(MemoryStore::new(), WhatsApp::unverified());
    let given = Given::default();
    let seen = given.clone();
    let app = App::new(move |asked| {
        let seen = seen.clone();
        async move {
            let claimed = asked.head.extensions.get::<Claimed>().unwrap();
            seen.note(claimed);
            let is_status = |id: &str| id.starts_with("status");
            for message in claimed.messages() {
                let failed = is_status(message.key().id()) && asked.run == 1;
                let end = if failed {
                    Disposition::Release
                } else {
                    Disposition::Record
                };
                assert!(claimed.settle(message.key(), end));
            }
            if asked.run == 1 {
                status(500)
            } else {
                text("received")
            }
        }
    });
    let body = entries(&[&[change(
        &(r#""statuses":[{"id":"x","status":"sent"}],"#.to_owned() + &messages(&["m"])),
    )]]);
    for code in [500, 200, 200] {
        let seen = app.send(&layer, post("/", JSON, body.clone())).await;
        assert_eq!(seen.status, code);
    }
    assert_eq!(
        given.runs(),
        [vec!["status|x|sent", "m"], vec!["status|x|sent"]]
    );
}

fn hook() -> Unverified<JsonPath> {
    JsonPath::new("hook", "$[*]").unwrap().unverified()
}

/// Batches that overlap, one after the other and at once, are neither new nor repeats: what is new
/// in them runs, and nothing else.
///
/// Field case B61.
#[tokio::test(start_paused = true)]
async fn of_overlapping_batches_what_is_new_runs_once() {
    let layer = IdempotencyLayer::new(MemoryStore::new(), hook());
    let given = Given::default();
    let app = noting(&given);
    for body in ["[1,3,7]", "[2,7,14]", "[7]"] {
        assert_eq!(app.send(&layer, post("/", JSON, body)).await.status, 200);
    }
    assert_eq!(given.runs(), [vec!["1", "3", "7"], vec!["2", "14"]]);

    let layer = IdempotencyLayer::new(MemoryStore::new(), hook());
    let slow = given.clone();
    let app = App::new(move |asked| {
        let slow = slow.clone();
        async move {
            slow.note(asked.head.extensions.get::<Claimed>().unwrap());
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            text("received")
        }
    });
    let before = given.runs().len();
    let send = |body: &'static str| app.send(&layer, post("/", JSON, body));
    let (first, second) = join(send(r#"["a","b"]"#), send(r#"["b","c"]"#)).await;
    assert_eq!(first.status, 200);
    assert!(second.status == 200 || second.is_retryable(), "{second:?}");
    let mut ran = given.runs()[before..].concat();
    ran.sort();
    assert_eq!(ran, ["a", "b", "c"]);
    assert_eq!(send(r#"["b","c"]"#).await.status, 200);
    assert_eq!(given.runs().len(), before + 2);
}

/// Of a batch in which one fails, the failed one comes again until it succeeds, alone or beside new
/// ones, and the others never; the sender is told a failure exactly as long as something is open.
///
/// Field case B60.
#[tokio::test]
async fn the_failed_one_of_a_batch_comes_again_however_it_is_grouped() {
    let layer = IdempotencyLayer::new(MemoryStore::new(), hook());
    let given = Given::default();
    let seen = given.clone();
    let app = App::new(move |asked| {
        let seen = seen.clone();
        async move {
            let claimed = asked.head.extensions.get::<Claimed>().unwrap();
            seen.note(claimed);
            for message in claimed.messages() {
                if message.key().id() == "m2" && asked.run < 3 {
                    claimed.settle(message.key(), Disposition::Release);
                }
            }
            text("received")
        }
    });
    let send = |body: &'static str| app.send(&layer, post("/", JSON, body));
    assert!(send(r#"["m1","m2","m3"]"#).await.is_retryable());
    assert!(send(r#"["m1","m2","m3"]"#).await.is_retryable());
    assert_eq!(send(r#"["m3"]"#).await.status, 200);
    assert_eq!(send(r#"["m2","m4"]"#).await.status, 200);
    assert_eq!(send(r#"["m1","m2","m3"]"#).await.status, 200);
    assert_eq!(
        given.runs(),
        [vec!["m1", "m2", "m3"], vec!["m2"], vec!["m2", "m4"]]
    );
}
