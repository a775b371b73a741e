//! Senders of one's own: `FormField`, `HeaderId` and `XmlPath` read ids, scopes and conversations
//! from where they are told, and say clearly what is missing.
#![cfg(feature = "xml")]
#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use http::Request;
use http::request::Parts;
use tower_idempotency::channel::{
    Channel, Concern, FormField, HeaderId, JsonPath, Reason, Refusal, Scope, XmlPath,
};
use tower_idempotency::{Conversation, Delivery};

fn head(headers: &[(&str, &str)]) -> Parts {
    let mut request = Request::post("/hooks/7");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap().into_parts().0
}

fn one(channel: &impl Channel, headers: &[(&str, &str)], body: &str) -> Option<Delivery> {
    let mut all = channel.deliveries(&head(headers), body.as_bytes()).unwrap();
    assert!(all.len() <= 1);
    all.pop()
}

fn fault(channel: &impl Channel, headers: &[(&str, &str)], body: &str) -> Reason {
    let answer: Result<_, Refusal> = channel.deliveries(&head(headers), body.as_bytes());
    answer.unwrap_err().reason()
}

fn told(delivery: &Delivery) -> (&str, &str, &str, Option<&str>) {
    let key = delivery.key();
    let conversation = delivery.in_conversation().map(Conversation::id);
    (key.channel(), key.scope(), key.id(), conversation)
}

#[test]
fn a_form_is_read_by_its_fields() {
    let channel = FormField::new("sms", "Id")
        .and("Status")
        .scope(Scope::form_field("Account"))
        .conversation(Scope::form_field("From"))
        .unverified();
    let found = one(&channel, &[], "Status=sent&From=%2B1&Account=A&Id=7&x=").unwrap();
    assert_eq!(told(&found), ("sms", "A", "7|sent", Some("+1")));
    let found = one(&channel, &[], "Status=sent&Account=A&Id=7").unwrap();
    assert_eq!(told(&found), ("sms", "A", "7|sent", None));
    assert_eq!(one(&channel, &[], "Status=sent&Account=A"), None);
    assert_eq!(one(&channel, &[], "Id=7&Account=A"), None);
    assert_eq!(
        fault(&channel, &[], "Id=7&Status=sent"),
        Reason::MissingScope
    );
}

#[test]
fn a_form_field_may_hold_json() {
    let channel = FormField::json("buttons", "payload", "$.action.id").unwrap();
    let channel = channel.unverified();
    let payload = "payload=%7B%22action%22%3A%7B%22id%22%3A%22a+b%22%7D%7D";
    assert_eq!(one(&channel, &[], payload).unwrap().key().id(), "a b");
    for none in ["payload=%7B%7D", "payload=%7B", "payload=", "other=%7B%7D"] {
        assert_eq!(one(&channel, &[], none), None, "{none}");
    }
    let several = FormField::json("buttons", "payload", "$[*]").unwrap();
    let several = several.unverified();
    assert_eq!(one(&several, &[], "payload=[1,2]"), None);
    assert!(FormField::json("buttons", "payload", "action").is_err());
}

#[test]
fn a_header_is_read_once() {
    let channel = HeaderId::new("shop", "x-id")
        .scope(Scope::path_segment(1))
        .conversation(Scope::header("x-customer"))
        .unverified();
    let headers = [("x-id", "7"), ("x-customer", "ann")];
    let found = one(&channel, &headers, "anything").unwrap();
    assert_eq!(told(&found), ("shop", "7", "7", Some("ann")));
    assert_eq!(one(&channel, &[("x-id", "  ")], ""), None);
    assert_eq!(one(&channel, &[], ""), None);
    let twice = [("x-id", "7"), ("x-id", "7")];
    assert_eq!(fault(&channel, &twice, ""), Reason::MalformedKey);
}

#[test]
fn a_document_is_read_by_its_elements() {
    let channel = XmlPath::new("orders", "/order/id")
        .unwrap()
        .and("/order/status")
        .unwrap()
        .scope(Scope::xml("/order/shop").unwrap())
        .conversation(Scope::xml("/order/customer/name").unwrap())
        .unverified();
    let body = "<order><shop>s</shop><customer><name>ann</name></customer>\
                <id>7</id><status><![CDATA[new]]></status></order>";
    let found = one(&channel, &[], body).unwrap();
    assert_eq!(told(&found), ("orders", "s", "7|new", Some("ann")));
    let unscoped = "<order><id>7</id><status>new</status></order>";
    assert_eq!(fault(&channel, &[], unscoped), Reason::MissingScope);
    assert_eq!(one(&channel, &[], "<order><id>7</id></order>"), None);
    assert_eq!(one(&channel, &[], "{}"), None);
}

#[test]
fn a_path_that_names_no_element_is_an_error_when_the_channel_is_made() {
    for bad in ["", "order", "/order/", "//id"] {
        assert!(XmlPath::new("orders", bad).unwrap_err().is_misconfigured());
        assert!(Scope::xml(bad).unwrap_err().is_misconfigured());
    }
    let twice = XmlPath::new("orders", "/a").unwrap().and("/a");
    assert!(twice.unwrap_err().is_misconfigured());
}

/// Field case B111.
#[test]
fn a_required_id_that_is_missing_is_refused() {
    let header = HeaderId::new("shop", "x-id").required().unverified();
    assert_eq!(fault(&header, &[("x-id", "")], ""), Reason::MissingKey);
    let form = FormField::new("sms", "Id").required().unverified();
    assert_eq!(fault(&form, &[], "Id="), Reason::MissingKey);
    let xml = XmlPath::new("orders", "/order/id").unwrap();
    let xml = xml.required().unverified();
    assert_eq!(fault(&xml, &[], "<order/>"), Reason::MissingKey);
}

#[test]
fn safe_methods_do_not_concern_them() {
    let mut safe = head(&[("x-id", "7")]);
    safe.method = http::Method::GET;
    let channels: [Box<dyn Channel>; 3] = [
        Box::new(HeaderId::new("shop", "x-id").unverified()),
        Box::new(FormField::new("sms", "Id").unverified()),
        Box::new(XmlPath::new("orders", "/order/id").unwrap().unverified()),
    ];
    for channel in channels {
        assert_eq!(channel.concern(&safe), Ok(Concern::Pass));
        assert_eq!(channel.concern(&head(&[])), Ok(Concern::Read));
    }
}

/// Accepts who says the word.
fn word(head: &Parts, _body: &[u8]) -> Result<(), Refusal> {
    match head.headers.get("x-word") {
        Some(word) if word == "please" => Ok(()),
        Some(_) | None => Err(Refusal::unverified("the word is another")),
    }
}

#[test]
fn they_are_verified_or_say_that_they_are_not() {
    let verified: [Box<dyn Channel>; 4] = [
        Box::new(HeaderId::new("shop", "x-id").verified_by(word)),
        Box::new(FormField::new("sms", "Id").verified_by(word)),
        Box::new(JsonPath::new("json", "$.id").unwrap().verified_by(word)),
        Box::new(
            XmlPath::new("orders", "/order/id")
                .unwrap()
                .verified_by(word),
        ),
    ];
    for channel in verified {
        assert_eq!(channel.verify(&head(&[("x-word", "please")]), b""), Ok(()));
        for wrong in [&[("x-word", "now")][..], &[]] {
            let refusal = channel.verify(&head(wrong), b"").unwrap_err();
            assert_eq!(refusal.reason(), Reason::Unverified);
        }
    }
    let unverified: [Box<dyn Channel>; 2] = [
        Box::new(HeaderId::new("shop", "x-id").unverified()),
        Box::new(JsonPath::new("json", "$.id").unwrap().unverified()),
    ];
    for channel in unverified {
        assert_eq!(channel.verify(&head(&[]), b""), Ok(()));
    }
}
