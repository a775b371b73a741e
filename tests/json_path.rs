//! Proves which ids, scopes and conversations a path finds in a JSON body, and what is refused.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use http::Request;
use http::request::Parts;
use tower_idempotency::channel::{Channel, Concern, JsonPath, Reason, Scope};
use tower_idempotency::{Conversation, Delivery, Key};

const IDS: &str = "$.messages[*].id";

fn head() -> Parts {
    let request = Request::post("/").header("x-account", "acme").body(());
    request.unwrap().into_parts().0
}

fn deliveries(channel: &JsonPath, body: impl AsRef<[u8]>) -> Result<Vec<Delivery>, Reason> {
    let channel = channel.clone().unverified();
    let all = channel.deliveries(&head(), body.as_ref());
    assert_eq!(
        all,
        channel.deliveries(&head(), body.as_ref()),
        "the same answer twice"
    );
    all.map_err(|refusal| refusal.reason())
}

fn ids_at(path: &str, body: impl AsRef<[u8]>) -> Result<Vec<String>, Reason> {
    let channel = JsonPath::new("shop", path).unwrap();
    let all = deliveries(&channel, body)?;
    Ok(all.iter().map(|it| it.key().id().to_owned()).collect())
}

fn found(ids: &[&str]) -> Vec<String> {
    ids.iter().map(|&id| id.to_owned()).collect()
}

#[test]
fn every_element_of_a_wildcard_is_a_delivery() {
    let body = r#"{"messages":[{"id":"a"},{"x":1,"id":"b"},{"id":"c"}],"rest":[{"id":"d"}]}"#;
    assert_eq!(ids_at(IDS, body), Ok(found(&["a", "b", "c"])));
    assert_eq!(ids_at("$.*[*].id", body), Ok(found(&["a", "b", "c", "d"])));
    assert_eq!(ids_at("$.messages[1].id", body), Ok(found(&["b"])));
    assert_eq!(ids_at("$['messages'][-1]['id']", body), Ok(found(&["c"])));
    assert_eq!(ids_at("$.messages[3].id", body), Ok(found(&[])));
    assert_eq!(ids_at("$.messages[-4].id", body), Ok(found(&[])));
}

#[test]
fn a_document_can_be_an_array_or_the_id_itself() {
    assert_eq!(
        ids_at("$[*].id", r#"[{"id":"a"},{"id":"b"}]"#),
        Ok(found(&["a", "b"]))
    );
    assert_eq!(ids_at("$[*]", r#"["a", 2]"#), Ok(found(&["a", "2"])));
    assert_eq!(ids_at("$", r#" "a" "#), Ok(found(&["a"])));
}

#[test]
fn a_wildcard_selects_the_members_of_an_object() {
    let body = r#"{"messages":{"x":{"id":"a"},"y":{"id":"b"}}}"#;
    assert_eq!(ids_at(IDS, body), Ok(found(&["a", "b"])));
}

/// Field case B101.
#[test]
fn strings_and_integers_are_ids_digit_for_digit() {
    for (value, id) in [
        (r#""a""#, "a"),
        (r#"" a ""#, " a "),
        (r#""null""#, "null"),
        (r#""0""#, "0"),
        ("0", "0"),
        ("-5", "-5"),
        ("-0", "-0"),
        ("9007199254740993", "9007199254740993"),
        ("18446744073709551617", "18446744073709551617"),
        (
            "123456789012345678901234567890",
            "123456789012345678901234567890",
        ),
        (r#""\u0061\/\"""#, "a/\""),
    ] {
        let body = format!(r#"{{"messages":[{{"id":{value}}}]}}"#);
        assert_eq!(ids_at(IDS, body), Ok(found(&[id])), "{value}");
    }
}

/// Field case B101.
#[test]
fn anything_else_is_no_id() {
    for value in [
        "null",
        "true",
        "false",
        "1.0",
        "1e3",
        "1e999",
        "[]",
        "[1]",
        "{}",
        r#"{"id":1}"#,
        r#""""#,
        r#""  ""#,
    ] {
        let body = format!(r#"{{"messages":[{{"id":{value}}},{{"id":"b"}}]}}"#);
        assert_eq!(ids_at(IDS, body), Ok(found(&["b"])), "{value}");
    }
    for body in [
        r#"{"messages":[{}]}"#,
        r#"{"messages":[]}"#,
        r#"{"messages":{}}"#,
        "{}",
        "[]",
        "1",
    ] {
        assert_eq!(ids_at(IDS, body), Ok(found(&[])), "{body}");
    }
}

#[test]
fn an_escaped_member_name_is_the_same_name() {
    assert_eq!(
        ids_at(IDS, r#"{"\u006dessages":[{"\u0069d":"a"}]}"#),
        Ok(found(&["a"]))
    );
}

#[test]
fn a_member_repeated_on_the_path_is_refused_and_named() {
    for body in [
        r#"{"messages":[{"id":"a","id":"a"}]}"#,
        r#"{"messages":[{"id":"a","\u0069d":"z"}]}"#,
        r#"{"messages":[{"id":"a"}],"messages":[]}"#,
        r#"{"messages":{"id":{"id":"a"},"x":1,"x":2}}"#,
    ] {
        assert_eq!(ids_at(IDS, body), Err(Reason::MalformedBody), "{body}");
    }
    let channel = JsonPath::new("shop", IDS).unwrap().unverified();
    let body = br#"{"messages":[{"id":"a","id":"b"}]}"#;
    let refusal = channel.deliveries(&head(), body).unwrap_err();
    assert!(refusal.detail().contains("\"id\""), "{refusal}");
}

#[test]
fn a_member_repeated_elsewhere_is_none_of_our_business() {
    let body = r#"{"x":1,"x":2,"messages":[{"id":"a","text":"1","text":"2"}]}"#;
    assert_eq!(ids_at(IDS, body), Ok(found(&["a"])));
}

#[test]
fn a_body_that_is_no_json_passes_unless_an_id_is_required() {
    let good = r#"{"messages":[{"id":"a"}]}"#;
    let mut bad: Vec<Vec<u8>> = (0..good.len())
        .map(|cut| good.as_bytes()[..cut].to_vec())
        .collect();
    for tail in ["x", "{}", ",", "\0"] {
        bad.push(format!("{good}{tail}").into_bytes());
    }
    bad.push(br#"{"x":"\xff","messages":[{"id":"a"}]}"#.to_vec());
    bad.push(b"{\"x\":\"\xff\",\"messages\":[{\"id\":\"a\"}]}".to_vec());
    bad.push(br#"{"messages":[{"id":"\ud800"}]}"#.to_vec());
    bad.push(b"\xef\xbb\xbf{\"messages\":[{\"id\":\"a\"}]}".to_vec());
    let required = JsonPath::new("shop", IDS).unwrap().required();
    for body in bad {
        assert_eq!(
            ids_at(IDS, &body),
            Ok(found(&[])),
            "{}",
            body.escape_ascii()
        );
        assert_eq!(
            deliveries(&required, &body),
            Err(Reason::MalformedBody),
            "{}",
            body.escape_ascii()
        );
    }
}

#[test]
fn a_refused_body_says_where_it_is_wrong() {
    let required = JsonPath::new("shop", IDS).unwrap().required();
    for (body, place) in [
        (&b"{\"messages\":\n  [x]}"[..], "line 2, column 4"),
        (b"{\n\"a\xff\":1}", "line 2, column 3"),
    ] {
        let channel = required.clone().unverified();
        let refusal = channel.deliveries(&head(), body).unwrap_err();
        assert!(refusal.detail().contains(place), "{refusal}");
    }
}

#[test]
fn a_required_id_that_is_missing_is_refused() {
    let required = JsonPath::new("shop", IDS).unwrap().required();
    assert_eq!(
        deliveries(&required, r#"{"messages":[{}]}"#),
        Err(Reason::MissingKey)
    );
    assert_eq!(
        deliveries(&required, r#"{"messages":[{"id":1}]}"#)
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn no_nesting_is_too_deep() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let objects = format!("{}1{}", r#"{"id":"#.repeat(100_000), "}".repeat(100_000));
    for inner in [&deep, &objects] {
        let body = format!(r#"{{"x":{inner},"messages":[{{"id":"a"}},{{"id":{inner}}},{inner}]}}"#);
        assert_eq!(ids_at(IDS, &body).unwrap().first().unwrap(), "a");
    }
    assert_eq!(ids_at(IDS, &deep), Ok(found(&[])));
    let path = format!("${}", "[*]".repeat(64));
    assert_eq!(ids_at(&path, &deep), Ok(found(&[])));
}

#[test]
fn an_id_that_no_store_could_keep_is_refused() {
    for id in ["a\\u0000", "\\n", &"x".repeat(1025)] {
        let body = format!(r#"{{"messages":[{{"id":"a{id}"}}]}}"#);
        assert_eq!(ids_at(IDS, body), Err(Reason::MalformedKey), "{id}");
    }
    let longest = "x".repeat(1024);
    let body = format!(r#"{{"messages":[{{"id":"{longest}"}}]}}"#);
    assert_eq!(ids_at(IDS, body), Ok(found(&[&longest])));
}

#[test]
fn a_key_that_occurs_twice_is_one_delivery() {
    let body = r#"{"messages":[{"id":"a"},{"id":"b"},{"id":"a"}]}"#;
    assert_eq!(ids_at(IDS, body), Ok(found(&["a", "b"])));
}

#[test]
fn among_many_a_key_that_occurs_again_is_one_delivery_where_it_stood_first() {
    let ids = [5, 1, 2, 1, 3, 4, 5, 6, 7, 8, 9, 9, 10, 5];
    let messages = ids.map(|id| format!(r#"{{"id":"{id}"}}"#));
    let body = format!(r#"{{"messages":[{}]}}"#, messages.join(","));
    let first = ["5", "1", "2", "3", "4", "6", "7", "8", "9", "10"];
    assert_eq!(ids_at(IDS, body), Ok(found(&first)));
}

#[test]
fn an_id_can_have_parts_and_needs_all_of_them() {
    let channel = JsonPath::new("shop", "$.receipts[*]").unwrap();
    let channel = channel.id([".id", ".of.status"]).unwrap();
    let body =
        r#"{"receipts":[{"id":"a","of":{"status":"read"}},{"id":"b"},{"of":{"status":"c"}}]}"#;
    let all = deliveries(&channel, body).unwrap();
    assert_eq!(all.len(), 1);
    assert_eq!(
        all.first().unwrap().key(),
        &Key::new("shop", "", &["a", "read"])
    );
}

#[test]
fn where_parts_are_cut_tells_ids_apart() {
    let channel = JsonPath::new("shop", "$[*]")
        .unwrap()
        .id([".a", ".b"])
        .unwrap();
    let body = r#"[{"a":"x","b":"y|z"},{"a":"x|y","b":"z"},{"a":"x\\","b":"|z"}]"#;
    assert_eq!(deliveries(&channel, body).unwrap().len(), 3);
}

const NESTED: &str = r#"{"account":"top","entry":[
    {"id":"p1","items":[{"mid":"m1","chat":{"id":7}},{"mid":"m2"}]},
    {"id":"p2","items":[{"mid":"m1","chat":{"id":8}}]}]}"#;

fn nested() -> JsonPath {
    JsonPath::new("shop", "$.entry[*].items[*].mid").unwrap()
}

fn scopes(channel: &JsonPath) -> Vec<String> {
    let all = deliveries(channel, NESTED).unwrap();
    all.iter().map(|it| it.key().scope().to_owned()).collect()
}

#[test]
fn a_scope_path_means_the_element_that_the_message_stands_in() {
    assert_eq!(
        scopes(&nested().scope("$.entry[*].id").unwrap()),
        ["p1", "p1", "p2"]
    );
    assert_eq!(
        scopes(&nested().scope("$.account").unwrap()),
        ["top"; 2],
        "m1 twice"
    );
    assert_eq!(
        scopes(&nested().scope("$.entry[-1].id").unwrap()),
        ["p2"; 2]
    );
    assert_eq!(
        scopes(&nested().scope(Scope::header("x-account")).unwrap()),
        ["acme"; 2]
    );
    assert_eq!(scopes(&nested()), [""; 2]);
}

#[test]
fn a_relative_path_starts_at_the_message() {
    let channel = JsonPath::new("shop", "$.entry[*].items[*]").unwrap();
    let channel = channel
        .id([".mid"])
        .unwrap()
        .conversation(".chat.id")
        .unwrap();
    let all = deliveries(&channel, NESTED).unwrap();
    let conversations: Vec<_> = all.iter().map(|it| it.in_conversation().cloned()).collect();
    assert_eq!(
        conversations,
        [Some(Conversation::new("shop", "", "7")), None]
    );
}

#[test]
fn a_missing_scope_is_refused_and_named() {
    let channel = nested().scope("$.entry[*].items[*].chat.id").unwrap();
    let channel = channel.unverified();
    let refusal = channel.deliveries(&head(), NESTED.as_bytes()).unwrap_err();
    assert_eq!(refusal.reason(), Reason::MissingScope);
    assert!(refusal.detail().contains("chat.id"), "{refusal}");
}

#[test]
fn a_wildcard_that_is_not_shared_is_an_error_when_built() {
    for path in ["$.other[*].id", "$.entry[*].tags[*]", ".x[*]"] {
        let error = nested().scope(path).unwrap_err();
        assert!(
            error.is_misconfigured() && error.to_string().contains(path),
            "{error}"
        );
    }
    assert!(nested().id([".x[*]"]).unwrap_err().is_misconfigured());
    assert!(nested().id([""; 0]).unwrap_err().is_misconfigured());
}

#[test]
fn a_broken_path_is_an_error_that_shows_the_character() {
    let error = JsonPath::new("shop", "$.entry[?@.id]").unwrap_err();
    let shown = error.to_string();
    assert!(
        shown.ends_with("    $.entry[?@.id]\n            ^"),
        "{shown}"
    );
}

#[test]
fn safe_methods_pass() {
    let mut head = head();
    let channel = nested().unverified();
    assert_eq!(channel.concern(&head), Ok(Concern::Read));
    head.method = http::Method::GET;
    assert_eq!(channel.concern(&head), Ok(Concern::Pass));
}

#[test]
fn a_client_channel_can_take_its_scope_from_the_body() {
    use tower_idempotency::channel::IdempotencyKey;

    let channel = IdempotencyKey::scoped_by(Scope::json("$.user.id").unwrap());
    let request = Request::post("/").header("idempotency-key", "k").body(());
    let head = request.unwrap().into_parts().0;
    let scope = |body: &str| {
        let all = channel.deliveries(&head, body.as_bytes());
        all.map(|all| all.first().unwrap().key().scope().to_owned())
            .map_err(|refusal| refusal.reason())
    };
    assert_eq!(scope(r#"{"user":{"id":5}}"#), Ok("5".into()));
    assert_eq!(scope(r#"{"user":{}}"#), Err(Reason::MissingScope));
    assert_eq!(scope("{"), Err(Reason::MalformedBody));
    assert_eq!(
        scope(r#"{"user":{"id":5,"id":6}}"#),
        Err(Reason::MalformedBody)
    );
}
