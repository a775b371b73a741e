//! Proves that cutting finished deliveries out of a body leaves every other byte as it was.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeSet;

use bytes::Bytes;
use http::Request;
use http::request::Parts;
use proptest::prelude::*;
use tower_idempotency::Key;
use tower_idempotency::channel::{Channel, JsonPath};

fn head() -> Parts {
    Request::post("/").body(()).unwrap().into_parts().0
}

fn without(path: &str, body: &str, gone: &[&str]) -> Option<String> {
    let channel = JsonPath::new("shop", path).unwrap().unverified();
    let keys: Vec<_> = gone.iter().map(|id| Key::new("shop", "", &[id])).collect();
    let left = channel.without(
        &head(),
        &Bytes::copy_from_slice(body.as_bytes()),
        &keys.iter().collect::<Vec<_>>(),
    );
    left.map(|left| String::from_utf8(left.to_vec()).unwrap())
}

fn cut(body: &str, gone: &[&str]) -> String {
    without("$.m[*].id", body, gone).unwrap()
}

#[test]
fn an_element_goes_with_one_comma() {
    let body = r#"{"m":[{"id":1},{"id":2},{"id":3}]}"#;
    for (gone, left) in [
        (&[][..], body),
        (&["1"], r#"{"m":[{"id":2},{"id":3}]}"#),
        (&["2"], r#"{"m":[{"id":1},{"id":3}]}"#),
        (&["3"], r#"{"m":[{"id":1},{"id":2}]}"#),
        (&["1", "2"], r#"{"m":[{"id":3}]}"#),
        (&["1", "3"], r#"{"m":[{"id":2}]}"#),
        (&["2", "3"], r#"{"m":[{"id":1}]}"#),
        (&["1", "2", "3"], r#"{"m":[]}"#),
        (&["9"], body),
    ] {
        assert_eq!(cut(body, gone), left, "{gone:?}");
    }
}

#[test]
fn white_space_stays() {
    let body = " {\"m\" : [ {\"id\":1} ,\t{\"id\":2}\n,\r{\"id\":3} ] } ";
    assert_eq!(
        cut(body, &["1"]),
        " {\"m\" : [  \t{\"id\":2}\n,\r{\"id\":3} ] } "
    );
    assert_eq!(
        cut(body, &["2"]),
        " {\"m\" : [ {\"id\":1} ,\t\n\r{\"id\":3} ] } "
    );
    assert_eq!(
        cut(body, &["3"]),
        " {\"m\" : [ {\"id\":1} ,\t{\"id\":2}\n\r ] } "
    );
    assert_eq!(cut(body, &["1", "2", "3"]), " {\"m\" : [  \t\n\r ] } ");
}

#[test]
fn numbers_escapes_and_the_order_of_members_stay() {
    let rest = r#"{"z":9007199254740993,"a":1.50,"t":"\u0041\/ü, ]","id":2,"e":1E400}"#;
    let body = format!(r#"{{"m":[{{"id":1}},{rest}],"b":[1,2],"a":{{"id":1}}}}"#);
    let left = format!(r#"{{"m":[{rest}],"b":[1,2],"a":{{"id":1}}}}"#);
    assert_eq!(cut(&body, &["1"]), left);
}

#[test]
fn a_key_that_occurs_twice_goes_twice() {
    let body = r#"{"m":[{"id":1},{"id":2},{"id":1}]}"#;
    assert_eq!(cut(body, &["1"]), r#"{"m":[{"id":2}]}"#);
}

#[test]
fn elements_without_an_id_stay() {
    let body = r#"{"m":[{"id":1},{"x":1},7,{"id":2}]}"#;
    assert_eq!(cut(body, &["1", "2"]), r#"{"m":[{"x":1},7]}"#);
}

#[test]
fn the_innermost_element_goes() {
    let body = r#"{"e":[{"m":[{"id":1},{"id":2}]},{"m":[{"id":3}]}]}"#;
    let left = without("$.e[*].m[*].id", body, &["1", "3"]).unwrap();
    assert_eq!(left, r#"{"e":[{"m":[{"id":2}]},{"m":[]}]}"#);
    let left = without("$.e[*].m[-1].id", body, &["2"]).unwrap();
    assert_eq!(
        left, r#"{"e":[{"m":[{"id":3}]}]}"#,
        "an index is no choice, its element stays"
    );
}

#[test]
fn what_is_no_element_of_an_array_cannot_be_cut() {
    assert_eq!(without("$.id", r#"{"id":1}"#, &["1"]), None);
    assert_eq!(without("$.m[0].id", r#"{"m":[{"id":1}]}"#, &["1"]), None);
    assert_eq!(without("$.m.*.id", r#"{"m":{"a":{"id":1}}}"#, &["1"]), None);
    assert_eq!(
        without("$.m[*].id", r#"{"m":[{"id":1}]"#, &["1"]),
        None,
        "no JSON"
    );
}

#[test]
fn an_element_that_another_ones_scope_counts_on_is_not_cut() {
    let channel = JsonPath::new("shop", "$[*].id").unwrap();
    let channel = channel.scope("$[0].account").unwrap().unverified();
    let keys = |body: &str| keys(&channel, body.as_bytes());
    let left = |body: &'static str, gone: usize| {
        let gone = keys(body).get(gone).cloned().unwrap();
        channel.without(&head(), &Bytes::from_static(body.as_bytes()), &[&gone])
    };
    // The second message would find its scope in itself.
    let both = r#"[{"id":1,"account":"a"},{"id":2,"account":"b"}]"#;
    assert_eq!(left(both, 0), None);
    assert_eq!(
        left(both, 1).as_deref(),
        Some(&br#"[{"id":1,"account":"a"}]"#[..])
    );
    // What is no message is never cut, and can be counted on.
    let headed = r#"[{"account":"a"},{"id":1},{"id":2}]"#;
    assert_eq!(
        left(headed, 0).as_deref(),
        Some(&br#"[{"account":"a"},{"id":2}]"#[..])
    );
}

#[test]
fn the_deepest_path_is_cut_without_a_long_wait() {
    let path = format!("${}", "[*]".repeat(64));
    let body = format!("{}1,2{}", "[".repeat(64), "]".repeat(64));
    let left = format!("{}2{}", "[".repeat(64), "]".repeat(64));
    assert_eq!(without(&path, &body, &["1"]), Some(left));
}

/// A document with messages in nested arrays, in the way that no writer would indent it.
fn document() -> impl Strategy<Value = String> {
    let blank = || prop::sample::select(vec!["", " ", "\n\t", "  "]);
    let message = (0..6_u8, blank(), blank()).prop_map(|(kind, a, b)| match kind {
        0 => format!("{{{a}\"text\":\"no id, ]}}\"{b}}}"),
        1 => format!("{a}null{b}"),
        2 => format!("[{a}1{b},2]"),
        n => format!("{{\"id\"{a}:{b}\"{n}\",\"x\":[{a}{b}]}}"),
    });
    let list = |item: BoxedStrategy<String>| {
        let items = prop::collection::vec((item, blank(), blank()), 0..5);
        items.prop_map(|items| {
            let padded = items.iter().map(|(item, a, b)| format!("{a}{item}{b}"));
            format!("[{}]", padded.collect::<Vec<_>>().join(","))
        })
    };
    let entry = (list(message.boxed()), blank()).prop_map(|(m, a)| format!("{{{a}\"m\":{m}}}"));
    (list(entry.boxed()), blank()).prop_map(|(e, a)| format!("{{\"e\":{a}{e}{a}}}"))
}

fn keys(channel: &impl Channel, body: &[u8]) -> Vec<Key> {
    let all = channel.deliveries(&head(), body).unwrap();
    all.iter().map(|it| it.key().clone()).collect()
}

proptest! {
    #[test]
    fn reading_what_is_left_gives_exactly_the_rest(
        body in document(),
        choice in prop::collection::btree_set(3..6_u8, 0..4),
    ) {
        let channel = JsonPath::new("shop", "$.e[*].m[*].id").unwrap().unverified();
        let all = keys(&channel, body.as_bytes());
        let choice: BTreeSet<_> = choice.iter().map(ToString::to_string).collect();
        let (gone, rest): (Vec<_>, Vec<_>) = all.into_iter().partition(|key| choice.contains(key.id()));
        let left = channel.without(&head(), &Bytes::from(body.clone()), &gone.iter().collect::<Vec<_>>());
        let left = left.unwrap();
        prop_assert_eq!(keys(&channel, &left), rest);
        prop_assert!(serde_json::from_slice::<serde_json::Value>(&left).is_ok());
        let blanks = |text: &[u8]| text.iter().filter(|b| b.is_ascii_whitespace()).count();
        prop_assert!(gone.is_empty() == (left.len() == body.len()));
        prop_assert!(blanks(&left) <= blanks(body.as_bytes()));
    }
}
