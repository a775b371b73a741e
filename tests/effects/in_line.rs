//! A run in line: its writes, its effects and its record are one.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{Request, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures_util::stream;
use tower::ServiceExt;
use tower_idempotency::channel::JsonPath;
use tower_idempotency::store::{Claim, Hold, Nonce, Store, Verdict, Wanted};
use tower_idempotency::{Claimed, Disposition, IdempotencyLayer};

use crate::side::{Got, Runs, Side, on_both, send};

on_both! {
    a_success_is_committed_with_its_record_and_a_repeat_writes_nothing
    whatever_is_no_success_is_rolled_back
    a_success_may_go_without_a_transaction_and_have_effects
    a_run_that_lost_its_lease_is_rolled_back_whole
    of_several_messages_those_that_are_done_have_their_effects
    an_answer_that_streams_waits_for_the_commit
    a_caller_that_leaves_changes_nothing
    what_comes_after_the_record_comes_once
    a_run_that_has_ended_lends_nothing
}

/// How a run of the handler ends, after it has written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    Well,
    With(StatusCode),
    Saying(Disposition),
    Panicking,
}

/// An application whose handler writes, has an effect, and ends as it is told.
fn app(side: &Side, runs: &Runs<Ends>) -> Router {
    let (tables, told) = (side.tables.clone(), runs.clone());
    let handler = move |claimed: Claimed| async move {
        tables.write(&claimed, "hello").await.unwrap();
        claimed.enqueue("notify", "ann").unwrap();
        match told.next() {
            Ends::Well => StatusCode::CREATED.into_response(),
            Ends::With(status) => status.into_response(),
            Ends::Saying(disposition) => (axum::Extension(disposition), "said").into_response(),
            Ends::Panicking => panic!("as it was told"),
        }
    };
    Router::new()
        .route("/messages", post(handler))
        .layer(side.layer())
}

async fn a_success_is_committed_with_its_record_and_a_repeat_writes_nothing(side: Side) {
    let runs = Runs::new([Ends::Well]);
    let app = app(&side, &runs);
    let got = send(&app, "1").await;
    assert_eq!((got.status, got.is_replay), (StatusCode::CREATED, false));
    assert_eq!(side.written().await, (1, 1));
    assert_eq!(side.effects().await, 1);
    for _ in 0..3 {
        assert!(send(&app, "1").await.is_replay);
    }
    assert_eq!((side.written().await, side.effects().await), ((1, 1), 1));
    send(&app, "2").await;
    assert_eq!((side.written().await, side.effects().await), ((2, 2), 2));
    assert_eq!(runs.count(), 2);
}

async fn whatever_is_no_success_is_rolled_back(side: Side) {
    let fails = [
        Ends::With(StatusCode::INTERNAL_SERVER_ERROR),
        Ends::With(StatusCode::NOT_FOUND),
        Ends::With(StatusCode::TOO_MANY_REQUESTS),
        Ends::Saying(Disposition::Release),
    ];
    let runs = Runs::new([&fails[..], &[Ends::Panicking, Ends::Well]].concat());
    let app = app(&side, &runs);
    for fail in fails {
        let got = send(&app, "1").await;
        let status = match fail {
            Ends::With(status) => status,
            Ends::Well | Ends::Saying(_) | Ends::Panicking => StatusCode::OK,
        };
        assert_eq!(got.status, status);
        assert_eq!(
            (side.written().await, side.effects().await),
            ((0, 0), 0),
            "{fail:?}"
        );
    }
    let panicking = app.clone();
    let panicked = tokio::spawn(async move { send(&panicking, "1").await }).await;
    assert!(panicked.unwrap_err().is_panic());
    assert_eq!((side.written().await, side.effects().await), ((0, 0), 0));
    assert_eq!(send(&app, "1").await.status, StatusCode::CREATED);
    assert_eq!((side.written().await, side.effects().await), ((1, 1), 1));
}

async fn a_success_may_go_without_a_transaction_and_have_effects(side: Side) {
    let runs = Runs::new([Ends::With(StatusCode::BAD_GATEWAY), Ends::Well]);
    let told = runs.clone();
    let handler = move |claimed: Claimed| async move {
        claimed.enqueue("notify", "ann").unwrap();
        claimed.enqueue("feed/news", "ann wrote").unwrap();
        match told.next() {
            Ends::With(status) => status,
            Ends::Well | Ends::Saying(_) | Ends::Panicking => StatusCode::OK,
        }
    };
    let app = Router::new()
        .route("/messages", post(handler))
        .layer(side.layer());
    assert_eq!(send(&app, "1").await.status, StatusCode::BAD_GATEWAY);
    assert_eq!(side.effects().await, 0);
    assert_eq!(send(&app, "1").await.status, StatusCode::OK);
    assert!(send(&app, "1").await.is_replay);
    assert_eq!(side.effects().await, 2);
}

/// The lease lapses under the run, another takes over, and then the first one ends.
async fn a_run_that_lost_its_lease_is_rolled_back_whole(side: Side) {
    let (tables, store) = (side.tables.clone(), side.store.clone());
    let handler = move |claimed: Claimed| async move {
        // SQLite has one writer: what others do must come before the transaction.
        take_over(&store, &claimed).await;
        tables.write(&claimed, "hello").await.unwrap();
        claimed.enqueue("notify", "ann").unwrap();
        claimed.after_recorded(|| async { panic!("there is no record") });
        StatusCode::CREATED
    };
    let layer = side.layer();
    let app = Router::new()
        .route("/messages", post(handler))
        .layer(layer.clone());
    let got = send(&app, "1").await;
    assert_eq!(got.status, StatusCode::SERVICE_UNAVAILABLE, "{got:?}");
    assert!(got.body.contains("superseded"), "{got:?}");
    assert_eq!((side.written().await, side.effects().await), ((0, 0), 0));
    assert_eq!(side.tables.open_transactions().await, 0);
    let counts = layer.counts();
    assert_eq!(
        (counts.superseded, counts.recorded, counts.released),
        (1, 0, 0)
    );
}

/// Another run takes the message over, for which its lease has to lapse.
async fn take_over(store: &impl Store, claimed: &Claimed) {
    let message = claimed.messages().first().unwrap();
    let hold = Hold::new(message.key().clone(), message.token());
    store.renew(&[hold], Duration::ZERO).await.unwrap();
    let mut taken = false;
    while !taken {
        let wanted = vec![Wanted::new(message.key().clone())];
        let claim = Claim::new(Nonce::random(), Duration::from_mins(1), wanted);
        let verdicts = store.claim(&claim).await.unwrap();
        taken = matches!(verdicts.as_slice(), [Verdict::Run(_)]);
    }
}

async fn of_several_messages_those_that_are_done_have_their_effects(side: Side) {
    let tables = side.tables.clone();
    let handler = move |claimed: Claimed| async move {
        tables.write(&claimed, "batch").await.unwrap();
        for message in claimed.messages() {
            claimed.enqueue_for(message.key(), "notify", "ann").unwrap();
            if message.key().id() == "b" {
                claimed.settle(message.key(), Disposition::Release);
            }
        }
        StatusCode::OK
    };
    let channel = JsonPath::new("hook", "$[*].id").unwrap().unverified();
    let layer = IdempotencyLayer::new(side.store.clone(), channel);
    let app: Router = Router::new().route("/", post(handler)).layer(layer.clone());
    let post = |body: &'static str| {
        let request = Request::post("/").body(Body::from(body)).unwrap();
        app.clone().oneshot(request)
    };
    let body = r#"[{"id":"a"},{"id":"b"},{"id":"c"}]"#;
    let response = post(body).await.unwrap();
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    // What was written is committed with those that are done.
    assert_eq!((side.written().await, side.effects().await), ((1, 1), 2));
    let counts = layer.counts();
    assert_eq!((counts.recorded, counts.released), (2, 1));
    // The one that was given back comes again, alone.
    post(body).await.unwrap();
    assert_eq!(side.written().await, (2, 2));
    assert_eq!(layer.counts().recorded, 2);
}

async fn an_answer_that_streams_waits_for_the_commit(side: Side) {
    let runs = Runs::new([true, false]);
    let (tables, told) = (side.tables.clone(), runs.clone());
    let handler = move |claimed: Claimed| async move {
        tables.write(&claimed, "hello").await.unwrap();
        let breaks = told.next();
        let frames = (0..3).map(move |n| {
            if n == 2 && breaks {
                return Err(std::io::Error::other("broken"));
            }
            Ok(Bytes::from("frame "))
        });
        let frames = stream::unfold(frames, |mut frames| async move {
            tokio::task::yield_now().await;
            Some((frames.next()?, frames))
        });
        Response::new(Body::from_stream(frames))
    };
    let app = Router::new()
        .route("/messages", post(handler))
        .layer(side.layer());
    let got = send(&app, "1").await;
    assert!(!got.status.is_success(), "{got:?}");
    assert_eq!(side.written().await, (0, 0));
    let got = send(&app, "1").await;
    assert_eq!(got.body, "frame frame frame ");
    assert_eq!(side.written().await, (1, 1));
    assert_eq!(send(&app, "1").await.body, "frame frame frame ");
    assert_eq!(side.written().await, (1, 1));
}

/// Dropped after each number of polls: what was begun goes on, once.
async fn a_caller_that_leaves_changes_nothing(side: Side) {
    let runs = Runs::new([Ends::Well]);
    let app = app(&side, &runs);
    for polls in 0..12 {
        let key = format!("left-{polls}");
        let mut sending = Box::pin(send(&app, &key));
        for _ in 0..polls {
            if futures_util::poll!(sending.as_mut()).is_ready() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        drop(sending);
        let Got { status, .. } = send(&app, &key).await;
        assert_eq!(status, StatusCode::CREATED);
    }
    assert_eq!((side.written().await, side.effects().await), ((12, 12), 12));
}

async fn what_comes_after_the_record_comes_once(side: Side) {
    let runs = Runs::new([Ends::With(StatusCode::BAD_GATEWAY), Ends::Well]);
    let after = Arc::new(AtomicUsize::new(0));
    let (told, counted) = (runs.clone(), Arc::clone(&after));
    let handler = move |claimed: Claimed| async move {
        let counted = Arc::clone(&counted);
        claimed.after_recorded(|| async move {
            counted.fetch_add(1, Ordering::SeqCst);
        });
        match told.next() {
            Ends::With(status) => status,
            Ends::Well | Ends::Saying(_) | Ends::Panicking => StatusCode::OK,
        }
    };
    let layer = side.layer();
    let app = Router::new()
        .route("/messages", post(handler))
        .layer(layer.clone());
    for expected in [0, 1, 1] {
        send(&app, "1").await;
        assert_eq!(layer.drain(Duration::from_secs(10)).await, 0);
        assert_eq!(after.load(Ordering::SeqCst), expected);
    }
}

/// A handler that keeps `Claimed` can do nothing with it later, whether it wrote or not.
async fn a_run_that_has_ended_lends_nothing(side: Side) {
    for writes in [false, true] {
        let kept = Arc::new(Mutex::new(None));
        let (tables, keeps) = (side.tables.clone(), Arc::clone(&kept));
        let handler = move |claimed: Claimed| async move {
            if writes {
                tables.write(&claimed, "hello").await.unwrap();
            }
            *keeps.lock().unwrap() = Some(claimed);
            StatusCode::CREATED
        };
        let app = Router::new()
            .route("/messages", post(handler))
            .layer(side.layer());
        send(&app, if writes { "1" } else { "2" }).await;
        let claimed = kept.lock().unwrap().take().unwrap();
        assert!(side.tables.write(&claimed, "late").await.is_err());
        assert!(claimed.enqueue("notify", "late").is_err());
    }
    assert_eq!((side.written().await, side.effects().await), ((1, 1), 0));
}
