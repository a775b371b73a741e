//! A sender that signs with a JWT: Vonage posts `Authorization: Bearer` and a token whose claims
//! name the SHA-256 of the body. Teams, Google Chat and Bird work alike, with keys that are
//! fetched beforehand and refreshed in the background.
//!
//! `cargo run --example jwt_channel` posts a message, the same one again, and one whose body was
//! changed on the way.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation, decode, encode};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tower::{Service, ServiceBuilder, ServiceExt, service_fn};
use tower_idempotency::channel::{JsonPath, Refusal};
use tower_idempotency::store::MemoryStore;
use tower_idempotency::verify::Verify;
use tower_idempotency::{BoxError, IdempotencyLayer, RequestBody};

const SECRET: &[u8] = b"signature secret";

#[derive(Serialize, Deserialize)]
struct Claims {
    iss: String,
    payload_hash: String,
}

/// Checks the token with the library, and then what the library cannot know: that the token was
/// made for this body.
fn vonage(secret: &[u8]) -> Result<impl Verify, BoxError> {
    let key = DecodingKey::from_secret(secret)?;
    // The one algorithm that the sender uses. Without it a token could choose its own.
    let mut rules = Validation::new(Algorithm::HS256);
    rules.set_issuer(&["Vonage"]);
    rules.set_required_spec_claims(&["iss"]);
    rules.validate_exp = false;
    Ok(move |head: &Parts, body: &[u8]| {
        let header = head
            .headers
            .get(AUTHORIZATION)
            .and_then(|it| it.to_str().ok());
        let token = header.and_then(|it| it.strip_prefix("Bearer "));
        let token = token.ok_or_else(|| Refusal::unverified("there is no bearer token"))?;
        let decoded = decode::<Claims>(token, &key, &rules);
        let claims = decoded
            .map_err(|_| Refusal::unverified("the token is not valid"))?
            .claims;
        // Both are known to whoever sent them, so the comparison tells nothing by its time.
        if claims.payload_hash == digest(body) {
            Ok(())
        } else {
            Err(Refusal::unverified("the token was made for another body"))
        }
    })
}

fn digest(body: &[u8]) -> String {
    hex::encode(Sha256::digest(body))
}

/// What Vonage does before it posts.
fn token_for(body: &str) -> Result<String, BoxError> {
    let claims = Claims {
        iss: "Vonage".to_owned(),
        payload_hash: digest(body.as_bytes()),
    };
    let key = EncodingKey::from_secret(SECRET)?;
    Ok(encode(&Header::new(Algorithm::HS256), &claims, &key)?)
}

async fn handle(
    request: Request<RequestBody<Full<Bytes>>>,
) -> Result<Response<Full<Bytes>>, BoxError> {
    let body = request.into_body().collect().await?.to_bytes();
    println!("  handled: {}", String::from_utf8_lossy(&body));
    Ok(Response::new(Full::default()))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let channel = JsonPath::new("vonage", "$.message_uuid")?.verified_by(vonage(SECRET)?);
    let layer = IdempotencyLayer::new(MemoryStore::new(), channel);
    let mut service = ServiceBuilder::new()
        .layer(layer)
        .service(service_fn(handle));

    let sent = r#"{"message_uuid":"aaaa-bbbb","text":"hi"}"#;
    let forged = r#"{"message_uuid":"aaaa-cccc","text":"hi"}"#;
    for (what, body) in [("first", sent), ("again", sent), ("changed", forged)] {
        println!("{what}");
        let request = Request::post("/inbound")
            .header(AUTHORIZATION, format!("Bearer {}", token_for(sent)?))
            .body(Full::from(body))?;
        let response = service.ready().await?.call(request).await?;
        println!("  answered: {}", response.status());
    }
    Ok(())
}
