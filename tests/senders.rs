//! What the senders with forms, XML, paths and headers do beyond their fixtures: conversations and
//! times, look-alikes, unusual paths, and answers that a repeat must get.
#![cfg(feature = "xml")]
#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use tower::{Layer, Service, service_fn};
use tower_idempotency::channel::{
    Channel, Concern, Matrix, OriginalPath, Reply, Scope, Slack, Twilio, WeChat,
};
use tower_idempotency::store::MemoryStore;
use tower_idempotency::{Delivery, IdempotencyLayer};

const FORM: &str = "application/x-www-form-urlencoded";

fn head(method: Method, path: &str, kind: &str) -> Parts {
    let request = Request::builder().method(method).uri(path);
    let request = request.header("content-type", kind).body(()).unwrap();
    request.into_parts().0
}

fn read(channel: &impl Channel, kind: &str, body: &str) -> Vec<Delivery> {
    let head = head(Method::POST, "/", kind);
    channel.deliveries(&head, body.as_bytes()).unwrap()
}

fn conversation(channel: &impl Channel, kind: &str, body: &str) -> Option<String> {
    let found = read(channel, kind, body);
    let conversation = found.first().unwrap().in_conversation();
    conversation.map(|it| it.id().to_owned())
}

#[test]
fn twilio_tells_one_conversation_in_both_directions() {
    let of = |body: &str| conversation(&Twilio::unverified(), FORM, body).unwrap();
    let inbound = of("AccountSid=A&MessageSid=S1&From=%2B1&To=%2B2");
    let status = of("AccountSid=A&MessageSid=S2&MessageStatus=sent&From=%2B2&To=%2B1");
    assert_eq!(inbound, status);
    let other = of("AccountSid=A&MessageSid=S3&From=%2B1&To=%2B3");
    assert_ne!(inbound, other);
    assert_eq!(
        of("AccountSid=A&MessageSid=S4&EventType=onMessageAdded&ConversationSid=C"),
        "C"
    );
}

/// Field case B93.
#[test]
fn twilio_tells_statuses_and_updates_from_messages() {
    let ids = |body: &str| -> Vec<String> {
        let found = read(&Twilio::unverified(), FORM, &format!("AccountSid=A&{body}"));
        found.iter().map(|it| it.key().id().to_owned()).collect()
    };
    // A status callback of WhatsApp carries an `EventType` too.
    assert_eq!(
        ids("MessageSid=S&MessageStatus=read&EventType=READ"),
        ["status|S|read"]
    );
    let receipt = "MessageSid=S&EventType=onDeliveryUpdated&DateUpdated=2026&DeliveryReceiptSid=D";
    assert_eq!(ids(receipt), ["onDeliveryUpdated|S|2026|D"]);
    for no_key in [
        "EventType=onMessageRemoved&MessageSid=S",
        "CallSid=C",
        "MessageSid=",
    ] {
        assert_eq!(ids(no_key), [""; 0], "{no_key}");
    }
}

#[test]
fn slack_takes_a_certificate_check_only_without_a_command() {
    let ids = |body: &str| read(&Slack::unverified(), FORM, body).len();
    assert_eq!(ids("ssl_check=1&token=t"), 0);
    assert_eq!(ids("ssl_check=1&command=%2Fpay&trigger_id=1.2"), 1);
    assert_eq!(
        ids("ssl_check=1&payload=%7B%22trigger_id%22%3A%22t%22%7D"),
        1
    );
}

#[test]
fn slack_reads_a_trigger_of_commands_only() {
    let found = read(&Slack::unverified(), FORM, "trigger_id=1.2&token=t");
    assert_eq!(found, []);
}

#[test]
fn slack_names_the_channel_as_the_conversation() {
    let slack = Slack::unverified();
    let event = r#"{"event_id":"E","event_time":7,"event":{"channel":"C"}}"#;
    assert_eq!(
        conversation(&slack, "application/json", event).unwrap(),
        "C"
    );
    let sent_at = read(&slack, "application/json", event)[0].when_sent();
    assert_eq!(
        sent_at,
        Some(SystemTime::UNIX_EPOCH + Duration::from_secs(7))
    );
    let reaction = r#"{"event_id":"E","event":{"item":{"channel":"C"}}}"#;
    assert_eq!(
        conversation(&slack, "application/json", reaction).unwrap(),
        "C"
    );
    let command = "command=%2Fa&trigger_id=1&channel_id=C";
    assert_eq!(conversation(&slack, FORM, command).unwrap(), "C");
    let button =
        "payload=%7B%22trigger_id%22%3A%221%22%2C%22channel%22%3A%7B%22id%22%3A%22C%22%7D%7D";
    assert_eq!(conversation(&slack, FORM, button).unwrap(), "C");
}

#[test]
fn slack_never_keeps_the_answer_to_a_suggestion() {
    let asked = "payload=%7B%22type%22%3A%22block_suggestion%22%2C%22trigger_id%22%3A%221%22%7D";
    assert_eq!(read(&Slack::unverified(), FORM, asked), []);
}

#[test]
fn slack_wants_a_reply_to_a_form_and_none_to_an_event() {
    let slack = Slack::unverified();
    let reply = |kind| slack.terms(&head(Method::POST, "/", kind)).reply;
    assert_eq!(reply(FORM), Reply::Record);
    assert_eq!(reply("application/json"), Reply::Ack);
}

#[test]
fn wechat_tells_the_user_and_the_time() {
    let text = "<xml><ToUserName>gh</ToUserName><FromUserName>u</FromUserName>\
                <CreateTime>7</CreateTime><MsgType>text</MsgType><MsgId>1</MsgId></xml>";
    let wechat = WeChat::unverified();
    assert_eq!(conversation(&wechat, "text/xml", text).unwrap(), "u");
    let sent_at = read(&wechat, "text/xml", text)[0].when_sent();
    assert_eq!(
        sent_at,
        Some(SystemTime::UNIX_EPOCH + Duration::from_secs(7))
    );
}

#[test]
fn wechat_takes_no_event_for_a_message() {
    let event = "<xml><ToUserName>gh</ToUserName><FromUserName>u</FromUserName><MsgId>1</MsgId>\
                 <CreateTime>7</CreateTime><MsgType>event</MsgType><Event>CLICK</Event></xml>";
    let found = read(&WeChat::unverified(), "text/xml", event);
    assert_eq!(found[0].key().id(), "event|u|7|CLICK");
    let timeless = event.replace("<CreateTime>7</CreateTime>", "");
    assert_eq!(read(&WeChat::unverified(), "text/xml", &timeless), []);
}

#[test]
fn matrix_finds_the_transaction_under_any_prefix() {
    let matrix = Matrix::unverified(Scope::fixed("example.org"));
    let id = |head: &Parts| -> Option<String> {
        let found = matrix.deliveries(head, b"{}").unwrap();
        found.first().map(|it| it.key().id().to_owned())
    };
    for (method, path, expected) in [
        (Method::PUT, "/_matrix/app/v1/transactions/35", Some("35")),
        (Method::PUT, "/transactions/35", Some("35")),
        (
            Method::PUT,
            "/bridge/_matrix/app/v1/transactions/035?access_token=x",
            Some("035"),
        ),
        (
            Method::PUT,
            "/_matrix/app/v1/transactions/a%20b",
            Some("a b"),
        ),
        (Method::PUT, "/_matrix/app/v1/transactions/", None),
        (Method::PUT, "/_matrix/app/v1/transactions", None),
        (Method::POST, "/_matrix/app/v1/transactions/35", None),
        (Method::PUT, "/_matrix/app/v1/rooms/35", None),
    ] {
        let head = head(method.clone(), path, "application/json");
        assert_eq!(id(&head).as_deref(), expected, "{method} {path}");
        let concern = if expected.is_some() {
            Concern::Read
        } else {
            Concern::Pass
        };
        assert_eq!(matrix.concern(&head), Ok(concern), "{method} {path}");
    }
    let mut nested = head(Method::PUT, "/35", "application/json");
    let original = "/_matrix/app/v1/transactions/36".parse().unwrap();
    nested.extensions.insert(OriginalPath::new(original));
    assert_eq!(id(&nested).as_deref(), Some("36"));
}

#[test]
fn a_homeservers_ping_is_verified_and_has_no_key() {
    let matrix = Matrix::unverified(Scope::fixed("example.org"));
    let ping = head(Method::POST, "/_matrix/app/v1/ping", "application/json");
    assert_eq!(matrix.concern(&ping), Ok(Concern::Read));
    assert_eq!(
        matrix.deliveries(&ping, b"{\"transaction_id\":\"1\"}"),
        Ok(Vec::new())
    );
}

/// What the `n`th run answers, sent to a layer over `channel` twice.
async fn answers_to(
    channel: impl Channel,
    kind: &str,
    body: &'static str,
) -> [(StatusCode, String, Bytes); 2] {
    let runs = Arc::new(AtomicU64::new(0));
    let layer = IdempotencyLayer::new(MemoryStore::new(), channel);
    let mut answers = Vec::new();
    for _ in 0..2 {
        let runs = Arc::clone(&runs);
        let handler = service_fn(move |_| {
            let run = runs.fetch_add(1, Ordering::SeqCst);
            let response = Response::builder().header("content-type", "text/xml");
            let response = response.body(Full::from(format!("<Run>{run}</Run>")));
            async { Ok::<_, Infallible>(response.unwrap()) }
        });
        let request = Request::post("/").header("content-type", kind);
        let request = request.body(Full::<Bytes>::from(body)).unwrap();
        let response = layer.layer(handler).call(request).await.unwrap();
        let kind = response.headers()["content-type"]
            .to_str()
            .unwrap()
            .to_owned();
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        answers.push((status, kind, body));
    }
    answers.try_into().unwrap()
}

/// Field case B129.
#[tokio::test]
async fn a_repeat_gets_the_reply_of_the_first_run_with_its_content_type() {
    let sms = "AccountSid=A&MessageSid=S1&From=%2B1&To=%2B2";
    let [first, again] = answers_to(Twilio::unverified(), FORM, sms).await;
    assert_eq!(first, again);
    assert_eq!(
        (again.1.as_str(), &again.2[..]),
        ("text/xml", &b"<Run>0</Run>"[..])
    );
    let text = "<xml><ToUserName>gh</ToUserName><MsgType>text</MsgType><MsgId>1</MsgId></xml>";
    let [first, again] = answers_to(WeChat::unverified(), "text/xml", text).await;
    assert_eq!(first, again);
    let command = "command=%2Fa&trigger_id=1";
    let [first, again] = answers_to(Slack::unverified(), FORM, command).await;
    assert_eq!(first, again);
}

#[tokio::test]
async fn a_handshake_reaches_the_handler_every_time() {
    let challenge = r#"{"type":"url_verification","challenge":"c","token":"t"}"#;
    let [first, again] = answers_to(Slack::unverified(), "application/json", challenge).await;
    assert_ne!(first, again);
    let check = "ssl_check=1&token=t";
    let [first, again] = answers_to(Slack::unverified(), FORM, check).await;
    assert_ne!(first, again);
}
