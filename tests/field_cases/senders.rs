//! Which deliveries of a sender are the same message.

use tower_idempotency::IdempotencyLayer;
use tower_idempotency::channel::{
    Channel, GitHub, JsonPath, Line, Messenger, Scope, Slack, Teams, Telegram, Twilio, Viber,
    WhatsApp,
};
use tower_idempotency::store::MemoryStore;

use crate::app::{App, FORM, JSON, post, text};

/// Sends bodies one after the other; which of them ran.
async fn runs<C: Channel>(channel: C, headers: &[(&str, &str)], bodies: &[String]) -> Vec<bool> {
    let layer = IdempotencyLayer::new(MemoryStore::new(), channel);
    let app = App::quick();
    let mut ran = Vec::new();
    for body in bodies {
        let before = app.runs();
        let seen = app.send(&layer, post("/", headers, body.clone())).await;
        assert_eq!(seen.status, 200, "{body}");
        ran.push(app.runs() > before);
    }
    ran
}

fn texts<const N: usize>(bodies: [&str; N]) -> Vec<String> {
    bodies.map(str::to_owned).into()
}

/// Each state of a message is told once, and is not the message itself.
///
/// Field case B93.
#[tokio::test]
async fn each_new_state_of_a_message_runs_once() {
    let sms = [
        "Body=hi",
        "MessageStatus=sent",
        "MessageStatus=delivered",
        "MessageStatus=delivered",
        "MessageStatus=failed",
        "Body=hi",
    ];
    let bodies = sms.map(|what| format!("AccountSid=AC1&MessageSid=SM1&{what}"));
    let ran = runs(Twilio::unverified(), FORM, &bodies).await;
    assert_eq!(ran, [true, true, true, false, true, false]);

    let states = ["", "sent", "delivered", "read", "delivered", ""].map(|state| {
        let what = if state.is_empty() {
            r#""messages":[{"id":"wamid.A"}]"#.to_owned()
        } else {
            format!(r#""statuses":[{{"id":"wamid.A","status":"{state}"}}]"#)
        };
        format!(
            r#"{{"entry":[{{"changes":[{{"value":{{"metadata":{{"phone_number_id":"1"}},{what}}}}}]}}]}}"#
        )
    });
    let ran = runs(WhatsApp::unverified(), JSON, &states).await;
    assert_eq!(ran, [true, true, true, true, false, false]);
}

/// A reaction that is added, taken back and added again is three events, an edit is one of its own;
/// each comes again as itself.
///
/// Field case B94.
#[tokio::test]
async fn edits_and_reactions_that_come_back_are_events_of_their_own() {
    let reaction = |id: &str, kind: &str| {
        format!(
            r#"{{"event_id":"{id}","event":{{"type":"reaction_{kind}","item":{{"channel":"C","ts":"1.2"}}}}}}"#
        )
    };
    let bodies = [
        reaction("Ev1", "added"),
        reaction("Ev2", "removed"),
        reaction("Ev3", "added"),
        reaction("Ev1", "added"),
    ];
    let ran = runs(Slack::unverified(), JSON, &bodies).await;
    assert_eq!(ran, [true, true, true, false]);
    let update = |id: u32, kind: &str| {
        format!(r#"{{"update_id":{id},"{kind}":{{"message_id":3,"chat":{{"id":7}}}}}}"#)
    };
    let bodies = [
        update(1, "message"),
        update(2, "edited_message"),
        update(2, "edited_message"),
        update(3, "edited_message"),
    ];
    let bot = Telegram::unverified(Scope::fixed("bot"));
    assert_eq!(runs(bot, JSON, &bodies).await, [true, true, false, true]);
}

/// One message under several delivery ids: the preset knows deliveries, so each runs; a channel by
/// what names the message, of several fields, runs it once.
///
/// Field case B95.
#[tokio::test]
async fn a_message_under_two_delivery_ids_is_one_by_its_own_name() {
    let event = |id: &str, ts: &str| {
        format!(
            r#"{{"event_id":"{id}","team_id":"T","event":{{"type":"message","channel":"C","ts":"{ts}"}}}}"#
        )
    };
    let bodies = [
        event("Ev1", "1.1"),
        event("Ev2", "1.1"),
        event("Ev3", "1.2"),
    ];
    let ran = runs(Slack::unverified(), JSON, &bodies).await;
    assert_eq!(ran, [true, true, true]);
    let by_message = JsonPath::new("slack", "$").unwrap();
    let by_message = by_message.id([".team_id", ".event.channel", ".event.ts"]);
    let ran = runs(by_message.unwrap().unverified(), JSON, &bodies).await;
    assert_eq!(ran, [true, false, true]);
    let activity = |id: &str| {
        format!(
            r#"{{"type":"message","id":"{id}","text":"yes","conversation":{{"id":"c"}},"recipient":{{"id":"b"}}}}"#
        )
    };
    let bodies = ["A", "A", "B", "B"].map(activity);
    let ran = runs(Teams::unverified(), JSON, &bodies).await;
    assert_eq!(ran, [true, false, true, false]);
}

/// The first delivery that arrives is the first, whatever it says of itself: where the sender's own
/// first one was lost, the one that calls itself a retry runs.
///
/// Field case B15.
#[tokio::test]
async fn a_delivery_that_calls_itself_a_retry_runs_if_it_is_the_first() {
    let layer = IdempotencyLayer::new(MemoryStore::new(), Slack::unverified());
    let app = App::quick();
    let event = r#"{"type":"event_callback","event_id":"Ev01"}"#;
    for (number, is_replayed) in [("1", false), ("2", true)] {
        let headers = [
            ("content-type", "application/json"),
            ("x-slack-retry-num", number),
            ("x-slack-retry-reason", "http_timeout"),
        ];
        let seen = app.send(&layer, post("/", &headers, event)).await;
        assert_eq!(
            (seen.text(), seen.is_replayed()),
            ("run 1".into(), is_replayed)
        );
    }
}

/// Numbers of any size are told apart digit by digit.
///
/// Field case B101.
#[tokio::test]
async fn numbers_are_told_apart_by_their_last_digit() {
    let token =
        |n: &str| format!(r#"{{"event":"message","message_token":{n},"sender":{{"id":"u"}}}}"#);
    let bodies = [
        "4912661846655238145",
        "4912661846655238146",
        "18446744073709551615",
        "18446744073709551616",
        "4912661846655238145",
    ]
    .map(token);
    let viber = Viber::unverified(Scope::fixed("shop"));
    let ran = runs(viber, JSON, &bodies).await;
    assert_eq!(ran, [true, true, true, true, false]);
}

/// A form whose field holds JSON, and a plain form, whatever the content type says behind its name;
/// the handler gets the bytes as they were.
///
/// Field case B99.
#[tokio::test]
async fn json_in_a_form_field_and_plain_forms_are_read() {
    let layer = IdempotencyLayer::new(MemoryStore::new(), Slack::unverified());
    let app = App::new(|asked| async move { text(asked.text()) });
    let kind = [(
        "content-type",
        "application/x-www-form-urlencoded; charset=utf-8",
    )];
    for body in [
        "payload=%7B%22trigger_id%22%3A%22t1%22%7D",
        "command=%2Fpay&trigger_id=t2&text=a+b%20c&text=again",
    ] {
        let first = app.send(&layer, post("/", &kind, body)).await;
        assert_eq!(first.text(), body);
        assert!(app.send(&layer, post("/", &kind, body)).await.is_replayed());
    }
    assert_eq!(app.runs(), 2);
}

/// Handshakes and what holds no message reach the handler every time, and leave nothing.
///
/// Field case B103.
#[tokio::test]
async fn handshakes_and_empty_deliveries_reach_the_handler_every_time() {
    let challenge = |n| format!(r#"{{"type":"url_verification","challenge":"{n}"}}"#);
    let bodies = ["x", "y", "x"].map(challenge);
    let ran = runs(Slack::unverified(), JSON, &bodies).await;
    assert_eq!(ran, [true; 3]);
    let dummies = r#"{"destination":"d","events":[{"replyToken":"00000000000000000000000000000000"},
        {"message":{"id":"100001"}},{"message":{"id":"100002"}}]}"#;
    let bodies = texts([r#"{"events":[]}"#, r#"{"events":[]}"#, dummies, dummies]);
    assert_eq!(runs(Line::unverified(), JSON, &bodies).await, [true; 4]);
    let layer = IdempotencyLayer::new(MemoryStore::new(), WhatsApp::unverified());
    let app = App::quick();
    for _ in 0..2 {
        let mut asks = post("/?hub.mode=subscribe&hub.challenge=1", &[], "");
        *asks.method_mut() = http::Method::GET;
        assert!(!app.send(&layer, asks).await.is_replayed());
    }
    assert_eq!((app.runs(), layer.counts().runs), (2, 0));
}

/// Events that carry no id of their own, beside some that do: those with one run once, those
/// without pass each time.
///
/// Field case B104.
#[tokio::test]
async fn events_without_an_id_pass_and_those_beside_them_run_once() {
    let body = |event: &str| format!(r#"{{"entry":[{{"id":"p","messaging":[{event}]}}]}}"#);
    let read = r#"{"sender":{"id":"u"},"read":{"watermark":1}}"#;
    let delivery = r#"{"sender":{"id":"u"},"delivery":{"mids":["m1"],"watermark":1}}"#;
    let echo =
        r#"{"sender":{"id":"p"},"recipient":{"id":"u"},"message":{"mid":"m1","is_echo":true}}"#;
    let message = r#"{"sender":{"id":"u"},"recipient":{"id":"p"},"message":{"mid":"m1"}}"#;
    let bodies = [
        body(read),
        body(read),
        body(delivery),
        body(delivery),
        body(message),
        body(echo),
        body(&format!("{read},{message},{echo}")),
    ];
    let ran = runs(Messenger::unverified(), JSON, &bodies).await;
    assert_eq!(ran, [true, true, true, true, true, true, false]);
}

/// Where the id stands in a header that no signature covers, who holds a signed request can run it
/// again under another id. By an id within what was signed it is one message.
///
/// Field case B111.
#[tokio::test]
async fn an_id_within_the_signed_body_cannot_be_exchanged() {
    let deliver = |id: &'static str| {
        let request = [
            ("content-type", "application/json"),
            ("x-github-delivery", id),
        ];
        post("/", &request, r#"{"issue":{"id":7},"action":"opened"}"#)
    };
    let by_body = JsonPath::new("issues", "$").unwrap();
    let by_body = by_body.id([".issue.id", ".action"]).unwrap().unverified();
    let github = IdempotencyLayer::new(MemoryStore::new(), GitHub::unverified());
    let issues = IdempotencyLayer::new(MemoryStore::new(), by_body);
    let (by_header, by_id) = (App::quick(), App::quick());
    for id in ["d1", "d2", "d1"] {
        by_header.send(&github, deliver(id)).await;
        by_id.send(&issues, deliver(id)).await;
    }
    assert_eq!((by_header.runs(), by_id.runs()), (2, 1));
}
