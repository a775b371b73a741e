//! The `Idempotency-Key` header: a key that the client makes, once per logical send.

use std::borrow::Cow;
use std::time::Duration;

use http::HeaderValue;
use http::header::HeaderName;
use http::request::Parts;

use crate::channel::contract::{Channel, Concern, Reason, Refusal, Terms};
use crate::channel::scope::Scope;
use crate::delivery::Delivery;
use crate::fingerprint::BodyForm;
use crate::key::{Conversation, Key};
use crate::record::Keep;

/// The channel of clients that make their own key and send it in a header.
///
/// A client makes a key (a UUID) when the user sends, keeps it with the outgoing message and
/// sends it with every attempt. [`Scope`] says whose key it is, so that two users may use the same.
///
/// The key is a [structured-field string] or bare: `"abc"` and `abc` are one key. Two header lines,
/// a blank key, one of more than 255 bytes, one with control or non-ASCII characters, a comma in a
/// bare key (two lines that a proxy has joined) and a broken quoted string are refused, so that
/// no request runs unprotected by mistake.
///
/// Its [terms](Terms::client): a repeat waits up to 10 s for the first run and must be the same
/// request; records are kept for a day.
///
/// ```
/// use tower_idempotency::channel::{IdempotencyKey, Scope};
///
/// let chat = IdempotencyKey::scoped_by(Scope::header("x-user"));
/// ```
///
/// With everything said:
///
/// ```
/// use std::time::Duration;
///
/// use tower_idempotency::Keep;
/// use tower_idempotency::channel::{IdempotencyKey, Scope};
///
/// let chat = IdempotencyKey::scoped_by(Scope::header("x-user"))
///     .named("chat")
///     .header("x-message-key")
///     .required()
///     .conversation(Scope::path_segment(1))
///     .canonical_json()
///     .wait(Duration::from_secs(5))
///     .keep(Keep::CONVERSATION);
/// ```
///
/// [structured-field string]: https://www.rfc-editor.org/rfc/rfc9651#section-3.3.3
#[derive(Clone, Debug)]
pub struct IdempotencyKey {
    terms: Terms,
    header: HeaderName,
    scope: Option<Scope>,
    conversation: Option<Scope>,
    missing: Missing,
}

/// What becomes of a request without a key.
#[derive(Clone, Copy, Debug)]
enum Missing {
    Pass,
    Refuse,
}

/// The longest key. Longer than any UUID, short enough to index.
const LONGEST: usize = 255;

impl IdempotencyKey {
    /// Keys that belong to who `scope` says. A request without a scope is refused.
    pub fn scoped_by(scope: Scope) -> Self {
        Self::with(Some(scope))
    }

    /// Keys that are shared by everybody: whoever guesses a key gets the recorded response.
    ///
    /// For a service with one client, or whose clients are one another's peers.
    pub fn unscoped() -> Self {
        Self::with(None)
    }

    fn with(scope: Option<Scope>) -> Self {
        Self {
            terms: Terms::client("web"),
            header: HeaderName::from_static("idempotency-key"),
            scope,
            conversation: None,
            missing: Missing::Pass,
        }
    }

    /// The channel's name. Default: `web`.
    ///
    /// Keys of two names never meet; changing the name forgets all that was recorded under it.
    pub fn named(mut self, name: &str) -> Self {
        self.terms.channel = name.into();
        self
    }

    /// The header that carries the key. Default: `idempotency-key`.
    ///
    /// # Panics
    /// If `name` is no header name in lower case.
    pub fn header(mut self, name: &'static str) -> Self {
        self.header = HeaderName::from_static(name);
        self
    }

    /// Refuses requests without a key (400). Default: they pass, unprotected and counted.
    pub fn required(mut self) -> Self {
        self.missing = Missing::Refuse;
        self
    }

    /// Where the conversation is named. Default: nowhere. A request that names none has none.
    pub fn conversation(mut self, conversation: Scope) -> Self {
        self.conversation = Some(conversation);
        self
    }

    /// A repeat is the same request if its body is the same JSON document, whatever its white
    /// space and the order of its members. Default: byte by byte.
    pub fn canonical_json(mut self) -> Self {
        self.terms.compare = Some(BodyForm::CanonicalJson);
        self
    }

    /// How long a repeat waits for the first run. Default: 10 s.
    pub fn wait(mut self, limit: Duration) -> Self {
        self.terms.wait = limit;
        self
    }

    /// How long records are kept. Default: a day.
    pub fn keep(mut self, keep: Keep) -> Self {
        self.terms.keep = keep;
        self
    }

    fn key_of<'a>(&self, head: &'a Parts) -> Result<Option<Cow<'a, str>>, Refusal> {
        let mut lines = head.headers.get_all(&self.header).iter();
        let Some(line) = lines.next() else {
            return Ok(None);
        };
        let key = match lines.next() {
            Some(_) => Err("occurs twice"),
            None => parse(line),
        };
        key.map(Some).map_err(|fault| {
            let detail = format!("the header {} {fault}", self.header);
            Refusal::new(Reason::MalformedKey, detail)
        })
    }
}

impl Channel for IdempotencyKey {
    fn terms(&self, _head: &Parts) -> &Terms {
        &self.terms
    }

    fn concern(&self, head: &Parts) -> Result<Concern, Refusal> {
        if head.method.is_safe() {
            return Ok(Concern::Pass);
        }
        match (self.key_of(head)?, self.missing) {
            (Some(_), _) => Ok(Concern::Read),
            (None, Missing::Pass) => Ok(Concern::NoKey),
            (None, Missing::Refuse) => Err(Refusal::new(
                Reason::MissingKey,
                format!("the header {} is required", self.header),
            )),
        }
    }

    fn deliveries(&self, head: &Parts, body: &[u8]) -> Result<Vec<Delivery>, Refusal> {
        let Some(key) = self.key_of(head)? else {
            return Ok(Vec::new());
        };
        let scope = match &self.scope {
            Some(scope) => scope.of(head, body)?,
            None => Cow::Borrowed(""),
        };
        let mut delivery = Delivery::new(Key::new(&self.terms.channel, &scope, &[key]));
        if let Some(conversation) = &self.conversation
            && let Some(id) = conversation.look(head, body)
        {
            delivery = delivery.conversation(Conversation::new(&self.terms.channel, &scope, &id));
        }
        Ok(vec![delivery])
    }
}

/// The key in a header value, or what is wrong with it.
fn parse(value: &HeaderValue) -> Result<Cow<'_, str>, &'static str> {
    let text = str::from_utf8(value.as_bytes().trim_ascii())
        .ok()
        .filter(|text| text.bytes().all(|byte| matches!(byte, b' '..=b'~')))
        .ok_or("has a character that is not printable ASCII")?;
    let key = match text.strip_prefix('"') {
        Some(rest) => unquote(rest)?,
        None if text.contains('"') => return Err("has a quote inside a bare key"),
        None if text.contains(',') => return Err("has a comma: it must hold one key"),
        None => Cow::Borrowed(text),
    };
    if key.trim().is_empty() {
        return Err("is blank");
    }
    if key.len() > LONGEST {
        return Err("is longer than 255 bytes");
    }
    Ok(key)
}

/// A structured-field string behind its opening quote: RFC 9651, section 4.2.5.
fn unquote(rest: &str) -> Result<Cow<'_, str>, &'static str> {
    let broken = "is a broken quoted string";
    let (inner, tail) = rest.split_once(['"', '\\']).ok_or(broken)?;
    if tail.is_empty() && rest.ends_with('"') {
        return Ok(Cow::Borrowed(inner));
    }
    let mut key = String::with_capacity(rest.len());
    let mut chars = rest.chars();
    loop {
        match chars.next().ok_or(broken)? {
            '"' if chars.as_str().is_empty() => return Ok(Cow::Owned(key)),
            '"' => return Err("has something behind its closing quote"),
            '\\' => key.push(
                chars
                    .next()
                    .filter(|c| matches!(c, '"' | '\\'))
                    .ok_or(broken)?,
            ),
            c => key.push(c),
        }
    }
}
