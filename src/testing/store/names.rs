//! Clauses on names: any text is an id, a scope, a channel, a conversation.

use crate::key::{Conversation, Key};
use crate::record::{Keep, Payload};
use crate::store::contract::{Store, Wanted};
use crate::testing::store::fixture::Fixture;
use crate::testing::store::hand::{LONG, ask, begin, busy, done, finish, is_absent, key, replayed};

/// NUL, quotes, separators, emoji, ten kilobytes: all are ids, and all are different ones.
pub async fn odd_ids_are_names_like_any_other<F: Fixture>(fixture: F) {
    let keys: Vec<Key> = odd().iter().map(|id| key(id)).collect();
    are_told_apart(fixture.store(), &keys).await;
}

/// The same for the two other parts of a key.
pub async fn odd_scopes_and_channels_are_names_like_any_other<F: Fixture>(fixture: F) {
    let odd = odd();
    let scopes = odd.iter().map(|scope| Key::new("contract", scope, &["a"]));
    let channels = odd.iter().map(|channel| Key::new(channel, "", &["a"]));
    let keys: Vec<Key> = scopes.chain(channels.skip(1)).collect();
    are_told_apart(fixture.store(), &keys).await;
}

/// Forgetting an odd conversation forgets that one.
pub async fn odd_conversations_are_names_like_any_other<F: Fixture>(fixture: F) {
    let store = fixture.store();
    let odd = odd();
    let conversations = odd.iter().map(|id| Conversation::new("contract", "", id));
    let conversations: Vec<_> = conversations.collect();
    for (id, conversation) in odd.iter().zip(&conversations) {
        let wanted = Wanted::new(key(id)).conversation(conversation.clone());
        finish(store, wanted, Keep::For(LONG)).await;
    }
    for (at, conversation) in conversations.iter().enumerate() {
        assert_eq!(store.forget(conversation).await.unwrap(), 1);
        for (later, id) in odd.iter().enumerate() {
            let forgotten = *done(store, &key(id)).await.payload() == Payload::Forgotten;
            assert_eq!(forgotten, later <= at, "{id:?}");
        }
    }
}

fn odd() -> Vec<String> {
    let long = "x".repeat(10_240);
    let texts = [
        "a",
        "",
        " ",
        "a ",
        " a",
        "A",
        "\0",
        "a\0",
        "a\0b",
        "|",
        "\\",
        "\\|",
        "a|b",
        "a\\|b",
        "%",
        "_",
        "'",
        "\"",
        "''; --",
        "\n",
        "\r\n",
        "\t",
        "null",
        "0",
        "00",
        "é",
        "e\u{301}",
        "👩‍👩‍👧",
        "👩",
        "\u{feff}",
        "\u{202e}",
        "\u{10ffff}",
        "$1",
        "?",
        "*",
        "{a}",
    ];
    let mut odd: Vec<String> = texts.iter().map(|&text| text.to_owned()).collect();
    odd.push(format!("{long}y"));
    odd.push(format!("{long}z"));
    odd.push(long);
    odd
}

/// Each key is absent until it is run itself, then busy, then replayed with its own record.
async fn are_told_apart<S: Store>(store: &S, keys: &[Key]) {
    for key in keys {
        assert!(is_absent(store, key).await, "{:?} is taken", key.id());
        finish(store, Wanted::new(key.clone()), Keep::For(LONG)).await;
    }
    for key in keys {
        let record = replayed(ask(store, Wanted::new(key.clone()), LONG).await);
        let Payload::Whole(whole) = record.payload() else {
            panic!("no body for {:?}", key.id());
        };
        assert_eq!(whole.frames.concat(), key.id().as_bytes());
    }
    let running = Key::new("contract", "running", &["\0👩|\\"]);
    let lease = begin(store, Wanted::new(running.clone()), LONG).await;
    assert_eq!(*lease.key(), running);
    busy(ask(store, Wanted::new(running), LONG).await);
}
