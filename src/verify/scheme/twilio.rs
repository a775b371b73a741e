//! Twilio.

use hmac::Hmac;
use http::HeaderName;
use http::header::HOST;
use http::request::Parts;
use http::uri::{Authority, Uri};
use sha1::Sha1;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::channel::contract::Refusal;
use crate::channel::form::is_form;
use crate::channel::path::path_of;
use crate::error::Error;
use crate::verify::contract::Verify;
use crate::verify::scheme::keys::Keys;
use crate::verify::scheme::read;
use crate::verify::scheme::secret::Secret;

const SIGNATURE: HeaderName = HeaderName::from_static("x-twilio-signature");

/// Twilio's signature: `X-Twilio-Signature`, the base64 of the HMAC-SHA1 of the full URL and every
/// form field, sorted by name, under the account's auth token. Where the body is no form, the URL
/// carries its SHA-256 as `bodySHA256`.
///
/// The URL is the one that Twilio was told, not the one that arrives behind a proxy. Default:
/// `https`, the `Host` header, and the path and query that the client asked for (see
/// [`OriginalPath`](crate::channel::OriginalPath)); say otherwise with [`origin`](Self::origin) or
/// [`url`](Self::url). Both are tried with and without the port,
/// as Twilio's libraries do.
///
/// There is no timestamp: a repeat verifies, however late it comes. The fields are joined without
/// separators, so that the signature does not tell where a name ends and its value begins.
///
/// <https://www.twilio.com/docs/usage/webhooks/webhooks-security>
///
/// ```
/// use tower_idempotency::verify::TwilioSignature;
///
/// # fn main() -> Result<(), tower_idempotency::Error> {
/// let signature = TwilioSignature::new("auth token");
/// let behind_a_proxy = TwilioSignature::new("auth token").origin("https://bot.example.com")?;
/// let rewritten = TwilioSignature::new("auth token").url("https://bot.example.com/twilio/sms")?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct TwilioSignature {
    keys: Keys<Hmac<Sha1>>,
    public: Public,
}

/// What is known of the URL that Twilio was told.
#[derive(Clone, Debug)]
enum Public {
    /// Nothing: it is what arrives, by `https`.
    Arriving,
    /// Scheme and authority; path and query are what arrives.
    Origin(Origin),
    /// All but the query.
    Url(Origin, String),
}

#[derive(Clone, Debug)]
struct Origin {
    scheme: String,
    authority: Authority,
}

impl TwilioSignature {
    /// Accepts what is signed with the account's auth token.
    pub fn new(auth_token: impl Into<Secret>) -> Self {
        Self {
            keys: Keys::of(&auth_token.into()),
            public: Public::Arriving,
        }
    }

    /// Accepts also what is signed with this auth token: the secondary one while it is promoted,
    /// or another account's.
    pub fn also(mut self, auth_token: impl Into<Secret>) -> Self {
        self.keys.add(&auth_token.into());
        self
    }

    /// The scheme and authority that Twilio was told, such as `https://bot.example.com`; path and
    /// query are the request's.
    ///
    /// # Errors
    /// If it is no absolute URL, or has a path or query.
    pub fn origin(mut self, origin: &str) -> Result<Self, Error> {
        let (origin, path) = split(origin)?;
        if path != "/" {
            return Err(Error::misconfigured("Twilio's origin has a path"));
        }
        self.public = Public::Origin(origin);
        Ok(self)
    }

    /// The URL that Twilio was told, without its query, which is the request's.
    ///
    /// # Errors
    /// If it is no absolute URL, or has a query.
    pub fn url(mut self, url: &str) -> Result<Self, Error> {
        let (origin, path) = split(url)?;
        self.public = Public::Url(origin, path);
        Ok(self)
    }

    /// The two ways in which the request's URL may have been signed: with its port and without.
    fn urls(&self, head: &Parts) -> Result<[String; 2], Refusal> {
        let arriving;
        let (origin, path) = match &self.public {
            Public::Arriving => {
                arriving = Origin::of(head)?;
                (&arriving, path_of(head))
            }
            Public::Origin(origin) => (origin, path_of(head)),
            Public::Url(origin, path) => (origin, path.as_str()),
        };
        let mut rest = path.to_owned();
        if let Some(query) = head.uri.query() {
            rest.push('?');
            rest.push_str(query);
        }
        Ok(origin.ways().map(|origin| origin + &rest))
    }
}

fn split(url: &str) -> Result<(Origin, String), Error> {
    let wrong = || Error::misconfigured("Twilio's URL is not absolute, or has a query");
    let uri: Uri = url.parse().map_err(|e| wrong().because(e))?;
    let (scheme, authority) = uri.scheme_str().zip(uri.authority()).ok_or_else(wrong)?;
    if uri.query().is_some() {
        return Err(wrong());
    }
    let origin = Origin {
        scheme: scheme.to_owned(),
        authority: authority.clone(),
    };
    Ok((origin, uri.path().to_owned()))
}

impl Origin {
    fn of(head: &Parts) -> Result<Self, Refusal> {
        let authority = match head.uri.authority() {
            Some(authority) => Some(authority.clone()),
            None => read::header(head, &HOST)?.parse().ok(),
        };
        let authority =
            authority.ok_or_else(|| Refusal::unverified("the header `host` names no host"))?;
        Ok(Self {
            scheme: "https".to_owned(),
            authority,
        })
    }

    fn ways(&self) -> [String; 2] {
        let Self { scheme, authority } = self;
        let port = authority.port_u16().unwrap_or(match scheme.as_str() {
            "http" => 80,
            _ => 443,
        });
        let user = authority.as_str().rsplit_once('@');
        let user = user.map_or_else(String::new, |(user, _)| format!("{user}@"));
        let bare = format!("{scheme}://{user}{}", authority.host());
        [format!("{bare}:{port}"), bare]
    }
}

impl Verify for TwilioSignature {
    fn verify(&self, head: &Parts, body: &[u8]) -> Result<(), Refusal> {
        let digest = read::base64(read::header(head, &SIGNATURE)?).ok_or_else(read::wrong)?;
        let fields = if is_form(head) {
            sorted_fields(body)
        } else {
            check_body(head, body)?;
            String::new()
        };
        let fits = |url: &String| {
            self.keys
                .signed(&[url.as_bytes(), fields.as_bytes()], &digest)
        };
        if self.urls(head)?.iter().any(fits) {
            Ok(())
        } else {
            Err(read::wrong())
        }
    }
}

/// Names and values, sorted, each pair once.
fn sorted_fields(body: &[u8]) -> String {
    let mut fields: Vec<_> = form_urlencoded::parse(body).collect();
    fields.sort_unstable();
    fields.dedup();
    fields
        .iter()
        .flat_map(|(name, value)| [&**name, &**value])
        .collect()
}

fn check_body(head: &Parts, body: &[u8]) -> Result<(), Refusal> {
    let shown = read::hex(&read::parameter(head, "bodySHA256")?);
    let shown = shown.ok_or_else(read::wrong)?;
    if Sha256::digest(body).as_slice().ct_eq(&shown).into() {
        Ok(())
    } else {
        Err(read::wrong())
    }
}
