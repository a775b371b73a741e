//! A channel of one's own: an SMS modem posts one message per line, `id;from;text`, and posts a
//! line again until it was answered.
//!
//! `cargo run --example own_channel` sends three lines, then two of them again and a new one. Each
//! line is handled once.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::collections::HashSet;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderName, Method, Request, Response};
use http_body_util::{BodyExt, Full};
use tower::{Service, ServiceBuilder, ServiceExt, service_fn};
use tower_idempotency::channel::{Channel, Concern, Refusal, Terms};
use tower_idempotency::store::MemoryStore;
use tower_idempotency::verify::{HeaderToken, Verified};
use tower_idempotency::{BoxError, Conversation, Delivery, IdempotencyLayer, Key, RequestBody};

struct Modem {
    terms: Terms,
}

impl Channel for Modem {
    fn terms(&self, _head: &Parts) -> &Terms {
        &self.terms
    }

    fn concern(&self, head: &Parts) -> Result<Concern, Refusal> {
        let posted = head.method == Method::POST;
        Ok(if posted { Concern::Read } else { Concern::Pass })
    }

    fn deliveries(&self, _head: &Parts, body: &[u8]) -> Result<Vec<Delivery>, Refusal> {
        let lines = body.split_inclusive(|byte| *byte == b'\n');
        let mut found: Vec<_> = lines.filter_map(|line| self.delivery(line)).collect();
        let mut seen = HashSet::new();
        found.retain(|delivery| seen.insert(delivery.key().clone()));
        Ok(found)
    }

    // Not needed where a request carries one message.
    fn without(&self, _head: &Parts, body: &Bytes, gone: &[&Key]) -> Option<Bytes> {
        let goes = |line: &&[u8]| {
            self.delivery(line)
                .is_some_and(|it| gone.contains(&it.key()))
        };
        let lines = body.split_inclusive(|byte| *byte == b'\n');
        let rest: Vec<&[u8]> = lines.filter(|line| !goes(line)).collect();
        Some(rest.concat().into())
    }
}

impl Modem {
    fn delivery(&self, line: &[u8]) -> Option<Delivery> {
        let (id, rest) = std::str::from_utf8(line).ok()?.split_once(';')?;
        let (from, _text) = rest.split_once(';')?;
        let conversation = Conversation::new(&self.terms.channel, "", from);
        let key = Key::new(&self.terms.channel, "", &[id]);
        Some(Delivery::new(key).conversation(conversation))
    }
}

async fn handle(
    request: Request<RequestBody<Full<Bytes>>>,
) -> Result<Response<Full<Bytes>>, BoxError> {
    let body = request.into_body().collect().await?.to_bytes();
    for line in String::from_utf8_lossy(&body).lines() {
        println!("  handled: {line}");
    }
    Ok(Response::new(Full::default()))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let modem = Modem {
        terms: Terms::webhook("modem"),
    };
    let token = HeaderToken::new(HeaderName::from_static("x-modem-token"), "secret");
    let layer = IdempotencyLayer::new(MemoryStore::new(), Verified::new(modem, token));
    let mut service = ServiceBuilder::new()
        .layer(layer)
        .service(service_fn(handle));

    for (token, body) in [
        ("guessed", "1;ann;hello\n"),
        ("secret", "1;ann;hello\n2;bob;hi\n3;ann;bye\n"),
        ("secret", "2;bob;hi\n4;bob;hm\n3;ann;bye\n"),
    ] {
        println!("posted with the token {token:?}");
        let request = Request::post("/modem").header("x-modem-token", token);
        let request = request.body(Full::from(body))?;
        let response = service.ready().await?.call(request).await?;
        println!("  answered: {}", response.status());
    }
    Ok(())
}
