//! What made others run a message twice, or not at all.

use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::{sleep, timeout};
use tower_idempotency::channel::{IdempotencyKey, Telegram, Twilio, WhatsApp};
use tower_idempotency::channel::{JsonPath, Scope};
use tower_idempotency::store::{Claim, MemoryStore, Nonce, Store, Verdict, Wanted};
use tower_idempotency::{Claimed, IdempotencyLayer, Key, OnStoreFailure};

use crate::app::{App, FORM, JSON, keyed, post, status, text, web};
use crate::stores::{Double, all};

fn slow(time: Duration) -> App {
    App::new(move |asked| async move {
        sleep(time).await;
        text(&format!("run {}", asked.run))
    })
}

/// Copies at two instances, at the same moment, on each store; and fifty of one key, of which none
/// is told that the store is away.
///
/// Field cases B01, B77, P01, P62, P74, P75, P88.
#[tokio::test(flavor = "multi_thread")]
async fn copies_at_once_at_two_instances_are_one_run() {
    for (name, store, _held) in all().await {
        let app = slow(Duration::from_millis(20));
        let one = IdempotencyLayer::new(store.clone(), IdempotencyKey::unscoped());
        let other = IdempotencyLayer::new(store, IdempotencyKey::unscoped());
        for n in 0..10 {
            let copy = |layer| app.send(layer, keyed(&format!("{n}"), "yes"));
            let (first, second) = tokio::join!(copy(&one), copy(&other));
            assert_eq!((first.status.as_u16(), second.status.as_u16()), (200, 200));
            assert_eq!(first.body, second.body, "{name}");
            assert_eq!(app.runs(), n + 1, "{name}");
        }
        let fifty = join_all((0..50).map(|n| {
            let layer = if n % 2 == 0 { &one } else { &other };
            app.send(layer, keyed("fifty", "yes"))
        }));
        assert!(fifty.await.iter().all(|seen| seen.status == 200), "{name}");
        assert_eq!(app.runs(), 11, "{name}");
        for layer in [one, other] {
            let counts = layer.counts();
            assert_eq!((counts.store_failures, counts.mismatched), (0, 0));
        }
    }
}

/// Reads that lag behind the writes decide nothing: the claim alone does.
///
/// Field cases B02, B78.
#[tokio::test(start_paused = true)]
async fn looks_that_lag_behind_make_no_second_run() {
    let store = Double::default();
    store.does.is_behind.store(true, Ordering::SeqCst);
    let layer = || IdempotencyLayer::new(store.clone(), IdempotencyKey::unscoped());
    let (one, other, third) = (layer(), layer(), layer());
    let app = slow(Duration::from_millis(500));
    let late = async {
        sleep(Duration::from_millis(50)).await;
        app.send(&other, keyed("k", "yes")).await
    };
    let (first, second) = tokio::join!(app.send(&one, keyed("k", "yes")), late);
    assert_eq!(first.body, second.body);
    assert!(app.send(&third, keyed("k", "yes")).await.is_replayed());
    assert_eq!(app.runs(), 1);
}

/// The sender's second address for the same account is the same channel: a copy that comes there
/// while the first runs does not run.
///
/// Field case B03.
#[tokio::test(start_paused = true)]
async fn a_copy_at_the_fallback_address_is_the_same_message() {
    let layer = IdempotencyLayer::new(MemoryStore::new(), Twilio::unverified());
    let app = slow(Duration::from_secs(20));
    let sms = |path| post(path, FORM, "MessageSid=SM0001&AccountSid=AC1&Body=hi");
    let fallback = async {
        sleep(Duration::from_secs(5)).await;
        app.send(&layer, sms("/sms/fallback")).await
    };
    let (first, early) = tokio::join!(app.send(&layer, sms("/sms/primary")), fallback);
    assert_eq!(first.status, 200);
    assert!(early.is_retryable(), "{early:?}");
    let again = app.send(&layer, sms("/sms/fallback")).await;
    assert!(again.is_replayed());
    assert_eq!((again.body, app.runs()), (first.body, 1));
}

/// A store that cannot tell is no word that the message is new: nothing runs, and the sender is
/// told to come again.
///
/// Field cases B03, B69, P11, P47.
#[tokio::test]
async fn a_store_that_fails_lets_nothing_run() {
    let store = Double::default();
    let app = App::quick();
    let webhook = IdempotencyLayer::new(store.clone(), WhatsApp::unverified());
    let client = IdempotencyLayer::new(store.clone(), IdempotencyKey::unscoped());
    store.does.fails.store(true, Ordering::SeqCst);
    for _ in 0..2 {
        for seen in [
            app.send(&webhook, post("/", JSON, whatsapp("A1"))).await,
            app.send(&client, keyed("k", "yes")).await,
        ] {
            assert_eq!(seen.status, 503);
            assert!(seen.is_retryable());
        }
    }
    assert_eq!(app.runs(), 0);
    store.does.fails.store(false, Ordering::SeqCst);
    assert_eq!(app.send(&client, keyed("k", "yes")).await.status, 200);
    assert_eq!(app.runs(), 1);
}

/// Where running without the store was spelled out, it is counted, and never half: what was not
/// claimed is not recorded.
///
/// Field case B69.
#[tokio::test]
async fn an_unprotected_run_is_counted_and_settles_nothing() {
    let store = Double::default();
    let layer = IdempotencyLayer::new(store.clone(), IdempotencyKey::unscoped());
    let layer = layer.on_store_failure(OnStoreFailure::RunUnprotected);
    let app = App::quick();
    store.does.fails.store(true, Ordering::SeqCst);
    assert_eq!(app.send(&layer, keyed("k", "yes")).await.status, 200);
    store.does.fails.store(false, Ordering::SeqCst);
    assert_eq!(store.does.settlements.load(Ordering::SeqCst), 0);
    assert_eq!(layer.counts().unprotected, 1);
    assert!(!app.send(&layer, keyed("k", "yes")).await.is_replayed());
    assert_eq!(app.runs(), 2);
}

/// After a success its record stands at once, however late the effect is seen; messages of one
/// sender with ids of their own all run, side by side.
///
/// Field cases B04, P30, P79.
#[tokio::test(start_paused = true)]
async fn a_success_stands_at_once_and_an_album_runs_side_by_side() {
    let layer = web();
    let app = slow(Duration::from_secs(1));
    app.send(&layer, keyed("k", "yes")).await;
    sleep(Duration::from_millis(10)).await;
    assert!(app.send(&layer, keyed("k", "yes")).await.is_replayed());
    let began = tokio::time::Instant::now();
    let album = (0..100).map(|n| app.send(&layer, keyed(&format!("picture {n}"), "yes")));
    let seen = join_all(album).await;
    assert!(seen.iter().all(|seen| !seen.is_replayed()));
    assert!(began.elapsed() < Duration::from_secs(2));
    assert_eq!(app.runs(), 101);
}

/// A run of ninety seconds keeps its key for as long as it lives, with no option set: copies at
/// another instance, whose clients give up, do not run.
///
/// Field cases B06, B09, B112, P33, P53.
#[tokio::test(start_paused = true)]
async fn a_slow_run_keeps_its_key_against_impatient_clients_at_another_instance() {
    let store = MemoryStore::new();
    let layer = || IdempotencyLayer::new(store.clone(), IdempotencyKey::unscoped());
    let (one, other) = (layer(), layer());
    let app = slow(Duration::from_secs(90));
    let first = timeout(Duration::from_secs(15), app.send(&one, keyed("k", "yes")));
    let repeats = async {
        for _ in 0..3 {
            sleep(Duration::from_secs(20)).await;
            let repeat = app.send(&other, keyed("k", "yes"));
            let repeat = timeout(Duration::from_secs(15), repeat).await.unwrap();
            assert!(repeat.is_retryable(), "{repeat:?}");
        }
    };
    let (first, ()) = tokio::join!(first, repeats);
    assert!(first.is_err());
    assert_eq!(one.drain(Duration::from_mins(2)).await, 0);
    assert!(app.send(&other, keyed("k", "yes")).await.is_replayed());
    assert_eq!(app.runs(), 1);
}

/// An error may hide an effect that was done. By default the repeat runs; a layer can be told that
/// the answer is kept.
///
/// Field cases B12, P42.
#[tokio::test]
async fn an_answer_that_may_hide_an_effect_runs_again_unless_it_is_to_be_recorded() {
    for is_recorded in [false, true] {
        let layer = web();
        let layer = if is_recorded {
            layer.also_record(http::StatusCode::GATEWAY_TIMEOUT)
        } else {
            layer
        };
        let app = App::new(|_| async { status(504) });
        app.send(&layer, keyed("k", "yes")).await;
        let repeat = app.send(&layer, keyed("k", "yes")).await;
        assert_eq!(
            (repeat.status.as_u16(), repeat.is_replayed()),
            (504, is_recorded)
        );
        assert_eq!(app.runs(), if is_recorded { 1 } else { 2 });
    }
}

/// Two layers on one store are one; two stores in memory are two, whatever else is equal.
///
/// Field cases B11, P72.
#[tokio::test(start_paused = true)]
async fn layers_share_what_their_store_holds_and_nothing_else() {
    let store = MemoryStore::new();
    let on = |store: &MemoryStore| IdempotencyLayer::new(store.clone(), IdempotencyKey::unscoped());
    let app = App::quick();
    app.send(&on(&store), keyed("k", "yes")).await;
    sleep(Duration::from_secs(35)).await;
    assert!(app.send(&on(&store), keyed("k", "yes")).await.is_replayed());
    let elsewhere = MemoryStore::new();
    assert!(
        !app.send(&on(&elsewhere), keyed("k", "yes"))
            .await
            .is_replayed()
    );
}

/// A claim whose process died: until its lease ends the sender is told to come again, never that
/// all is well; then the message runs, as a second attempt, hours before a record would have gone.
///
/// Field cases B08, B14, B17, P41, P61, P66, P87.
#[tokio::test(start_paused = true)]
async fn a_dead_process_blocks_its_message_for_a_lease_and_is_never_acked_for() {
    let store = MemoryStore::new();
    let layer = IdempotencyLayer::new(store.clone(), WhatsApp::unverified());
    let app = App::new(|asked| async move {
        let claimed = asked.head.extensions.get::<Claimed>().unwrap();
        text(&format!("attempt {}", claimed.messages()[0].attempt()))
    });
    let key = Key::new("whatsapp", "106", &["wamid.A1"]);
    let claim = Claim::new(
        Nonce::random(),
        Duration::from_secs(30),
        vec![Wanted::new(key)],
    );
    let verdicts = store.claim(&claim).await.unwrap();
    assert!(matches!(verdicts.as_slice(), [Verdict::Run(_)]));
    sleep(Duration::from_secs(10)).await;
    let early = app.send(&layer, post("/", JSON, whatsapp("A1"))).await;
    assert!(early.is_retryable() && early.status == 503, "{early:?}");
    sleep(Duration::from_secs(20)).await;
    let again = app.send(&layer, post("/", JSON, whatsapp("A1"))).await;
    assert_eq!(
        (again.status.as_u16(), again.text()),
        (200, "attempt 2".into())
    );
}

/// The same texts under other ids, and the same keys under other texts, as the sender says: the
/// body is no part of a webhook's key.
///
/// Field cases B96, B97, P02, P05, P21.
#[tokio::test]
async fn the_id_alone_says_what_is_the_same() {
    let hook = JsonPath::new("hook", "$.id").unwrap().unverified();
    let layer = IdempotencyLayer::new(MemoryStore::new(), hook);
    let app = App::quick();
    for n in 0..10 {
        let body = format!(r#"{{"id":"same","n":{n}}}"#);
        assert_eq!(
            app.send(&layer, post("/", JSON, body)).await.text(),
            "run 1"
        );
    }
    for n in 0..10 {
        let body = format!(r#"{{"id":{n},"text":"yes"}}"#);
        app.send(&layer, post("/", JSON, body)).await;
    }
    assert_eq!(app.runs(), 11);
    let web = web();
    for key in ["k1", "k2"] {
        app.send(&web, keyed(key, "yes")).await;
    }
    assert_eq!(app.runs(), 13);
}

/// A resend under another key while the first runs is another message.
///
/// Field case B98.
#[tokio::test(start_paused = true)]
async fn another_key_is_another_message_also_while_the_first_runs() {
    let layer = web();
    let app = slow(Duration::from_secs(5));
    let copy = |key| app.send(&layer, keyed(key, "yes"));
    let (one, other) = tokio::join!(copy("k1"), copy("k2"));
    assert_ne!(one.body, other.body);
    assert_eq!(app.runs(), 2);
}

/// A failed first delivery, of each kind, is made good by the next; the third is a repeat.
///
/// Field cases B13, P15, P16.
#[tokio::test(start_paused = true)]
async fn a_failed_delivery_runs_again_and_its_success_stays() {
    for failure in ["status", "throttled", "error", "panic", "late"] {
        let telegram = Telegram::unverified(Scope::fixed("bot"));
        let layer = IdempotencyLayer::new(MemoryStore::new(), telegram);
        let app = App::new(move |asked| async move {
            match (asked.run, failure) {
                (1, "status") => status(500),
                (1, "throttled") => status(429),
                (1, "error") => Err("no connection".into()),
                (1, "panic") => panic!("at the disco"),
                (1, _) => {
                    let never = timeout(Duration::from_secs(1), std::future::pending::<()>());
                    never.await.map_err(Into::into).and_then(|()| text(""))
                }
                _ => text("done"),
            }
        });
        let update = || post("/tg", JSON, r#"{"update_id":501,"message":{}}"#);
        let first = tokio::spawn(app.begin(&layer, update()));
        let is_success = match first.await {
            Ok(Ok(answer)) => answer.status().is_success(),
            Ok(Err(_)) | Err(_) => false,
        };
        assert!(!is_success, "{failure}");
        sleep(Duration::from_secs(5)).await;
        let second = app.send(&layer, update()).await;
        assert_eq!(
            (second.text(), second.is_replayed()),
            ("done".into(), false)
        );
        assert!(app.send(&layer, update()).await.is_replayed(), "{failure}");
        assert_eq!(app.runs(), 2, "{failure}");
    }
}

pub(crate) fn whatsapp(id: &str) -> String {
    format!(
        r#"{{"entry":[{{"changes":[{{"value":{{"metadata":{{"phone_number_id":"106"}},
        "messages":[{{"id":"wamid.{id}","from":"1"}}]}}}}]}}]}}"#
    )
}
