//! Any sender that posts JSON, by a path to the ids.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use smallvec::SmallVec;

use crate::channel::contract::{Ack, Reason, Refusal, Reply, Terms};
use crate::channel::json::beside::Beside;
use crate::channel::json::fault::Fault;
use crate::channel::json::found::{Found, Message};
use crate::channel::json::path::{Path, Step};
use crate::channel::json::reader::{self, Base, Reader};
use crate::channel::json::shape::Shape;
use crate::channel::json::tree::Node;
use crate::channel::own::{Own, by_own};
use crate::channel::scope::Scope;
use crate::delivery::Delivery;
use crate::error::Error;
use crate::key::Key;
use crate::record::Keep;
use crate::verify::contract::Verify;
use crate::verify::unverified::Unverified;
use crate::verify::verified::Verified;

/// The channel of a sender that posts JSON: a path says where the ids are.
///
/// Paths are those of [RFC 9535] that name places one by one: child names (`.a`, `['a-b']`),
/// indices (`[0]`, `[-1]`) and wildcards (`[*]`, `.*`). Anything else is an error when the channel is
/// built, which points at the character.
///
/// An id is a string that is not blank, or an integer of any size, digit for digit. Null, `true`,
/// a fraction, an array and an object are none; a message without an id passes unprotected.
/// A member that is repeated on a path makes the request wrong, since readers disagree on which
/// one counts, and so does an id of more than 1024 bytes or with a control character.
///
/// Where a path has a wildcard, the request may carry many messages. Those that are done are cut
/// out before the handler runs: the innermost element of an array on the path goes with one comma, and
/// every other byte stays as it is.
///
/// It becomes a channel by [`verified_by`](Self::verified_by) or [`unverified`](Self::unverified);
/// its [terms](Terms::webhook) are those of a webhook.
///
/// ```
/// use tower_idempotency::channel::JsonPath;
///
/// # fn main() -> Result<(), tower_idempotency::Error> {
/// let ids = "$.entry[*].changes[*].value.messages[*].id";
/// let shop = JsonPath::new("shop", ids)?.unverified();
/// # Ok(())
/// # }
/// ```
///
/// With everything said. The path leads to the message, and the parts of its id are beside one
/// another. Scope and conversation may stand further out:
///
/// ```
/// # #[cfg(feature = "verify")] {
/// use std::time::Duration;
///
/// use http::HeaderName;
/// use tower_idempotency::Keep;
/// use tower_idempotency::channel::JsonPath;
/// use tower_idempotency::verify::HmacSignature;
///
/// # fn main() -> Result<(), tower_idempotency::Error> {
/// let header = HeaderName::from_static("x-shop-signature");
/// let receipts = JsonPath::new("receipts", "$.pages[*].receipts[*]")?
///     .id([".id", ".status"])?
///     .scope("$.pages[*].account")?
///     .conversation("$.pages[*].receipts[*].chat.id")?
///     .required()
///     .wait(Duration::from_secs(2))
///     .keep(Keep::For(Duration::from_hours(72)))
///     .verified_by(HmacSignature::sha256(header, "secret"));
/// # Ok(())
/// # }
/// # }
/// ```
///
/// [RFC 9535]: https://www.rfc-editor.org/rfc/rfc9535
#[derive(Clone)]
pub struct JsonPath {
    base: Base,
    text: String,
    path: Path,
    parts: Vec<Path>,
    scope: Option<Beside>,
    conversation: Option<Beside>,
    missing: Missing,
}

/// What becomes of a request without an id.
#[derive(Clone, Copy, Debug)]
enum Missing {
    Pass,
    Refuse,
}

impl JsonPath {
    /// A channel called `name`, whose ids are at `path`.
    ///
    /// # Errors
    /// If `path` cannot be read, or uses what is not supported. The error's text shows the path
    /// with a caret under the character.
    pub fn new(name: &str, path: &str) -> Result<Self, Error> {
        let channel = Self {
            base: Base::new(Terms::webhook(name), &[""; 0]),
            text: path.to_owned(),
            path: Path::parse(path)?,
            parts: vec![Path::parse("@")?],
            scope: None,
            conversation: None,
            missing: Missing::Pass,
        };
        Ok(channel.reshaped())
    }

    /// The parts of the id, relative to the place that the path leads to: `.status`, `.from.id`.
    /// Default: the text at that place.
    ///
    /// A message without one of them has no id. Two ids are equal only if all their parts are.
    ///
    /// # Errors
    /// If a path cannot be read, has a wildcard, or there is none.
    pub fn id(mut self, parts: impl IntoIterator<Item: AsRef<str>>) -> Result<Self, Error> {
        let parts = parts
            .into_iter()
            .map(|part| Path::parse_single(part.as_ref()));
        self.parts = parts.collect::<Result<_, _>>()?;
        if self.parts.is_empty() {
            return Err(Error::misconfigured("an id has at least one part"));
        }
        Ok(self.reshaped())
    }

    /// The account or user that the ids are unique in: a path, or a [`Scope`]. Default: none, the
    /// ids are unique in the whole channel. A message whose scope is missing is refused.
    ///
    /// A path that begins as the one of the ids does means the same elements, so that the scope
    /// may stand beside the message or further out; one that begins with `.` is relative to the
    /// message.
    ///
    /// # Errors
    /// If the path cannot be read, or has a wildcard that the path of the ids does not share.
    pub fn scope<S>(mut self, scope: S) -> Result<Self, Error>
    where
        S: TryInto<Scope>,
        Error: From<S::Error>,
    {
        self.scope = Some(Beside::new(scope.try_into()?, &self.path)?);
        Ok(self.reshaped())
    }

    /// The conversation that a message belongs to: a path, or a [`Scope`], read as the scope is.
    /// Default: none. A message that names none has none.
    ///
    /// # Errors
    /// If the path cannot be read, or has a wildcard that the path of the ids does not share.
    pub fn conversation<S>(mut self, conversation: S) -> Result<Self, Error>
    where
        S: TryInto<Scope>,
        Error: From<S::Error>,
    {
        self.conversation = Some(Beside::new(conversation.try_into()?, &self.path)?);
        Ok(self.reshaped())
    }

    /// The channel, with each request checked by `verifier` before it is read. Called last.
    pub fn verified_by<V: Verify>(self, verifier: V) -> Verified<Self, V> {
        Verified::own(self, verifier)
    }

    /// The channel, which believes every request: whoever guesses an id suppresses the message.
    /// For requests that were verified in front of the layer. Called last.
    pub fn unverified(self) -> Unverified<Self> {
        Unverified::new(self)
    }

    /// Refuses requests in which there is no id, and bodies that are no JSON (400). Default: they
    /// pass, unprotected.
    pub fn required(mut self) -> Self {
        self.missing = Missing::Refuse;
        self
    }

    /// How long a repeat waits for the first run. Default: 4 s. Choose less than the sender does.
    pub fn wait(mut self, limit: Duration) -> Self {
        self.base.terms.wait = limit;
        self
    }

    /// How long records are kept. Default: eight days. Choose longer than the sender repeats.
    pub fn keep(mut self, keep: Keep) -> Self {
        self.base.terms.keep = keep;
        self
    }

    /// Whether the sender reads the body of the answer. Default: [`Reply::Ack`], it does not.
    pub fn reply(mut self, reply: Reply) -> Self {
        self.base.terms.reply = reply;
        self
    }

    /// The answer that tells the sender "received". Default: 200 without a body.
    pub fn ack(mut self, ack: Ack) -> Self {
        self.base.terms.ack = ack;
        self
    }

    fn reshaped(mut self) -> Self {
        let ids = self.parts.iter().map(|part| self.path.join(part));
        let beside = self.scope.iter().chain(&self.conversation);
        let paths: Vec<_> = ids
            .chain(beside.filter_map(|it| it.path().cloned()))
            .collect();
        self.base.shape = Shape::of(&paths);
        self
    }
}

impl Reader for JsonPath {
    fn base(&self) -> &Base {
        &self.base
    }

    fn find(&self, head: &Parts, root: Node<'_>, found: &mut Found<'_>) -> Result<(), Refusal> {
        let mut trail = SmallVec::from_buf_and_len([root; SHALLOW], 1);
        let mut search = Search {
            channel: self,
            head,
            found,
            any: false,
        };
        search.descend(self.path.steps(), &mut trail, root)?;
        match (search.any, self.missing) {
            (false, Missing::Refuse) => Err(Refusal::new(
                Reason::MissingKey,
                format!("the body has no id at {}", self.text),
            )),
            (true, _) | (false, Missing::Pass) => Ok(()),
        }
    }

    fn not_json(&self, line: usize, column: usize) -> Result<(), Refusal> {
        match self.missing {
            Missing::Pass => Ok(()),
            Missing::Refuse => Err(Fault::NotJson(line, column).into()),
        }
    }
}

/// The places on the way to a message, root first.
type Trail<'t> = SmallVec<[Node<'t>; SHALLOW]>;

/// As deep as most paths go.
const SHALLOW: usize = 10;

/// A walk along the path of a channel.
struct Search<'s, 'c> {
    channel: &'s JsonPath,
    head: &'s Parts,
    found: &'s mut Found<'c>,
    any: bool,
}

impl Search<'_, '_> {
    /// Goes down `steps` from the last place of `trail`. `element` is what goes if the message
    /// is cut out.
    fn descend<'t>(
        &mut self,
        steps: &[Step],
        trail: &mut Trail<'t>,
        element: Node<'t>,
    ) -> Result<(), Refusal> {
        let Some(here) = trail.last().copied() else {
            return Ok(());
        };
        let Some((step, rest)) = steps.split_first() else {
            return self.message(here, trail, element);
        };
        match step {
            Step::Name(_) | Step::Index(_) => {
                trail.push(here.follow(std::slice::from_ref(step)));
                self.descend(rest, trail, element)?;
                trail.pop();
            }
            Step::Each => {
                for node in here.children() {
                    trail.push(node);
                    self.descend(rest, trail, node)?;
                    trail.pop();
                }
            }
        }
        Ok(())
    }

    fn message(
        &mut self,
        here: Node<'_>,
        trail: &[Node<'_>],
        element: Node<'_>,
    ) -> Result<(), Refusal> {
        let channel = self.channel;
        let parts = channel.parts.iter();
        let parts = parts.map(|part| here.follow(part.steps()).text());
        let Some(id) = parts.collect::<Option<SmallVec<[_; 4]>>>() else {
            return Ok(());
        };
        self.any = true;
        let scope = match &channel.scope {
            Some(scope) => Some(scope.required(self.head, trail)?),
            None => None,
        };
        let conversation = channel
            .conversation
            .as_ref()
            .and_then(|it| it.text(self.head, trail));
        let message = Message {
            scope: scope.as_deref().unwrap_or_default(),
            id: &id,
            conversation: conversation.as_deref(),
            sent_at: None,
        };
        self.found.add(element, message)
    }
}

impl Own for JsonPath {
    fn terms(&self) -> &Terms {
        &self.base.terms
    }

    fn deliveries(&self, head: &Parts, body: &[u8]) -> Result<Vec<Delivery>, Refusal> {
        reader::deliveries(self, head, body)
    }

    fn without(&self, head: &Parts, body: &Bytes, gone: &[&Key]) -> Option<Bytes> {
        let left = reader::without(self, head, body, gone)?;
        (!self.counts() || self.leaves_the_rest(head, (body, &left), gone)).then_some(left)
    }
}

impl JsonPath {
    /// Whether a scope or conversation is found by its place among elements, which may be cut out.
    fn counts(&self) -> bool {
        let beside = self.scope.iter().chain(&self.conversation);
        let mut steps = beside.filter_map(Beside::path).flat_map(Path::steps);
        steps.any(|step| matches!(step, Step::Index(_)))
    }

    /// Whether the messages that are left are who they were.
    fn leaves_the_rest(&self, head: &Parts, (all, left): (&[u8], &[u8]), gone: &[&Key]) -> bool {
        let all = reader::deliveries(self, head, all);
        let left = reader::deliveries(self, head, left);
        all.ok().zip(left.ok()).is_some_and(|(mut all, left)| {
            all.retain(|delivery| !gone.contains(&delivery.key()));
            all == left
        })
    }
}

by_own!(JsonPath);

impl fmt::Debug for JsonPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JsonPath")
            .field("channel", &self.base.terms.channel)
            .field("path", &self.text)
            .finish_non_exhaustive()
    }
}
