//! Verifiers: any head and body have an answer, nothing is accepted that was not signed, what was
//! signed is, and no longer with one bit changed.

use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use http::HeaderValue;
use http::request::Parts;
use sha2::Sha256;
use tower_idempotency::verify::{
    ChatwootSignature, DiscordSignature, GitHubSignature, IntercomSignature, LineSignature,
    MatrixToken, MetaSignature, SlackSignature, StandardSignature, SunshineToken, TelegramToken,
    TwilioSignature, Verify, ViberSignature, WeChatSignature,
};

use crate::request::Asked;

/// Longer than what a mutation finds, so that whoever is accepted has signed.
const SECRET: &str = "a secret that no mutation finds by itself";
const DISCORD: &str = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
const NOW: &str = "1700000000";

/// `data` is a request, signed or not; its first word says which bit is changed after signing.
pub fn check(data: &[u8]) {
    let asked = Asked::parse(data);
    for verifier in verifiers() {
        let answer = verifier.verify(&asked.head, asked.body);
        assert!(answer.is_err(), "accepted without the secret");
        assert!(!answer.unwrap_err().detail().contains(SECRET));
    }
    let sum: usize = asked.word.bytes().map(usize::from).sum();
    for scheme in SCHEMES {
        signed(&scheme, &asked, sum);
    }
}

fn verifiers() -> Vec<Box<dyn Verify>> {
    vec![
        Box::new(ChatwootSignature::new(SECRET)),
        Box::new(DiscordSignature::new(DISCORD).expect("a key")),
        Box::new(GitHubSignature::new(SECRET)),
        Box::new(IntercomSignature::new(SECRET)),
        Box::new(LineSignature::new(SECRET)),
        Box::new(MatrixToken::new(SECRET)),
        Box::new(MetaSignature::new(SECRET)),
        Box::new(slack()),
        Box::new(standard()),
        Box::new(SunshineToken::new(SECRET)),
        Box::new(TelegramToken::new(SECRET)),
        Box::new(TwilioSignature::new(SECRET)),
        Box::new(ViberSignature::new(SECRET)),
        Box::new(WeChatSignature::new(SECRET)),
    ]
}

fn slack() -> SlackSignature {
    SlackSignature::new(SECRET).clock(now)
}

fn standard() -> StandardSignature {
    let key = StandardSignature::new(&STANDARD.encode(SECRET));
    key.expect("a key").clock(now)
}

fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000)
}

/// How a sender signs a body.
struct Scheme {
    header: &'static str,
    time: Option<&'static str>,
    signature: fn(&[u8]) -> String,
    verifier: fn() -> Box<dyn Verify>,
}

const SCHEMES: [Scheme; 5] = [
    Scheme {
        header: "x-hub-signature-256",
        time: None,
        signature: |body| format!("sha256={}", hex::encode(mac(&[body]))),
        verifier: || Box::new(MetaSignature::new("older").also(SECRET)),
    },
    Scheme {
        header: "x-line-signature",
        time: None,
        signature: |body| STANDARD.encode(mac(&[body])),
        verifier: || Box::new(LineSignature::new(SECRET)),
    },
    Scheme {
        header: "x-slack-signature",
        time: Some("x-slack-request-timestamp"),
        signature: |body| {
            let signed = mac(&[b"v0:", NOW.as_bytes(), b":", body]);
            format!("v0={}", hex::encode(signed))
        },
        verifier: || Box::new(slack()),
    },
    Scheme {
        header: "x-chatwoot-signature",
        time: Some("x-chatwoot-timestamp"),
        signature: |body| format!("sha256={}", hex::encode(mac(&[NOW.as_bytes(), b".", body]))),
        verifier: || Box::new(ChatwootSignature::new(SECRET)),
    },
    Scheme {
        header: "webhook-signature",
        time: Some("webhook-timestamp"),
        signature: |body| {
            let signed = mac(&[b"msg_1.", NOW.as_bytes(), b".", body]);
            format!("v1a,xx v1,{}", STANDARD.encode(signed))
        },
        verifier: || Box::new(standard()),
    },
];

fn mac(parts: &[&[u8]]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).expect("any key is one");
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().to_vec()
}

fn signed(scheme: &Scheme, asked: &Asked<'_>, bit: usize) {
    let mut head = asked.head.clone();
    let mut put = |name: &'static str, value: &str| {
        let value = HeaderValue::from_str(value).expect("a header");
        head.headers.insert(name, value);
    };
    put("webhook-id", "msg_1");
    if let Some(time) = scheme.time {
        put(time, NOW);
    }
    let signature = (scheme.signature)(asked.body);
    put(scheme.header, &signature);
    let verifier = (scheme.verifier)();
    let accepts = |head: &Parts, body: &[u8]| verifier.verify(head, body).is_ok();
    assert!(accepts(&head, asked.body), "signed: {}", scheme.header);

    let mut body = asked.body.to_vec();
    match body.len() {
        0 => body.push(0),
        length => body[bit / 8 % length] ^= 1 << (bit % 8),
    }
    assert!(!accepts(&head, &body), "another body: {}", scheme.header);
}
