//! What each scheme does beyond its published example: several secrets, old timestamps, missing
//! secrets; and no verifier shows what it knows.
#![cfg(feature = "verify")]
#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signer, SigningKey};
use hmac::{Hmac, KeyInit, Mac};
use http::request::Parts;
use http::{HeaderName, Request};
use proptest::prelude::*;
use sha1::Sha1;
use sha2::{Digest, Sha256};
use tower_idempotency::channel::Reason;
use tower_idempotency::verify::{
    ChatwootSignature, DiscordSignature, GitHubSignature, HeaderToken, HmacSignature,
    IntercomSignature, LineSignature, MatrixToken, MetaSignature, Secret, SlackSignature,
    StandardSignature, SunshineToken, TelegramToken, TwilioSignature, Verify, ViberSignature,
    WeChatSignature,
};

const NOW: u64 = 1_767_607_200;
const HALF_AN_HOUR: Duration = Duration::from_mins(30);

fn head(uri: &str, headers: &[(&str, &str)]) -> Parts {
    let mut request = Request::post(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap().into_parts().0
}

fn accepts(verifier: &impl Verify, head: &Parts, body: &str) -> bool {
    verifier.verify(head, body.as_bytes()).is_ok()
}

fn now() -> SystemTime {
    at(NOW)
}

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

fn sha256(secret: &[u8], signed: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).unwrap();
    mac.update(signed.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

fn sha1(secret: &str, signed: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha1>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(signed.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

fn slack(timestamp: &str, body: &str) -> Parts {
    let digest = sha256(b"s", &format!("v0:{timestamp}:{body}"));
    let signature = format!("v0={}", hex::encode(digest));
    let headers = [
        ("x-slack-request-timestamp", timestamp),
        ("x-slack-signature", &signature),
    ];
    head("/", &headers)
}

#[test]
fn slack_accepts_five_minutes_in_both_directions_and_no_more() {
    let verifier = SlackSignature::new("s").clock(now);
    for (timestamp, fine) in [
        (NOW, true),
        (NOW - 300, true),
        (NOW + 300, true),
        (NOW - 301, false),
        (NOW + 301, false),
        (0, false),
        (u64::MAX, false),
    ] {
        let head = slack(&timestamp.to_string(), "a=b");
        assert_eq!(accepts(&verifier, &head, "a=b"), fine, "{timestamp}");
    }
}

#[test]
fn the_tolerance_is_an_option() {
    let verifier = SlackSignature::new("s").clock(now).tolerance(HALF_AN_HOUR);
    let fine = |age: u64| accepts(&verifier, &slack(&(NOW - age).to_string(), ""), "");
    assert!(fine(1800) && !fine(1801));
}

#[test]
fn a_timestamp_that_is_no_plain_number_is_refused_though_it_is_signed() {
    let verifier = SlackSignature::new("s").clock(now);
    for timestamp in [
        "",
        "+1767607200",
        "-1",
        "1767607200.0",
        "99999999999999999999",
    ] {
        assert!(
            !accepts(&verifier, &slack(timestamp, ""), ""),
            "{timestamp}"
        );
    }
}

/// Field case B108.
#[test]
fn without_a_tolerance_an_old_signature_is_accepted_and_with_one_it_is_not() {
    let old = (NOW - 7 * 86_400).to_string();
    let signature = format!(
        "sha256={}",
        hex::encode(sha256(b"s", &format!("{old}.{{}}")))
    );
    let headers = [
        ("x-chatwoot-timestamp", old.as_str()),
        ("x-chatwoot-signature", signature.as_str()),
    ];
    let head = head("/", &headers);
    let verifier = ChatwootSignature::new("s").clock(now);
    assert!(accepts(&verifier, &head, "{}"));
    assert!(!accepts(&verifier.tolerance(HALF_AN_HOUR), &head, "{}"));
}

#[test]
fn the_system_clock_is_the_default() {
    let verifier = SlackSignature::new("s");
    assert!(!accepts(&verifier, &slack("1531420618", ""), ""));
}

#[test]
fn each_of_several_secrets_is_accepted_and_no_other() {
    let signed_with = |secret: &str| {
        let signature = format!("sha256={}", hex::encode(sha256(secret.as_bytes(), "{}")));
        head("/", &[("x-hub-signature-256", &signature)])
    };
    let verifier = MetaSignature::new("new").also("old");
    assert!(accepts(&verifier, &signed_with("new"), "{}"));
    assert!(accepts(&verifier, &signed_with("old"), "{}"));
    assert!(!accepts(&verifier, &signed_with("older"), "{}"));
}

#[test]
fn an_empty_secret_verifies_nothing() {
    let signature = format!("sha256={}", hex::encode(sha256(b"", "{}")));
    let signed = head("/", &[("x-hub-signature-256", &signature)]);
    assert!(!accepts(&MetaSignature::new(""), &signed, "{}"));
    let header = "x-telegram-bot-api-secret-token";
    let shown = head("/", &[(header, "")]);
    assert!(!accepts(&TelegramToken::new(""), &shown, "{}"));
    let digest = hex::encode(Sha1::digest("12"));
    let query = head(&format!("/?timestamp=1&nonce=2&signature={digest}"), &[]);
    assert!(!accepts(&WeChatSignature::new(""), &query, ""));
}

#[test]
fn a_token_is_the_whole_token() {
    let verifier = TelegramToken::new("token").also("older");
    for (shown, fine) in [
        ("token", true),
        ("older", true),
        ("toke", false),
        ("tokens", false),
        ("Token", false),
        ("", false),
    ] {
        let head = head("/", &[("x-telegram-bot-api-secret-token", shown)]);
        assert_eq!(accepts(&verifier, &head, ""), fine, "{shown}");
    }
    let head = head("/", &[("x-api-key", "token")]);
    assert!(accepts(&SunshineToken::new("token"), &head, ""));
}

#[test]
fn a_homeserver_shows_its_token_in_the_header_or_in_an_old_query() {
    let verifier = MatrixToken::new("hs");
    for (uri, header, fine) in [
        ("/", Some("Bearer hs"), true),
        ("/", Some("bearer hs"), true),
        ("/", Some("Basic hs"), false),
        ("/", Some("hs"), false),
        ("/?access_token=hs", None, true),
        ("/?access_token=other", None, false),
        ("/?access_token=hs", Some("Bearer other"), false),
        ("/", None, false),
    ] {
        let headers: Vec<_> = header.map(|it| ("authorization", it)).into_iter().collect();
        let head = head(uri, &headers);
        assert_eq!(accepts(&verifier, &head, ""), fine, "{uri} {header:?}");
    }
}

#[test]
fn viber_also_signs_in_the_query() {
    let verifier = ViberSignature::new("s");
    let signature = hex::encode(sha256(b"s", "{}"));
    assert!(accepts(
        &verifier,
        &head(&format!("/?sig={signature}"), &[]),
        "{}"
    ));
    assert!(!accepts(
        &verifier,
        &head(&format!("/?sig={signature}"), &[]),
        "{ }"
    ));
}

#[test]
fn a_scheme_of_ones_own_has_header_prefix_and_encoding() {
    let header = HeaderName::from_static("x-shop-signature");
    let hmac = HmacSignature::sha1(header, "s").prefix("v9:").base64();
    let signature = format!("v9:{}", STANDARD.encode(sha1("s", "body")));
    let signed = head("/", &[("x-shop-signature", &signature)]);
    assert!(accepts(&hmac, &signed, "body"));
    assert!(!accepts(&hmac.prefix("v8:"), &signed, "body"));
}

#[test]
fn standard_webhooks_take_any_fitting_signature_of_the_list() {
    let secret = STANDARD.encode("shared");
    let verifier = StandardSignature::new(&secret).unwrap().clock(now);
    let digest = STANDARD.encode(sha256(b"shared", &format!("m1.{NOW}.{{}}")));
    let timestamp = NOW.to_string();
    for (list, fine) in [
        (format!("v1,{digest}"), true),
        (format!("v1,AAAA v1a,AAAA v2,{digest} v1,{digest}"), true),
        (format!("v2,{digest}"), false),
        (digest.clone(), false),
        (format!("{}v1,{digest}", "v1,AAAA ".repeat(1000)), false),
    ] {
        let headers = [
            ("webhook-id", "m1"),
            ("webhook-timestamp", timestamp.as_str()),
            ("webhook-signature", list.as_str()),
        ];
        let head = head("/", &headers);
        assert_eq!(accepts(&verifier, &head, "{}"), fine, "{list}");
    }
}

#[test]
fn standard_webhooks_verify_a_public_key_too() {
    let key = SigningKey::from_bytes(&[7; 32]);
    let public = STANDARD.encode(key.verifying_key().as_bytes());
    let verifier = StandardSignature::new(&format!("whpk_{public}")).unwrap();
    let verifier = verifier.clock(now);
    let signature = key.sign(format!("m1.{NOW}.{{}}").as_bytes());
    let signature = format!("v1a,{}", STANDARD.encode(signature.to_bytes()));
    let timestamp = NOW.to_string();
    let headers = [
        ("webhook-id", "m1"),
        ("webhook-timestamp", timestamp.as_str()),
        ("webhook-signature", signature.as_str()),
    ];
    let head = head("/", &headers);
    assert!(accepts(&verifier, &head, "{}"));
    assert!(!accepts(&verifier, &head, "{ }"));
}

#[test]
fn a_key_that_is_none_is_an_error_when_the_verifier_is_made() {
    for bad in ["", "zz", "03a1", &"00".repeat(33)] {
        assert!(DiscordSignature::new(bad).unwrap_err().is_misconfigured());
    }
    for bad in ["whsec_*", "whpk_AAAA"] {
        assert!(StandardSignature::new(bad).unwrap_err().is_misconfigured());
    }
}

#[test]
fn nothing_shows_a_secret() {
    let secret = "hunter2hunter2hunter2hunter2";
    let standard = StandardSignature::new(secret).unwrap();
    let shown = [
        format!("{:?}", Secret::from(secret)),
        format!("{:?}", MetaSignature::new(secret)),
        format!("{:?}", GitHubSignature::new(secret)),
        format!("{:?}", LineSignature::new(secret)),
        format!("{:?}", ViberSignature::new(secret)),
        format!("{:?}", IntercomSignature::new(secret)),
        format!("{:?}", SlackSignature::new(secret)),
        format!("{:?}", ChatwootSignature::new(secret)),
        format!("{:?}", TwilioSignature::new(secret)),
        format!("{:?}", WeChatSignature::new(secret)),
        format!("{:?}", TelegramToken::new(secret)),
        format!("{:?}", MatrixToken::new(secret)),
        format!(
            "{:?}",
            HeaderToken::new(HeaderName::from_static("x"), secret)
        ),
        format!("{standard:?}"),
        format!(
            "{:?}",
            StandardSignature::new("whsec_hunter2*").unwrap_err()
        ),
    ];
    for text in shown {
        assert!(!text.contains("hunter2"), "{text}");
    }
}

#[test]
fn a_refusal_is_unverified_and_says_nothing_of_what_was_expected() {
    let verifier = MetaSignature::new("s");
    let expected = hex::encode(sha256(b"s", "{}"));
    for (name, value) in [
        ("x-other", "x"),
        ("x-hub-signature-256", "x"),
        ("x-hub-signature-256", "sha256=00"),
    ] {
        let refusal = verifier
            .verify(&head("/", &[(name, value)]), b"{}")
            .unwrap_err();
        assert_eq!(refusal.reason(), Reason::Unverified);
        assert!(!refusal.detail().contains(&expected), "{refusal}");
    }
}

fn all() -> Vec<Box<dyn Verify>> {
    let discord = "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8";
    vec![
        Box::new(MetaSignature::new("s")),
        Box::new(LineSignature::new("s")),
        Box::new(ViberSignature::new("s")),
        Box::new(IntercomSignature::new("s")),
        Box::new(SlackSignature::new("s").clock(now)),
        Box::new(ChatwootSignature::new("s").clock(now)),
        Box::new(TwilioSignature::new("s")),
        Box::new(WeChatSignature::new("s")),
        Box::new(TelegramToken::new("s")),
        Box::new(MatrixToken::new("s")),
        Box::new(SunshineToken::new("s")),
        Box::new(DiscordSignature::new(discord).unwrap()),
        Box::new(StandardSignature::new("AAAA").unwrap().clock(now)),
    ]
}

const HEADERS: [&str; 14] = [
    "x-hub-signature-256",
    "x-hub-signature",
    "x-line-signature",
    "x-viber-content-signature",
    "x-slack-signature",
    "x-slack-request-timestamp",
    "x-chatwoot-signature",
    "x-chatwoot-timestamp",
    "x-twilio-signature",
    "x-signature-ed25519",
    "x-signature-timestamp",
    "webhook-signature",
    "authorization",
    "content-type",
];

proptest! {
    #[test]
    fn no_request_makes_a_verifier_panic_or_pass(
        values in prop::collection::vec("(sha256=|v0=|v1,|v1a,|Bearer )?([0-9a-f]{64}|[0-9]{1,25}|[ -~]{0,40})", 14),
        query in "[a-z=&%0-9]{0,40}",
        body in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let pairs: Vec<_> = HEADERS.iter().copied().zip(values.iter().map(String::as_str)).collect();
        let head = head(&format!("/?{query}"), &pairs);
        for verifier in all() {
            let answer = verifier.verify(&head, &body);
            prop_assert!(answer.is_err());
            prop_assert_eq!(answer, verifier.verify(&head, &body));
        }
    }
}
