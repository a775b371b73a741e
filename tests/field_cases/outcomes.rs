//! Which answers are kept, and that no key stays running behind one, whichever way it leaves.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::stream;
use http::{HeaderValue, StatusCode};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use tokio::time::sleep;
use tower_idempotency::channel::IdempotencyKey;
use tower_idempotency::store::{
    Claim, MemoryStore, Nonce, Settled, Sight, SqliteStore, Store, Verdict, Wanted,
};
use tower_idempotency::{
    BoxError, Disposition, Fingerprint, IdempotencyLayer, Keep, Key, Record, Whole,
};

use crate::app::{Answered, App, Asked, frames, keyed, of, status, text, web, with_body};
use crate::stores::all;

/// By its status an answer is kept, or the next delivery runs: 2xx and 3xx are kept, also an empty
/// 204 and a redirect; nothing else is, and its retry gets the success of its own run.
///
/// Field cases B26, B27, B28, P14, P28, P41, P44, P50, P81.
#[tokio::test]
async fn each_status_keeps_or_frees_its_key() {
    let kept = [
        200, 201, 202, 203, 204, 205, 206, 226, 299, 301, 302, 303, 304, 307, 308,
    ];
    let freed = [
        400, 401, 402, 403, 404, 405, 406, 408, 409, 410, 412, 413, 415, 418, 422, 423, 425, 428,
        429, 451, 499, 500, 501, 502, 503, 504, 507, 511, 599,
    ];
    let layer = web();
    for (code, is_kept) in kept
        .map(|code| (code, true))
        .into_iter()
        .chain(freed.map(|code| (code, false)))
    {
        let app = App::new(move |asked| async move {
            if asked.run == 1 {
                status(code)
            } else {
                text("done")
            }
        });
        let key = code.to_string();
        let first = app.send(&layer, keyed(&key, "yes")).await;
        let second = app.send(&layer, keyed(&key, "yes")).await;
        assert_eq!(first.status.as_u16(), code);
        assert_eq!(second.is_replayed(), is_kept, "{code}");
        assert_eq!(second.status.as_u16(), if is_kept { code } else { 200 });
        if code == 204 {
            assert_eq!(
                (second.header("content-length"), second.text()),
                ("", String::new())
            );
        }
    }
}

/// A success is one whatever its headers say about caches and cookies.
///
/// Field cases P13, P43.
#[tokio::test]
async fn a_success_is_kept_whatever_it_says_to_caches() {
    for (name, value) in [
        ("cache-control", "no-store"),
        ("set-cookie", "session=rolling"),
        ("pragma", "no-cache"),
        ("vary", "*"),
        ("expires", "0"),
    ] {
        let layer = web();
        let app = App::new(move |_| async move {
            let mut answer = with_body("done");
            answer
                .headers_mut()
                .insert(name, HeaderValue::from_static(value));
            Ok(answer)
        });
        app.send(&layer, keyed("k", "yes")).await;
        assert!(
            app.send(&layer, keyed("k", "yes")).await.is_replayed(),
            "{name}"
        );
        assert_eq!(app.runs(), 1);
    }
}

#[expect(clippy::unnecessary_wraps, reason = "one of several results")]
fn piece(text: &'static str) -> Result<Frame<Bytes>, BoxError> {
    Ok(Frame::data(Bytes::from_static(text.as_bytes())))
}

/// Ways in which an answer may leave, and whether it is kept.
const WAYS: [(&str, bool); 9] = [
    ("empty", true),
    ("three pieces", true),
    ("three slow pieces", true),
    ("a length that is none", true),
    ("breaks at once", false),
    ("breaks in the middle", false),
    ("panics in the middle", false),
    ("panics later", false),
    ("an error", false),
];

fn leave(way: &str) -> Answered {
    let slowly = |frames: Vec<Result<Frame<Bytes>, BoxError>>| {
        use futures_util::StreamExt;
        stream::iter(frames).then(|frame| async {
            sleep(Duration::from_secs(1)).await;
            frame
        })
    };
    let three = || vec![piece("a"), piece("b"), piece("c")];
    Ok(match way {
        "three pieces" => frames(stream::iter(three())),
        "three slow pieces" => frames(slowly(three())),
        "a length that is none" => {
            let mut answer = with_body("hello");
            answer.headers_mut().insert("content-length", 100.into());
            answer
        }
        "breaks at once" => frames(stream::iter([piece("a"), Err("broken".into())])),
        "breaks in the middle" => frames(slowly(vec![piece("a"), Err("broken".into())])),
        "panics in the middle" => of(Panics {
            left: 1,
            wait: None,
        }),
        "panics later" => of(Panics {
            left: 1,
            wait: Some(Box::pin(sleep(Duration::from_secs(1)))),
        }),
        "an error" => return Err("no connection".into()),
        _ => with_body(""),
    })
}

/// A body that panics while it is read.
struct Panics {
    left: u32,
    wait: Option<Pin<Box<tokio::time::Sleep>>>,
}

impl Body for Panics {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(wait) = &mut self.wait {
            std::task::ready!(wait.as_mut().poll(cx));
            self.wait = None;
        }
        assert!(self.left > 0, "asked to panic");
        self.left -= 1;
        Poll::Ready(Some(piece("a")))
    }
}

/// Whichever way an answer leaves, and whether it is read or not, its key does not stay running:
/// what is whole is kept, what broke runs again.
///
/// Field cases B18, B19, P57.
#[tokio::test(start_paused = true)]
async fn no_key_stays_running_whichever_way_the_answer_leaves() {
    for (way, is_kept) in WAYS {
        for is_read in [true, false] {
            let store = MemoryStore::new();
            let layer = IdempotencyLayer::new(store.clone(), IdempotencyKey::unscoped());
            let app = App::new(move |_| async move { leave(way) });
            let answer = AssertUnwindSafe(app.begin(&layer, keyed("k", "yes")));
            let answer = answer.catch_unwind().await;
            if let (Ok(Ok(answer)), true) = (answer, is_read) {
                // What broke off is an error of its reader.
                answer.into_body().collect().await.ok();
            }
            assert_eq!(layer.drain(Duration::from_mins(1)).await, 0);
            let key = Key::new("web", "", &["k"]);
            let sights = store.look(&[key]).await.unwrap();
            let expected = match sights.as_slice() {
                [Sight::Done(_)] => is_kept,
                [Sight::Absent] => !is_kept,
                _ => false,
            };
            assert!(expected, "{way}, read: {is_read}: {sights:?}");
        }
    }
}

/// A lease and a limit of no time are refused where they are set.
///
/// Field case B20.
#[test]
fn options_of_no_time_are_refused() {
    let refused = |set: fn()| std::panic::catch_unwind(set).is_err();
    assert!(refused(|| drop(web().lease(Duration::ZERO))));
    assert!(refused(|| drop(web().store_limit(Duration::ZERO))));
    drop(web().lease(Duration::from_nanos(1)));
}

fn wanted(print: u8) -> Wanted {
    let print = Fingerprint::from_bytes(&[print; Fingerprint::SIZE]).unwrap();
    Wanted::new(Key::new("web", "", &["k"])).fingerprint(print)
}

const DAY: Duration = Duration::from_hours(24);

/// A live lease blocks whatever lease another asks for, and is not touched by the question; one
/// that has passed, however short it was, blocks nobody.
///
/// Field cases B05, B20, B24.
#[tokio::test(flavor = "multi_thread")]
async fn a_lease_ends_at_its_time_whatever_the_next_one_asks_for() {
    for (name, store, _held) in all().await {
        let ask = async |lease, print| {
            let claim = Claim::new(Nonce::random(), lease, vec![wanted(print)]);
            store.claim(&claim).await.unwrap().pop().unwrap()
        };
        for short in [Duration::ZERO, Duration::from_nanos(1)] {
            let Verdict::Run(first) = ask(short, 1).await else {
                panic!("{name}: a new key is not run");
            };
            // The clock of the slowest store ticks in milliseconds.
            sleep(Duration::from_millis(5)).await;
            let Verdict::Run(second) = ask(DAY, 1).await else {
                panic!("{name}: a lease of {short:?} blocks");
            };
            assert_eq!(second.attempt(), 2, "{name}");
            for lease in [Duration::from_millis(1), DAY * 300] {
                let busy = ask(lease, 1).await;
                assert!(matches!(busy, Verdict::Running { .. }), "{name}: {busy:?}");
                let Verdict::Other { first } = ask(lease, 2).await else {
                    panic!("{name}: another request runs");
                };
                assert_eq!(first.as_bytes(), &[1; Fingerprint::SIZE]);
            }
            let stale = store.settle(&[first.release()]).await.unwrap();
            assert_eq!(stale, [Settled::Superseded], "{name}");
            let settled = store.settle(&[second.release()]).await.unwrap();
            assert_eq!(settled, [Settled::Applied], "{name}");
        }
    }
}

/// A late holder, whose lease another took over, changes nothing by recording, releasing or
/// renewing; the sender gets what the other recorded.
///
/// Field cases B07, P48, P49, P54, P65, P84, P86.
#[tokio::test(start_paused = true)]
async fn a_late_holder_changes_nothing() {
    for late in ["records", "releases", "renews"] {
        let store = MemoryStore::new();
        let layer = IdempotencyLayer::new(store.clone(), IdempotencyKey::unscoped());
        let claim = async |lease| {
            let wanted = Wanted::new(Key::new("web", "", &["k"]));
            let claim = Claim::new(Nonce::random(), lease, vec![wanted]);
            store.claim(&claim).await.unwrap().pop().unwrap()
        };
        let Verdict::Run(a) = claim(Duration::from_secs(1)).await else {
            panic!("a new key is not run");
        };
        sleep(Duration::from_millis(1500)).await;
        let app = App::new(|asked: Asked| async move { text(&format!("b{}", asked.run)) });
        assert_eq!(app.send(&layer, keyed("k", "yes")).await.text(), "b1");
        let record = Record::new(StatusCode::OK, http::HeaderMap::new(), Whole::default());
        match late {
            "renews" => drop(store.renew(&[a.hold()], DAY).await.unwrap()),
            "releases" => drop(store.settle(&[a.release()]).await.unwrap()),
            _ => {
                let end = a.record(record.into(), Keep::For(DAY));
                assert_eq!(store.settle(&[end]).await.unwrap(), [Settled::Superseded]);
            }
        }
        let third = app.send(&layer, keyed("k", "yes")).await;
        assert_eq!(
            (third.text(), third.is_replayed()),
            ("b1".into(), true),
            "{late}"
        );
    }
}

/// A handler that answers 200 although it failed, so that its sender does not storm: without a word
/// the message counts as done; with `Disposition::Release` the 200 goes out and the next delivery
/// runs.
///
/// Field case B127.
#[tokio::test]
async fn a_failure_behind_a_200_runs_again_if_the_handler_says_so() {
    for says_so in [false, true] {
        let layer = web();
        let app = App::new(move |asked| async move {
            let mut answer = with_body("received");
            if says_so && asked.run == 1 {
                answer.extensions_mut().insert(Disposition::Release);
            }
            Ok(answer)
        });
        for _ in 0..3 {
            assert_eq!(app.send(&layer, keyed("k", "yes")).await.status, 200);
        }
        assert_eq!(app.runs(), if says_so { 2 } else { 1 });
    }
}

/// A record that is damaged, or of a version that is not known, is neither running nor a reason to
/// run again: its repeats are told that the store cannot tell, which is counted.
///
/// Field case B21.
#[tokio::test]
async fn a_record_that_cannot_be_read_is_told_so_and_runs_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.db");
    let store = SqliteStore::open(&path).unwrap();
    let layer = IdempotencyLayer::new(store, IdempotencyKey::unscoped());
    let app = App::quick();
    for (n, bytes) in (1..).zip(["x''", "x'00'", "x'01'", "x'63c90100'"]) {
        let key = format!("{n}");
        app.send(&layer, keyed(&key, "yes")).await;
        let file = rusqlite::Connection::open(&path).unwrap();
        let damage = format!("UPDATE idempotency_claims SET record = {bytes} WHERE id = '{key}'");
        assert_eq!(file.execute(&damage, []).unwrap(), 1);
        let before = layer.counts().store_failures;
        let seen = app.send(&layer, keyed(&key, "yes")).await;
        assert_eq!((seen.status.as_u16(), app.runs()), (503, n), "{bytes}");
        assert!(seen.text().contains("store-unavailable"), "{}", seen.text());
        assert!(layer.counts().store_failures > before);
    }
}
