//! Whose a key is.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use tower_idempotency::IdempotencyLayer;
use tower_idempotency::channel::{ByPath, HeaderId, IdempotencyKey, JsonPath, Scope, Telegram};
use tower_idempotency::store::MemoryStore;

use crate::app::{App, JSON, post};

/// What the authentication in front of the layer found out.
#[derive(Clone)]
struct User(&'static str);

/// The name of who asks is in the answer, so that a leak would show.
fn teller() -> App {
    App::new(|asked| async move {
        let user = asked.head.extensions.get::<User>().map(|user| user.0);
        let header = |name| {
            asked
                .head
                .headers
                .get(name)
                .map(|value| value.to_str().unwrap())
        };
        let who = user.or_else(|| header("authorization"));
        let who = who.or_else(|| header("x-api-key"));
        crate::app::text(who.unwrap_or("nobody"))
    })
}

/// Two who send the same key get each their own answer, whatever tells them apart; who cannot be
/// told apart from others is refused, and is not thrown together with them.
///
/// Field cases B44, P20, P34, P51, P56, P70, P73.
#[tokio::test]
async fn two_users_of_one_key_never_see_each_other() {
    for header in ["authorization", "x-api-key"] {
        let channel = IdempotencyKey::scoped_by(Scope::header(header));
        let layer = IdempotencyLayer::new(MemoryStore::new(), channel);
        let app = teller();
        for round in 0..2 {
            for who in ["alice", "bob"] {
                let request = [("idempotency-key", "1"), (header, who)];
                let seen = app.send(&layer, post("/messages", &request, "yes")).await;
                assert_eq!((seen.text(), seen.is_replayed()), (who.into(), round == 1));
            }
            let nobody = post("/messages", &[("idempotency-key", "1")], "yes");
            let seen = app.send(&layer, nobody).await;
            assert_eq!(seen.status, 400);
            assert!(seen.text().contains("missing-scope"));
        }
        assert_eq!(app.runs(), 2);
    }
}

/// An address, or what a client says about it, is nobody's name: two visitors behind one address do
/// not meet, and a forged one changes nothing.
///
/// Field case B45.
#[tokio::test]
async fn visitors_behind_one_address_do_not_meet() {
    let channel = IdempotencyKey::scoped_by(Scope::header("x-session"));
    let layer = IdempotencyLayer::new(MemoryStore::new(), channel);
    let app = App::quick();
    let visit = |session: &'static str, address: &'static str, body: &'static str| {
        let headers = [
            ("idempotency-key", "1"),
            ("x-session", session),
            ("x-forwarded-for", address),
        ];
        app.send(&layer, post("/messages", &headers, body))
    };
    assert_eq!(visit("a", "192.0.2.1", "hello").await.text(), "run 1");
    assert_eq!(visit("b", "192.0.2.1", "other").await.text(), "run 2");
    assert!(visit("a", "198.51.100.7", "hello").await.is_replayed());
}

/// Who a user is stays, while tokens are refreshed and cookies roll between two attempts.
///
/// Field cases P12, P51, P56, P83.
#[tokio::test]
async fn a_refreshed_token_keeps_the_user_and_so_the_key() {
    let channel = IdempotencyKey::scoped_by(Scope::extension(|user: &User| user.0));
    let layer = IdempotencyLayer::new(MemoryStore::new(), channel);
    let app = teller();
    for (token, is_replayed) in [("first", false), ("second", true)] {
        let headers = [
            ("idempotency-key", "1"),
            ("authorization", token),
            ("cookie", token),
        ];
        let mut request = post("/messages", &headers, "yes");
        request.extensions_mut().insert(User("alice"));
        assert_eq!(app.send(&layer, request).await.is_replayed(), is_replayed);
    }
    let mut bob = post("/messages", &[("idempotency-key", "1")], "yes");
    bob.extensions_mut().insert(User("bob"));
    assert_eq!(app.send(&layer, bob).await.text(), "bob");
}

/// One id at two routes is two messages, where each route has a channel of its own name; requests
/// without an id all run, and no id is made up for them.
///
/// Field case B48.
#[tokio::test]
async fn routes_do_not_share_ids_and_what_has_none_always_runs() {
    let id = |name| HeaderId::new(name, "x-request-id").unverified();
    let channel = ByPath::new().at("/a", id("a")).at("/b", id("b"));
    let layer = IdempotencyLayer::new(MemoryStore::new(), channel);
    let app = App::quick();
    let mut answers = BTreeSet::new();
    for path in ["/a", "/b", "/a", "/b"] {
        let seen = app
            .send(&layer, post(path, &[("x-request-id", "r1")], "yes"))
            .await;
        answers.insert(seen.text());
    }
    assert_eq!((app.runs(), answers.len()), (2, 2));
    let burst = (0..1000).map(|_| app.send(&layer, post("/a", &[], "yes")));
    join_all(burst).await;
    assert_eq!((app.runs(), layer.counts().without_key), (1002, 1000));
}

/// Numbers that each bot counts for itself: update ids, and chats and messages within them.
///
/// Field case B47.
#[tokio::test]
async fn two_bots_with_the_same_numbers_are_two() {
    let bot = || Scope::path_segment(1);
    let layer = IdempotencyLayer::new(MemoryStore::new(), Telegram::unverified(bot()));
    let app = App::quick();
    let update = r#"{"update_id":1001,"message":{"chat":{"id":7},"message_id":3}}"#;
    for path in ["/tg/a", "/tg/b", "/tg/a"] {
        app.send(&layer, post(path, JSON, update)).await;
    }
    assert_eq!(app.runs(), 2);
    let by_message = JsonPath::new("tg", "$.message").unwrap();
    let by_message = by_message.id([".chat.id", ".message_id"]).unwrap();
    let by_message = by_message.scope(bot()).unwrap().unverified();
    let layer = IdempotencyLayer::new(MemoryStore::new(), by_message);
    for path in ["/tg/a", "/tg/b", "/tg/b"] {
        app.send(&layer, post(path, JSON, update)).await;
    }
    assert_eq!(app.runs(), 4);
}
