//! What the senders that post JSON do beyond their fixtures: conversations and times, look-alikes,
//! bodies that say too little.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::time::{Duration, UNIX_EPOCH};

use http::Request;
use http::request::Parts;
use serde_json::{Value, json};
use tower_idempotency::Delivery;
use tower_idempotency::channel::{
    Bird, Channel, Chatwoot, CloudEvents, DiscordEvents, DiscordInteractions, GoogleChat, Infobip,
    Instagram, Intercom, Line, Messenger, Reason, Scope, Sunshine, Teams, Telegram, Viber, Vonage,
    WhatsApp,
};

fn head() -> Parts {
    let request = Request::post("/").header("content-type", "application/json");
    request.body(()).unwrap().into_parts().0
}

fn read(channel: &dyn Channel, body: &Value) -> Result<Vec<Delivery>, Reason> {
    let all = channel.deliveries(&head(), body.to_string().as_bytes());
    all.map_err(|refusal| refusal.reason())
}

fn ids(channel: &dyn Channel, body: &Value) -> Vec<String> {
    let all = read(channel, body).unwrap();
    all.iter().map(|it| it.key().id().to_owned()).collect()
}

/// The conversation and the sender's time, in milliseconds, of the only delivery.
fn beside(channel: &dyn Channel, body: &Value) -> (Option<String>, Option<u128>) {
    let all = read(channel, body).unwrap();
    assert_eq!(all.len(), 1, "{body}");
    let delivery = all.first().unwrap();
    let conversation = delivery.in_conversation().map(|it| it.id().to_owned());
    let sent = delivery
        .when_sent()
        .map(|at| at.duration_since(UNIX_EPOCH).unwrap());
    (conversation, sent.as_ref().map(Duration::as_millis))
}

fn told() -> Scope {
    Scope::fixed("told")
}

fn whatsapp(value: Value) -> Value {
    let mut value = value;
    let number = json!({"phone_number_id": "106"});
    value
        .as_object_mut()
        .unwrap()
        .insert("metadata".into(), number);
    json!({"entry": [{"changes": [{"value": value}]}]})
}

#[test]
fn whatsapp_converses_with_the_group_or_the_other_party() {
    let of = |kind: &str, event: Value| {
        let body = whatsapp(json!({kind: [event]}));
        beside(&WhatsApp::unverified(), &body).0.unwrap()
    };
    assert_eq!(of("messages", json!({"id": "m", "from": "1"})), "1");
    assert_eq!(
        of("messages", json!({"id": "m", "from_user_id": "US.1"})),
        "US.1"
    );
    assert_eq!(
        of("messages", json!({"id": "m", "from": "1", "group_id": "g"})),
        "g"
    );
    assert_eq!(
        of(
            "statuses",
            json!({"id": "m", "status": "read", "recipient_id": "1"})
        ),
        "1"
    );
    assert_eq!(
        of("message_echoes", json!({"id": "m", "from": "2", "to": "1"})),
        "1"
    );
    let call = |direction| json!({"id": "c", "event": "connect", "from": "1", "to": "2", "direction": direction});
    assert_eq!(of("calls", call("USER_INITIATED")), "1");
    assert_eq!(of("calls", call("BUSINESS_INITIATED")), "2");
}

#[test]
fn whatsapp_tells_participants_without_a_phone_number_apart() {
    let read_by = |user: &str| json!({"id": "m", "status": "read", "recipient_id": "g", "recipient_participant_user_id": user});
    let body = whatsapp(json!({"statuses": [read_by("US.1"), read_by("US.2")]}));
    assert_eq!(ids(&WhatsApp::unverified(), &body).len(), 2);
}

#[test]
fn whatsapp_lists_messages_in_the_order_of_the_body() {
    let body = br#"{"entry":[{"changes":[{"value":{"statuses":[{"id":"a","status":"sent"}],
        "messages":[{"id":"b"}],"metadata":{"phone_number_id":"1"}}}]}]}"#;
    let all = WhatsApp::unverified().deliveries(&head(), body).unwrap();
    let ids: Vec<_> = all.iter().map(|it| it.key().id()).collect();
    assert_eq!(ids, ["status|a|sent", "b"]);
}

#[test]
fn a_scope_that_the_body_should_name_and_does_not_is_refused() {
    let channels: [(&dyn Channel, Value); 6] = [
        (
            &WhatsApp::unverified(),
            json!({"entry": [{"changes": [{"value": {"messages": [{"id": "m"}]}}]}]}),
        ),
        (
            &Messenger::unverified(),
            json!({"entry": [{"messaging": [{"message": {"mid": "m"}}]}]}),
        ),
        (
            &Line::unverified(),
            json!({"events": [{"webhookEventId": "e"}]}),
        ),
        (&Sunshine::unverified(), json!({"events": [{"id": "e"}]})),
        (&Intercom::unverified(), json!({"id": "n"})),
        (
            &Bird::unverified(),
            json!({"type": "message.created", "message": {"id": "m"}}),
        ),
    ];
    for (channel, body) in channels {
        assert_eq!(read(channel, &body), Err(Reason::MissingScope), "{body}");
    }
}

#[test]
fn a_member_that_occurs_twice_is_refused() {
    let twice = br#"{"update_id":1,"update_id":2}"#;
    let refusal = Telegram::unverified(told())
        .deliveries(&head(), twice)
        .unwrap_err();
    assert_eq!(refusal.reason(), Reason::MalformedBody);
    let twice =
        br#"{"entry":[{"id":"p","messaging":[{"message":{"mid":"a"},"message":{"mid":"b"}}]}]}"#;
    let refusal = Messenger::unverified()
        .deliveries(&head(), twice)
        .unwrap_err();
    assert_eq!(refusal.reason(), Reason::MalformedBody);
    assert!(refusal.detail().contains("message"), "{refusal}");
}

#[test]
fn telegram_converses_in_the_chat_or_with_the_person() {
    let of = |kind: &str, event: Value| {
        beside(
            &Telegram::unverified(told()),
            &json!({"update_id": 1, kind: event}),
        )
    };
    let chat = json!({"id": 5});
    let one = Some("5".to_owned());
    assert_eq!(
        of(
            "message",
            json!({"chat": chat, "from": {"id": 7}, "date": 2})
        ),
        (one.clone(), Some(2000))
    );
    assert_eq!(
        of(
            "edited_message",
            json!({"chat": chat, "date": 2, "edit_date": 3})
        ),
        (one.clone(), Some(3000))
    );
    assert_eq!(
        of(
            "callback_query",
            json!({"from": {"id": 7}, "message": {"chat": chat}})
        ),
        (one.clone(), None)
    );
    assert_eq!(
        of("inline_query", json!({"from": {"id": 7}})),
        (Some("7".into()), None)
    );
    assert_eq!(
        of("business_message_of_tomorrow", json!({"chat": chat})),
        (one, None)
    );
    assert_eq!(of("poll", json!({"id": "x"})), (None, None));
}

#[test]
fn messenger_converses_with_the_person_in_both_directions() {
    let of = |event: Value| {
        let body = json!({"entry": [{"id": "p", "messaging": [event]}]});
        beside(&Messenger::unverified(), &body)
    };
    let (person, page) = (json!({"id": "u"}), json!({"id": "p"}));
    let inbound =
        json!({"sender": person, "recipient": page, "timestamp": 7, "message": {"mid": "a"}});
    let echo = json!({"sender": page, "recipient": person, "timestamp": 8, "message": {"mid": "b", "is_echo": true}});
    assert_eq!(of(inbound), (Some("u".into()), Some(7)));
    assert_eq!(of(echo), (Some("u".into()), Some(8)));
}

/// Field case B104.
#[test]
fn messenger_knows_what_has_no_id_by_sender_and_time() {
    let of = |list: &str, event: Value| {
        ids(
            &Instagram::unverified(),
            &json!({"entry": [{"id": "p", list: [event]}]}),
        )
    };
    let by = |kind: &str, sender: Value| json!({"sender": sender, "timestamp": 7, kind: {}});
    assert_eq!(
        of("messaging", by("optin", json!({"user_ref": "r"}))),
        ["optin|r|7"]
    );
    assert_eq!(
        of("standby", by("postback", json!({"id": "u"}))),
        ["standby|postback|u|7"]
    );
    assert_eq!(
        of("messaging", json!({"timestamp": 7, "postback": {}})),
        [""; 0]
    );
    assert_eq!(
        of("messaging", by("policy_enforcement", json!({"id": "u"}))),
        [""; 0]
    );
}

#[test]
fn line_converses_in_the_group_the_room_or_with_the_person() {
    let of = |source: Value| {
        let event = json!({"webhookEventId": "e", "timestamp": 9, "source": source});
        beside(
            &Line::unverified(),
            &json!({"destination": "d", "events": [event]}),
        )
    };
    assert_eq!(of(json!({"userId": "u"})), (Some("u".into()), Some(9)));
    assert_eq!(of(json!({"userId": "u", "groupId": "g"})).0.unwrap(), "g");
    assert_eq!(of(json!({"userId": "u", "roomId": "r"})).0.unwrap(), "r");
}

#[test]
fn teams_needs_a_time_to_tell_edits_apart() {
    let activity = |kind: &str, time: Value| json!({"type": kind, "id": "1", "conversation": {"id": "c"}, "recipient": {"id": "b"}, "from": {"id": "u"}, "timestamp": time});
    let teams = Teams::unverified();
    let time = json!("2026-01-02T03:04:05.0000001Z");
    assert_eq!(
        beside(&teams, &activity("message", time)),
        (Some("c".into()), Some(1_767_323_045_000))
    );
    for kind in ["messageUpdate", "messageDelete", "messageReaction"] {
        assert_eq!(ids(&teams, &activity(kind, json!(null))), [""; 0], "{kind}");
    }
}

#[test]
fn a_ping_of_discord_passes_whatever_it_carries() {
    let interactions = DiscordInteractions::unverified();
    assert_eq!(ids(&interactions, &json!({"type": 1, "id": "1"})), [""; 0]);
    assert_eq!(ids(&interactions, &json!({"type": 0, "id": "1"})), ["1"]);
    let event = json!({"type": "X", "timestamp": "2024-10-18T14:42:53.064834", "data": {"id": "7", "lobby_id": "l"}});
    let events = DiscordEvents::unverified();
    let body = |kind: u8| json!({"type": kind, "application_id": "a", "event": event});
    assert_eq!(ids(&events, &body(0)), [""; 0]);
    assert_eq!(
        beside(&events, &body(1)),
        (Some("l".into()), Some(1_729_262_573_064))
    );
}

#[test]
fn viber_passes_its_own_check_and_knows_events_to_come() {
    let viber = Viber::unverified(told());
    assert_eq!(
        ids(&viber, &json!({"event": "webhook", "message_token": 1})),
        [""; 0]
    );
    assert_eq!(
        ids(&viber, &json!({"event": "action", "message_token": 1})),
        ["action|1"]
    );
    assert_eq!(ids(&viber, &json!({"message_token": 1})), [""; 0]);
}

#[test]
fn google_chat_knows_events_of_both_kinds_of_apps() {
    let chat = GoogleChat::unverified(told());
    let command = json!({"chat": {"user": {"name": "users/1"}, "eventTime": "2026-01-02T03:04:05Z",
        "appCommandPayload": {"message": {"name": "spaces/A/messages/B"}, "space": {"name": "spaces/A"}}}});
    assert_eq!(
        ids(&chat, &command),
        ["appCommand|spaces/A/messages/B|users/1|2026-01-02T03:04:05Z"]
    );
    assert_eq!(
        beside(&chat, &command),
        (Some("spaces/A".into()), Some(1_767_323_045_000))
    );
    let added =
        json!({"chat": {"eventTime": "t", "addedToSpacePayload": {"space": {"name": "spaces/A"}}}});
    assert_eq!(ids(&chat, &added), ["addedToSpace|spaces/A|t"]);
    assert_eq!(
        ids(&chat, &json!({"chat": {"messagePayload": {}}})),
        [""; 0]
    );
}

#[test]
fn vonage_and_infobip_converse_with_the_person_in_both_directions() {
    let vonage = Vonage::unverified();
    let inbound = json!({"message_uuid": "a", "from": "1", "to": "2"});
    let status = json!({"message_uuid": "b", "from": "2", "to": "1", "status": "read"});
    let nested = json!({"message_uuid": "c", "from": {"number": "1"}, "to": {"number": "2"}});
    let with = Some("2/1".to_owned());
    for body in [inbound, status, nested] {
        assert_eq!(beside(&vonage, &body).0, with, "{body}");
    }
    let infobip = Infobip::unverified(told());
    let of = |result: Value| beside(&infobip, &json!({"results": [result]})).0.unwrap();
    assert_eq!(of(json!({"messageId": "a", "from": "1", "to": "2"})), "1");
    assert_eq!(
        of(json!({"messageId": "a", "to": "1", "status": {"name": "X"}})),
        "1"
    );
    let seen = json!({"results": [{"messageId": "a", "from": "2", "to": "1", "seenAt": "t"}]});
    assert_eq!(ids(&infobip, &seen), ["seen|a"]);
}

#[test]
fn other_conversations_and_times_are_where_the_sender_puts_them() {
    let bird = json!({"type": "message.created", "conversation": {"id": "c"},
        "message": {"id": "m", "channelId": "x", "updatedDatetime": "2026-01-02T03:04:05Z"}});
    assert_eq!(
        beside(&Bird::unverified(), &bird),
        (Some("c".into()), Some(1_767_323_045_000))
    );
    let sunshine = json!({"app": {"id": "a"}, "events": [{"id": "e", "createdAt": "2026-01-02T03:04:05Z",
        "payload": {"conversation": {"id": "c"}}}]});
    assert_eq!(
        beside(&Sunshine::unverified(), &sunshine),
        (Some("c".into()), Some(1_767_323_045_000))
    );
    let intercom = |kind: &str| json!({"id": "n", "app_id": "a", "created_at": 5, "data": {"item": {"type": kind, "id": "c"}}});
    assert_eq!(
        beside(&Intercom::unverified(), &intercom("conversation")),
        (Some("c".into()), Some(5000))
    );
    assert_eq!(beside(&Intercom::unverified(), &intercom("user")).0, None);
}

#[test]
fn chatwoot_without_a_delivery_header_passes_what_has_no_id() {
    let body = |event: &str| json!({"event": event, "id": 7, "account": {"id": 3}, "conversation": {"id": 42}});
    let chatwoot = Chatwoot::unverified();
    assert_eq!(beside(&chatwoot, &body("message_created")).0.unwrap(), "42");
    assert_eq!(ids(&chatwoot, &body("message_updated")), [""; 0]);
}

#[test]
fn cloud_events_in_headers_are_decoded_and_their_body_is_not_read() {
    let with = |source: &str| {
        let request = Request::post("/")
            .header("ce-id", "1")
            .header("ce-source", source);
        let head = request
            .header("ce-time", "2026-01-02T03:04:05Z")
            .body(())
            .unwrap()
            .into_parts()
            .0;
        CloudEvents::unverified().deliveries(&head, b"{ no JSON")
    };
    let found = with("/a%20b").unwrap();
    assert_eq!(found.first().unwrap().key().id(), "/a b|1");
    assert!(found.first().unwrap().when_sent().is_some());
    assert_eq!(with("%ff").unwrap_err().reason(), Reason::MalformedKey);
    assert_eq!(with("%00").unwrap_err().reason(), Reason::MalformedKey);
    assert_eq!(with("").unwrap(), []);
}
