//! Proves which `Idempotency-Key` headers are one key, which are refused and which pass.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use http::Request;
use http::request::{Builder, Parts};
use tower_idempotency::channel::Reason::{self, MalformedKey, MissingKey, MissingScope};
use tower_idempotency::channel::{Channel, Concern, IdempotencyKey, Scope};
use tower_idempotency::{Conversation, Key};

fn post() -> Builder {
    Request::post("/chat/c1/messages")
}

fn head(builder: Builder) -> Parts {
    builder.body(()).unwrap().into_parts().0
}

fn with_key(value: &[u8]) -> Parts {
    head(post().header("idempotency-key", value))
}

fn id(value: &[u8]) -> Result<String, Reason> {
    let channel = IdempotencyKey::unscoped();
    let head = with_key(value);
    let seen = channel.concern(&head).map_err(|refusal| refusal.reason());
    let deliveries = channel
        .deliveries(&head, b"")
        .map_err(|refusal| refusal.reason());
    assert_eq!(seen.err(), deliveries.as_ref().err().copied());
    deliveries.map(|all| all.first().unwrap().key().id().to_owned())
}

/// Field cases B102, P18, P31.
#[test]
fn a_quoted_and_a_bare_key_are_one_key() {
    for same in [&b"abc"[..], b"\"abc\"", b" abc ", b"\t\"abc\" "] {
        assert_eq!(id(same), Ok("abc".into()));
    }
}

#[test]
fn escapes_of_a_quoted_key_are_taken_out() {
    assert_eq!(id(br#""a\"b\\c""#), Ok(r#"a"b\\c"#.into()));
    assert_eq!(id(br#""a, b""#), Ok("a, b".into()));
}

#[test]
fn a_key_is_kept_byte_for_byte() {
    for exact in ["a b", "ABC", "a|b", "0", "null", "x;y=z", "a=/+:~"] {
        let key = Key::new("web", "", &[exact]);
        assert_eq!(id(exact.as_bytes()), Ok(key.id().to_owned()));
    }
}

/// Field cases B102, P35, P45.
#[test]
fn what_cannot_be_a_key_is_refused() {
    let long = "x".repeat(256);
    for bad in [
        &b""[..],
        b"   ",
        b"\"\"",
        b"\"  \"",
        b"\"abc",
        b"\"abc\\",
        b"\"abc\\\"",
        b"\"a\\nb\"",
        b"\"abc\" d",
        b"\"abc\";v=1",
        b"\"a\", \"b\"",
        b"a,b",
        b"a\"b",
        b"a\tb",
        b"caf\xc3\xa9",
        b"\xff",
        long.as_bytes(),
    ] {
        assert_eq!(
            id(bad),
            Err(MalformedKey),
            "{:?}",
            bad.escape_ascii().to_string()
        );
    }
    assert_eq!(id("x".repeat(255).as_bytes()), Ok("x".repeat(255)));
}

/// Field case B102.
#[test]
fn two_header_lines_are_refused_even_if_equal() {
    let head = head(
        post()
            .header("idempotency-key", "a")
            .header("idempotency-key", "a"),
    );
    let refusal = IdempotencyKey::unscoped().concern(&head).unwrap_err();
    assert_eq!(refusal.reason(), MalformedKey);
    assert!(refusal.detail().contains("occurs twice"), "{refusal}");
}

#[test]
fn a_request_without_a_key_passes_unless_one_is_required() {
    let channel = IdempotencyKey::unscoped();
    assert_eq!(channel.concern(&head(post())), Ok(Concern::NoKey));
    let refusal = channel.required().concern(&head(post())).unwrap_err();
    assert_eq!(refusal.reason(), MissingKey);
    assert!(refusal.detail().contains("idempotency-key"), "{refusal}");
}

#[test]
fn safe_methods_pass_even_with_a_broken_key() {
    for method in ["GET", "HEAD", "OPTIONS", "TRACE"] {
        let head = head(post().method(method).header("idempotency-key", ""));
        let channel = IdempotencyKey::unscoped().required();
        assert_eq!(channel.concern(&head), Ok(Concern::Pass), "{method}");
    }
    for method in ["POST", "PUT", "PATCH", "DELETE"] {
        let head = head(post().method(method).header("idempotency-key", "a"));
        let channel = IdempotencyKey::unscoped();
        assert_eq!(channel.concern(&head), Ok(Concern::Read), "{method}");
    }
}

#[test]
fn a_scoped_key_needs_its_scope() {
    let channel = IdempotencyKey::scoped_by(Scope::header("x-user")).named("chat");
    let refusal = channel.deliveries(&with_key(b"a"), b"").unwrap_err();
    assert_eq!(refusal.reason(), MissingScope);
    let head = head(
        post()
            .header("idempotency-key", "a")
            .header("x-user", "ann"),
    );
    let deliveries = channel.deliveries(&head, b"").unwrap();
    assert_eq!(deliveries[0].key(), &Key::new("chat", "ann", &["a"]));
}

#[test]
fn the_conversation_is_within_the_scope_and_may_be_missing() {
    let by_segment = |n| {
        let channel =
            IdempotencyKey::scoped_by(Scope::fixed("s")).conversation(Scope::path_segment(n));
        channel.deliveries(&with_key(b"a"), b"").unwrap().remove(0)
    };
    let conversation = Conversation::new("web", "s", "c1");
    assert_eq!(by_segment(1).in_conversation(), Some(&conversation));
    assert_eq!(by_segment(9).in_conversation(), None);
}

#[test]
fn the_header_can_be_another() {
    let channel = IdempotencyKey::unscoped().header("x-message-key");
    assert_eq!(channel.concern(&with_key(b"a")), Ok(Concern::NoKey));
    let head = head(post().header("X-Message-Key", "a"));
    assert_eq!(channel.deliveries(&head, b"").unwrap()[0].key().id(), "a");
}
