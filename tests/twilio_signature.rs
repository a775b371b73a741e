//! Which URL and which fields Twilio's signature covers: behind a proxy, with and without a port,
//! forms and other bodies.
#![cfg(feature = "verify")]
#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use http::Request;
use http::request::Parts;
use sha1::Sha1;
use sha2::{Digest, Sha256};
use tower_idempotency::channel::OriginalPath;
use tower_idempotency::verify::{TwilioSignature, Verify};

const FORM: (&str, &str) = (
    "content-type",
    "application/x-www-form-urlencoded; charset=UTF-8",
);

fn accepts(verifier: &impl Verify, head: &Parts, body: &str) -> bool {
    verifier.verify(head, body.as_bytes()).is_ok()
}

/// A request that carries the signature of `signed`.
fn twilio(uri: &str, signed: &str, headers: &[(&str, &str)]) -> Parts {
    let mut mac = Hmac::<Sha1>::new_from_slice(b"s").unwrap();
    mac.update(signed.as_bytes());
    let signature = STANDARD.encode(mac.finalize().into_bytes());
    let mut request = Request::post(uri).header("x-twilio-signature", signature);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap().into_parts().0
}

#[test]
fn twilio_signs_the_public_url() {
    let arriving = TwilioSignature::new("s");
    let origin = arriving.clone().origin("https://bot.example.com").unwrap();
    let url = arriving
        .clone()
        .url("https://bot.example.com/public/sms")
        .unwrap();
    let local = [FORM, ("host", "10.0.0.1:8080")];
    let public = [FORM, ("host", "bot.example.com")];
    let sign = |url: &str, headers: &[_]| twilio("/sms?a=1", &format!("{url}Bodyhi"), headers);

    let direct = sign("https://bot.example.com/sms?a=1", &public);
    assert!(accepts(&arriving, &direct, "Body=hi"));
    let proxied = sign("https://bot.example.com/sms?a=1", &local);
    assert!(!accepts(&arriving, &proxied, "Body=hi"));
    assert!(accepts(&origin, &proxied, "Body=hi"));
    let rewritten = sign("https://bot.example.com/public/sms?a=1", &local);
    assert!(!accepts(&origin, &rewritten, "Body=hi"));
    assert!(accepts(&url, &rewritten, "Body=hi"));
}

#[test]
fn twilio_signs_the_path_that_a_router_has_cut() {
    let mut head = twilio(
        "/sms",
        "https://a.example/hooks/sms",
        &[FORM, ("host", "a.example")],
    );
    head.extensions
        .insert(OriginalPath::new("/hooks/sms".parse().unwrap()));
    assert!(accepts(&TwilioSignature::new("s"), &head, ""));
}

#[test]
fn twilio_signs_with_the_port_or_without() {
    for (origin, signed) in [
        ("https://a.example", "https://a.example/sms"),
        ("https://a.example", "https://a.example:443/sms"),
        ("https://a.example:8443", "https://a.example:8443/sms"),
        ("https://a.example:8443", "https://a.example/sms"),
        ("http://a.example", "http://a.example:80/sms"),
        ("https://me:pw@a.example", "https://me:pw@a.example:443/sms"),
    ] {
        let verifier = TwilioSignature::new("s").origin(origin).unwrap();
        assert!(
            accepts(&verifier, &twilio("/sms", signed, &[FORM]), ""),
            "{signed}"
        );
    }
}

#[test]
fn twilio_sorts_fields_and_drops_doubles() {
    let verifier = TwilioSignature::new("s").origin("https://a").unwrap();
    let signed = twilio("/", "https://a/A1B2B3Cü +", &[FORM]);
    assert!(accepts(&verifier, &signed, "C=%C3%BC+%2B&B=3&B=2&A=1&B=3"));
}

#[test]
fn twilio_signs_json_by_its_digest() {
    let verifier = TwilioSignature::new("s").origin("https://a").unwrap();
    let uri = format!("/x?bodySHA256={}", hex::encode(Sha256::digest("{}")));
    let json = ("content-type", "application/json");
    let signed = twilio(&uri, &format!("https://a{uri}"), &[json]);
    assert!(accepts(&verifier, &signed, "{}"));
    assert!(!accepts(&verifier, &signed, "{ }"));
    let without_digest = twilio("/x", "https://a/x", &[json]);
    assert!(!accepts(&verifier, &without_digest, "{}"));
}

#[test]
fn a_url_that_is_not_absolute_is_an_error_when_the_verifier_is_made() {
    for bad in ["bot.example.com", "https://a/?b", "/sms", ""] {
        let wrong = TwilioSignature::new("s").url(bad).unwrap_err();
        assert!(wrong.is_misconfigured(), "{bad}");
    }
    let with_path = TwilioSignature::new("s").origin("https://a/sms");
    assert!(with_path.unwrap_err().is_misconfigured());
}
