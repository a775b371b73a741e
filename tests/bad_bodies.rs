//! Broken, huge and hostile forms and documents get a clear answer: no channel panics, hangs or
//! reads two things out of one body.
#![cfg(feature = "xml")]
#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::iter::repeat_n;

use http::Request;
use http::request::Parts;
use proptest::prelude::*;
use tower_idempotency::Delivery;
use tower_idempotency::channel::{
    Channel, FormField, GitHub, HeaderId, Matrix, Reason, Refusal, Scope, Slack, StandardWebhooks,
    Twilio, WeChat, XmlPath,
};

/// The layer's limit for requests.
const MIB: usize = 1 << 20;

fn head() -> Parts {
    let request = Request::post("/").header("content-type", "application/x-www-form-urlencoded");
    request.body(()).unwrap().into_parts().0
}

fn read(channel: &impl Channel, body: &str) -> Result<Vec<Delivery>, Reason> {
    let answer = channel.deliveries(&head(), body.as_bytes());
    answer.map_err(|refusal| refusal.reason())
}

fn ids(channel: &impl Channel, body: &str) -> Vec<String> {
    let deliveries = read(channel, body).unwrap();
    let ids = deliveries.iter().map(|it| it.key().id().to_owned());
    ids.collect()
}

const SMS: &str = "AccountSid=AC1&MessageSid=SM1";

#[test]
fn a_field_that_says_two_things_is_refused() {
    let two = format!("{SMS}&MessageSid=SM2");
    assert_eq!(
        read(&Twilio::unverified(), &two),
        Err(Reason::MalformedBody)
    );
    let same = format!("{SMS}&MessageSid=SM1");
    assert_eq!(ids(&Twilio::unverified(), &same), ["SM1"]);
}

#[test]
fn an_id_that_is_no_text_or_too_long_is_refused() {
    let channel = FormField::new("sms", "id").unverified();
    assert_eq!(read(&channel, "id=%FF"), Err(Reason::MalformedBody));
    assert_eq!(read(&channel, "id=a%00b"), Err(Reason::MalformedKey));
    let long = format!("id={}", "a".repeat(1025));
    assert_eq!(read(&channel, &long), Err(Reason::MalformedKey));
    assert_eq!(ids(&channel, &format!("id={}", "a".repeat(1024))).len(), 1);
}

#[test]
fn a_blank_field_is_no_id() {
    for body in ["", "id", "id=", "id=+%20", "&&&", "=", "other=1", "%"] {
        assert_eq!(
            ids(&FormField::new("sms", "id").unverified(), body),
            [""; 0],
            "{body}"
        );
    }
}

#[test]
fn without_its_account_a_message_is_refused() {
    let answer = read(&Twilio::unverified(), "MessageSid=SM1");
    assert_eq!(answer, Err(Reason::MissingScope));
    let answer = read(&WeChat::unverified(), "<xml><MsgId>1</MsgId></xml>");
    assert_eq!(answer, Err(Reason::MissingScope));
}

#[test]
fn a_form_of_a_mebibyte_is_read_to_its_end() {
    let small: String = repeat_n("a&", MIB / 2).collect();
    let named: String = repeat_n("MessageSid=SM1&", MIB / 15).collect();
    let escaped = format!("Body={}", "%41".repeat(MIB / 3));
    for padding in [small, named, escaped] {
        let body = format!("{padding}&{SMS}");
        assert_eq!(ids(&Twilio::unverified(), &body), ["SM1"]);
    }
}

fn wechat(inside: &str) -> String {
    format!("<xml><ToUserName>gh</ToUserName><MsgId>1</MsgId>{inside}</xml>")
}

#[test]
fn an_entity_bomb_is_refused_before_it_grows() {
    let entity = |level: u32| {
        let below = format!("&e{};", level - 1).repeat(10);
        format!("<!ENTITY e{level} \"{below}\">")
    };
    let entities = (1..30).map(entity).collect::<Vec<_>>().concat();
    let entities = format!("<!ENTITY e0 \"lol\">{entities}");
    let bomb = format!(
        "<!DOCTYPE xml [{entities}]>{}",
        wechat("<Content>&e29;</Content>")
    );
    assert_eq!(
        read(&WeChat::unverified(), &bomb),
        Err(Reason::MalformedBody)
    );
    let loads = "<!DOCTYPE xml [<!ENTITY x SYSTEM \"file:///etc/passwd\">]>";
    let loads = format!("{loads}{}", wechat("&x;"));
    assert_eq!(
        read(&WeChat::unverified(), &loads),
        Err(Reason::MalformedBody)
    );
}

#[test]
fn a_document_of_a_mebibyte_is_read_to_its_end() {
    let deep = "<a>".repeat(10_000) + &"</a>".repeat(10_000);
    let deepest = "<a>".repeat(MIB / 7) + &"</a>".repeat(MIB / 7);
    let wide = "<a/>".repeat(MIB / 4);
    let attributes = (0..MIB / 12).map(|at| format!(" a{at}=\"1\""));
    let many = format!("<a{}/>", attributes.collect::<Vec<_>>().concat());
    let long_name = format!("<{0}></{0}>", "a".repeat(MIB / 2));
    let text = format!("<Content>{}</Content>", "&amp;".repeat(MIB / 5));
    for inside in [deep, deepest, wide, many, long_name, text] {
        assert_eq!(ids(&WeChat::unverified(), &wechat(&inside)), ["1"]);
    }
}

#[test]
fn a_document_that_is_cut_anywhere_has_no_id() {
    let body = wechat("<Content><![CDATA[hi]]></Content>");
    for end in 0..body.len() {
        let (cut, _) = body.split_at(end);
        assert_eq!(ids(&WeChat::unverified(), cut), [""; 0], "{cut}");
    }
}

#[test]
fn an_element_that_is_there_twice_is_refused() {
    let answer = read(&WeChat::unverified(), &wechat("<MsgId>2</MsgId>"));
    assert_eq!(answer, Err(Reason::MalformedBody));
}

#[test]
fn where_an_id_is_required_a_broken_body_is_refused() {
    let xml = XmlPath::new("orders", "/order/id").unwrap();
    let xml = xml.required().unverified();
    assert_eq!(read(&xml, "<order>"), Err(Reason::MalformedBody));
    assert_eq!(read(&xml, "<order/>"), Err(Reason::MissingKey));
    let form = FormField::new("sms", "id").required().unverified();
    assert_eq!(read(&form, "{}"), Err(Reason::MissingKey));
}

#[test]
fn a_payload_that_is_no_json_has_no_id() {
    let deep = format!("payload={}", "[".repeat(10_000));
    for body in [
        "payload=",
        "payload={",
        "payload=x",
        "payload=[]",
        deep.as_str(),
    ] {
        assert_eq!(ids(&Slack::unverified(), body), [""; 0], "{body}");
    }
}

fn all() -> Vec<Box<dyn Channel>> {
    let shop = || Scope::fixed("shop");
    vec![
        Box::new(Twilio::unverified()),
        Box::new(Slack::unverified()),
        Box::new(WeChat::unverified()),
        Box::new(GitHub::unverified()),
        Box::new(Matrix::unverified(shop())),
        Box::new(StandardWebhooks::unverified(shop())),
        Box::new(
            FormField::new("form", "id")
                .and("to")
                .scope(Scope::form_field("a"))
                .unverified(),
        ),
        Box::new(
            FormField::json("form", "payload", "$.id")
                .unwrap()
                .unverified(),
        ),
        Box::new(
            XmlPath::new("xml", "/xml/id")
                .unwrap()
                .scope(Scope::xml("/xml/a").unwrap())
                .unverified(),
        ),
        Box::new(
            HeaderId::new("header", "webhook-id")
                .required()
                .unverified(),
        ),
    ]
}

fn request() -> impl Strategy<Value = (Parts, Vec<u8>)> {
    let kind = prop_oneof![
        Just("application/json"),
        Just("application/x-www-form-urlencoded; charset=utf-8"),
        Just("text/xml"),
        Just("?"),
    ];
    let path = "(/_matrix/app/v1)?/transactions/[0-9a-z%]{0,4}|/[ -~&&[^ #?\"<>`{}|^\\\\]]{0,8}";
    let header = "[ -~]{0,20}";
    let word = prop_oneof![
        "(MessageSid|AccountSid|EventType|trigger_id|command|payload|id|a|to)=[a-z0-9%+]{0,6}&",
        "<(xml|MsgId|MsgType|Event|id|a)>",
        "</(xml|MsgId|MsgType|Event|id|a)>",
        "[<>&;!/\\[\\]{}\":,a-z0-9]{0,8}",
        "payload=%7B%22(id|type|trigger_id)%22%3A[a-z0-9%]{0,8}%7D&",
        "<!\\[CDATA\\[|\\]\\]>|<!DOCTYPE|<!--|-->|<\\?xml|&#x[0-9a-f]{1,6};",
    ];
    let words = prop::collection::vec(word, 0..24).prop_map(|words| words.concat().into_bytes());
    let body = prop_oneof![3 => words, 1 => prop::collection::vec(any::<u8>(), 0..64)];
    (prop::bool::ANY, path, kind, header, body).prop_map(|(put, path, kind, header, body)| {
        let method = if put { "PUT" } else { "POST" };
        let mut request = Request::builder().method(method).uri("/");
        if let Ok(uri) = path.parse::<http::Uri>() {
            request = request.uri(uri);
        }
        let request = request
            .header("content-type", kind)
            .header("webhook-id", header.as_str())
            .header("x-github-delivery", header.as_str());
        (request.body(()).unwrap().into_parts().0, body)
    })
}

proptest! {
    #[test]
    fn no_request_makes_a_channel_panic_or_change_its_mind((head, body) in request()) {
        for channel in all() {
            let answer: Result<_, Refusal> = channel.deliveries(&head, &body);
            prop_assert_eq!(channel.concern(&head), channel.concern(&head));
            prop_assert_eq!(&answer, &channel.deliveries(&head, &body));
            if let Ok(deliveries) = answer {
                for delivery in deliveries {
                    prop_assert!(!delivery.key().id().trim().is_empty());
                    let name = channel.terms(&head).channel.to_string();
                    prop_assert_eq!(delivery.key().channel(), name);
                }
            }
        }
    }
}
