//! Every sender's published or computed signature is accepted, and refused as soon as one byte of
//! the body, the signature or the timestamp is another.
#![cfg(feature = "verify")]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail by panicking"
)]

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, SystemTime};

use http::Request;
use http::request::Parts;
use serde::Deserialize;
use tower_idempotency::verify::{
    ChatwootSignature, DiscordSignature, GitHubSignature, IntercomSignature, LineSignature,
    MetaSignature, SlackSignature, StandardSignature, TwilioSignature, Verify, ViberSignature,
    WeChatSignature,
};

#[derive(Deserialize)]
struct Vector {
    channel: String,
    #[serde(default)]
    secret: String,
    #[serde(default)]
    public_key: String,
    body: Option<String>,
    file: Option<String>,
    url: Option<String>,
    #[serde(default)]
    params: BTreeMap<String, String>,
    #[serde(default)]
    query: BTreeMap<String, String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
}

/// A signed request that can be changed and checked again.
#[derive(Clone, Debug)]
struct Signed {
    uri: String,
    headers: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
}

impl Signed {
    /// `None` if what was changed can no longer be sent.
    fn head(&self) -> Option<Parts> {
        let mut request = Request::post(&self.uri);
        for (name, value) in &self.headers {
            request = request.header(name, value.as_slice());
        }
        Some(request.body(()).ok()?.into_parts().0)
    }

    fn accepted_by(&self, verifier: &dyn Verify) -> bool {
        self.head()
            .is_some_and(|head| verifier.verify(&head, &self.body).is_ok())
    }
}

impl Vector {
    fn all() -> Vec<Self> {
        serde_json::from_slice(&fixture("signatures.json")).unwrap()
    }

    fn request(&self) -> Signed {
        let mut headers: Vec<_> = self.headers.clone().into_iter().collect();
        let mut uri = self.url.clone().unwrap_or_else(|| "/hook".to_owned());
        if !self.query.is_empty() {
            uri = format!("{uri}?{}", form(&self.query));
        }
        let body = match (&self.body, &self.file) {
            (Some(body), _) => body.clone().into_bytes(),
            (None, Some(file)) => fixture(file),
            (None, None) => form(&self.params).into_bytes(),
        };
        if !self.params.is_empty() {
            let kind = "application/x-www-form-urlencoded";
            headers.push(("Content-Type".to_owned(), kind.to_owned()));
        }
        let headers = headers.into_iter().map(|(n, v)| (n, v.into_bytes()));
        Signed {
            uri,
            headers: headers.collect(),
            body,
        }
    }

    /// The verifier, with the secret that signed it and one that did not, at the time of signing.
    fn verifier(&self) -> Box<dyn Verify> {
        let secret = self.secret.as_str();
        match self.channel.as_str() {
            "whatsapp" | "messenger" | "instagram" => {
                Box::new(MetaSignature::new("another").also(secret))
            }
            "github" => Box::new(GitHubSignature::new("another").also(secret)),
            "line" => Box::new(LineSignature::new("another").also(secret)),
            "viber" => Box::new(ViberSignature::new("another").also(secret)),
            "intercom" => Box::new(IntercomSignature::new("another").also(secret)),
            "twilio" => Box::new(TwilioSignature::new("another").also(secret)),
            "chatwoot" => Box::new(ChatwootSignature::new("another").also(secret)),
            "wechat" => Box::new(WeChatSignature::new("another").also(secret)),
            "discord_interactions" => Box::new(DiscordSignature::new(&self.public_key).unwrap()),
            "slack" => {
                let slack = SlackSignature::new("another").also(secret);
                Box::new(slack.clock(|| seconds(1_531_420_618)))
            }
            "standard_webhooks" => {
                let other = StandardSignature::new("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD");
                let standard = other.unwrap().also(secret).unwrap();
                Box::new(standard.clock(|| seconds(1_614_265_330)))
            }
            other => panic!("no verifier for {other}"),
        }
    }
}

fn seconds(since_1970: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(since_1970)
}

fn fixture(path: &str) -> Vec<u8> {
    fs::read(format!("tests/fixtures/{path}")).unwrap()
}

fn form(fields: &BTreeMap<String, String>) -> String {
    let mut out = form_urlencoded::Serializer::new(String::new());
    out.extend_pairs(fields);
    out.finish()
}

fn fields(body: &[u8]) -> Vec<(String, String)> {
    let mut fields: Vec<_> = form_urlencoded::parse(body).into_owned().collect();
    fields.sort();
    fields
}

/// `bytes` with one of them changed, at every place: a bit, and where the bytes are few also the
/// case of a letter, a neighbour, a zero and what is no text.
fn changes(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let few = bytes.len() <= 256;
    bytes.iter().enumerate().flat_map(move |(at, &byte)| {
        let others = [
            byte ^ 1,
            byte ^ 0x20,
            byte.wrapping_add(1),
            b'0',
            byte ^ 0x80,
        ];
        let others = others.into_iter().take(if few { 5 } else { 1 });
        others
            .filter(move |&other| other != byte)
            .map(move |other| {
                let (before, after) = bytes.split_at(at);
                let after = after.iter().skip(1);
                before
                    .iter()
                    .chain([&other])
                    .chain(after)
                    .copied()
                    .collect()
            })
    })
}

/// `request` with one byte changed, at every place of its body, its headers and its query.
fn with_one_byte_changed(request: &Signed) -> Vec<Signed> {
    let bodies = changes(&request.body).map(|body| Signed {
        body,
        ..request.clone()
    });
    let signed = request.headers.iter().enumerate();
    let signed = signed.filter(|(_, (name, _))| name != "Content-Type");
    let headers = signed.flat_map(|(i, (name, value))| {
        changes(value).map(move |value| {
            let mut changed = request.clone();
            changed.headers.remove(i);
            changed.headers.push((name.clone(), value));
            changed
        })
    });
    let (path, query) = request.uri.split_once('?').unwrap_or((&request.uri, ""));
    let queries = changes(query.as_bytes()).filter_map(|query| {
        Some(Signed {
            uri: format!("{path}?{}", String::from_utf8(query).ok()?),
            ..request.clone()
        })
    });
    bodies.chain(headers).chain(queries).collect()
}

/// Whether a change says the same: Twilio signs a form's fields and not how they are written.
fn says_the_same(channel: &str, original: &Signed, changed: &Signed) -> bool {
    channel == "twilio"
        && original.headers == changed.headers
        && original.uri == changed.uri
        && fields(&original.body) == fields(&changed.body)
}

#[test]
fn every_vector_is_accepted() {
    let vectors = Vector::all();
    assert_eq!(vectors.len(), 13);
    for vector in vectors {
        assert!(
            vector.request().accepted_by(&*vector.verifier()),
            "{}",
            vector.channel
        );
    }
}

#[test]
fn one_other_byte_in_body_signature_or_timestamp_is_refused() {
    for vector in Vector::all() {
        let (request, verifier) = (vector.request(), vector.verifier());
        let mut tried = 0;
        for changed in with_one_byte_changed(&request) {
            if changed.head().is_none() || says_the_same(&vector.channel, &request, &changed) {
                continue;
            }
            tried += 1;
            assert!(
                !changed.accepted_by(&*verifier),
                "{}: {changed:?}",
                vector.channel
            );
        }
        assert!(tried > 100, "{}: {tried} changes", vector.channel);
    }
}

#[test]
fn a_byte_more_or_less_is_refused() {
    for vector in Vector::all() {
        let (request, verifier) = (vector.request(), vector.verifier());
        if vector.channel == "wechat" {
            // Its signature does not cover the body.
            continue;
        }
        let mut longer = request.clone();
        longer.body.push(b' ');
        let mut shorter = request.clone();
        shorter.body.pop();
        assert!(!longer.accepted_by(&*verifier), "{}", vector.channel);
        assert!(!shorter.accepted_by(&*verifier), "{}", vector.channel);
    }
}

#[test]
fn a_request_without_its_signature_is_refused() {
    for vector in Vector::all() {
        let mut bare = vector.request();
        bare.headers.retain(|(name, _)| name == "Content-Type");
        bare.uri = bare.uri.split('?').next().unwrap().to_owned();
        assert!(!bare.accepted_by(&*vector.verifier()), "{}", vector.channel);
    }
}

#[test]
fn a_header_that_is_there_twice_is_refused() {
    for vector in Vector::all() {
        let request = vector.request();
        for header in &request.headers {
            if header.0 == "Content-Type" {
                continue;
            }
            let mut twice = request.clone();
            twice.headers.push(header.clone());
            assert!(
                !twice.accepted_by(&*vector.verifier()),
                "{}",
                vector.channel
            );
        }
    }
}
