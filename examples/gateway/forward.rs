//! What of a message's head is passed on.

use std::net::SocketAddr;

use http::header::{CONNECTION, EXPECT, HOST, HeaderName, HeaderValue, TE, UPGRADE};
use http::request::Parts;
use http::{HeaderMap, Uri};
use tower_idempotency::Claimed;

/// Who is at the other end of the client's connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) SocketAddr);

/// Fields of one connection, which go no further (RFC 9110, section 7.6.1).
const HOP_BY_HOP: [HeaderName; 7] = [
    CONNECTION,
    TE,
    UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-authorization"),
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("transfer-encoding"),
];

const TOKEN: HeaderName = HeaderName::from_static("x-idempotency-token");
const ATTEMPT: HeaderName = HeaderName::from_static("x-idempotency-attempt");
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// Makes a client's head one for the upstream.
///
/// The length of a body that was read is known, so its transfer coding goes, and the client was
/// told to go on already, so its `Expect` goes. The upstream is told the run's fencing token, and
/// which attempt it is.
pub(crate) fn to_upstream(head: &mut Parts) {
    if !head.headers.contains_key(HOST)
        && let Some(authority) = head.uri.authority()
        && let Ok(host) = authority.as_str().parse()
    {
        head.headers.insert(HOST, host);
    }
    hop(&mut head.headers);
    for ours in [EXPECT, TOKEN, ATTEMPT] {
        head.headers.remove(ours);
    }
    if let Some(claimed) = head.extensions.get::<Claimed>() {
        let messages = claimed.messages();
        if let Some(token) = messages
            .iter()
            .map(|message| message.token().number())
            .max()
        {
            head.headers.insert(TOKEN, HeaderValue::from(token));
        }
        if let Some(attempt) = messages
            .iter()
            .map(tower_idempotency::Message::attempt)
            .max()
        {
            head.headers.insert(ATTEMPT, HeaderValue::from(attempt));
        }
    }
    if let Some(Peer(address)) = head.extensions.get::<Peer>()
        && let Ok(address) = address.ip().to_string().parse()
    {
        head.headers.append(FORWARDED_FOR, address);
    }
    if let Some(host) = head.headers.get(HOST).cloned() {
        head.headers.entry(FORWARDED_HOST).or_insert(host);
    }
}

/// The same path and query at the upstream.
pub(crate) fn uri(uri: &Uri, upstream: &http::uri::Authority) -> Result<Uri, http::Error> {
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    Uri::builder()
        .scheme("http")
        .authority(upstream.clone())
        .path_and_query(path)
        .build()
}

/// Takes out the fields that belong to one connection.
pub(crate) fn hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in HOP_BY_HOP.iter().chain(&named) {
        headers.remove(name);
    }
}
