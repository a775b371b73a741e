//! Reads a text out of a request: who a key belongs to, or which conversation.

use std::any::type_name;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use http::header::HeaderName;
use http::request::Parts;
use percent_encoding::percent_decode_str;

use crate::channel::contract::{Reason, Refusal};
use crate::channel::json::path::Path;
use crate::channel::json::pick::Pick;
use crate::channel::path::{path_of, segment};
use crate::channel::text::check;
use crate::error::Error;

/// Reads a text out of a request: the account or user that a key belongs to.
///
/// Keys of two scopes never meet, so a user can neither suppress nor read what another user
/// sent. Take the scope from something that the client cannot choose: the user that the
/// authentication in front of the layer has put into the request's extensions, or a header that
/// a proxy of your own sets. A request whose scope is missing is refused; it never shares one
/// with everybody.
///
/// Conversations are read by the same type.
///
/// ```
/// use tower_idempotency::channel::{IdempotencyKey, Scope};
///
/// #[derive(Clone)]
/// struct User {
///     id: i64,
/// }
///
/// let by_header = IdempotencyKey::scoped_by(Scope::header("x-user"));
/// let by_user = IdempotencyKey::scoped_by(Scope::extension(|user: &User| user.id));
/// ```
#[derive(Clone)]
pub struct Scope(Source);

#[derive(Clone)]
enum Source {
    Fixed(Arc<str>),
    Header(HeaderName),
    Segment(usize),
    Json(Arc<Pick>),
    Body(Arc<str>, BodyFunction),
    Function(&'static str, Function),
}

type BodyFunction = Arc<dyn Fn(&[u8]) -> Result<Option<String>, Refusal> + Send + Sync>;
type Function = Arc<dyn Fn(&Parts) -> Option<String> + Send + Sync>;

impl Scope {
    /// The value of a request header that occurs once. Costs no allocation to read.
    ///
    /// # Panics
    /// If `name` is no header name in lower case. In a constant this is an error of the build.
    pub const fn header(name: &'static str) -> Self {
        Self(Source::Header(HeaderName::from_static(name)))
    }

    /// What `read` makes of the request extension `T`, such as the authenticated user.
    ///
    /// The layer that inserts the extension must run before this one.
    pub fn extension<T, S>(read: impl Fn(&T) -> S + Send + Sync + 'static) -> Self
    where
        T: Send + Sync + 'static,
        S: ToString,
    {
        let read = move |head: &Parts| head.extensions.get::<T>().map(|it| read(it).to_string());
        Self(Source::Function(type_name::<T>(), Arc::new(read)))
    }

    /// The `n`th segment of the path that the client asked for, counted from 0 and
    /// percent-decoded: in `/webhooks/telegram/bot7` segment 2 is `bot7`.
    ///
    /// See [`OriginalPath`](crate::channel::OriginalPath) for layers inside of a nested router.
    pub const fn path_segment(n: usize) -> Self {
        Self(Source::Segment(n))
    }

    /// The text at `path` in a JSON body. [`JsonPath`](crate::channel::JsonPath) says which paths
    /// there are.
    ///
    /// Where the path has wildcards, the request must have one text there. As the scope of a
    /// `JsonPath` it is read beside each message. Else it costs a pass over the body.
    ///
    /// # Errors
    /// If the path cannot be read; the error points at the character.
    pub fn json(path: &str) -> Result<Self, Error> {
        Ok(Self(Source::Json(Arc::new(Pick::new(path)?))))
    }

    /// What `read` makes of the request's head.
    pub fn by(read: impl Fn(&Parts) -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Source::Function("function", Arc::new(read)))
    }

    /// The same text for every request, for an endpoint that serves one account.
    pub fn fixed(name: &str) -> Self {
        Self(Source::Fixed(name.into()))
    }

    /// What `read` finds in the body; `what` says what that is.
    pub(crate) fn by_body(
        what: &str,
        read: impl Fn(&[u8]) -> Result<Option<String>, Refusal> + Send + Sync + 'static,
    ) -> Self {
        Self(Source::Body(what.into(), Arc::new(read)))
    }

    /// The scope of a request.
    ///
    /// # Errors
    /// [`Reason::MissingScope`] if the request has none, [`Reason::MalformedBody`] if it is to be
    /// read from a body that cannot be.
    pub(crate) fn of<'a>(&'a self, head: &'a Parts, body: &[u8]) -> Result<Cow<'a, str>, Refusal> {
        match self.find(head, body)? {
            Found::Text(text) => Ok(text),
            Found::Nothing => Err(self.is_missing()),
            Found::Many => Err(self.missing("occurs more than once")),
        }
    }

    /// The conversation that a request belongs to; `None` if the request names none.
    pub(crate) fn look<'a>(&'a self, head: &'a Parts, body: &[u8]) -> Option<Cow<'a, str>> {
        match self.find(head, body) {
            Ok(Found::Text(text)) => Some(text),
            Ok(Found::Nothing | Found::Many) | Err(_) => None,
        }
    }

    /// Says that the request has no scope.
    pub(crate) fn is_missing(&self) -> Refusal {
        self.missing("is missing or blank")
    }

    /// The path, if it is read from a JSON body.
    pub(crate) fn path(&self) -> Option<&Path> {
        match &self.0 {
            Source::Json(pick) => Some(pick.path()),
            Source::Fixed(_)
            | Source::Header(_)
            | Source::Segment(_)
            | Source::Body(..)
            | Source::Function(..) => None,
        }
    }

    fn find<'a>(&'a self, head: &'a Parts, body: &[u8]) -> Result<Found<'a>, Refusal> {
        let text = match &self.0 {
            Source::Fixed(name) => Some(Cow::Borrowed(&**name)),
            Source::Header(name) => return Ok(header(head, name)),
            Source::Segment(n) => segment(path_of(head), *n)
                .and_then(|segment| percent_decode_str(segment).decode_utf8().ok()),
            Source::Json(pick) => {
                let mut texts = pick.texts(body)?.into_iter();
                return Ok(match (texts.next(), texts.next()) {
                    (Some(text), None) => Found::Text(Cow::Owned(text)),
                    (Some(_), Some(_)) => Found::Many,
                    (None, _) => Found::Nothing,
                });
            }
            Source::Body(_, read) => read(body)?.map(Cow::Owned),
            Source::Function(_, read) => read(head).map(Cow::Owned),
        };
        if let Some(text) = &text {
            check(text)?;
        }
        Ok(Found::of(text))
    }

    fn missing(&self, how: &str) -> Refusal {
        let what = match &self.0 {
            Source::Fixed(_) => "the fixed scope".to_owned(),
            Source::Header(name) => format!("the header {name}"),
            Source::Segment(n) => format!("segment {n} of the path"),
            Source::Json(pick) => format!("{} in the body", pick.path()),
            Source::Body(what, _) => format!("{what} in the body"),
            // The function's name says nothing to a client; it is for `Debug`.
            Source::Function(..) => "the caller's identity".to_owned(),
        };
        Refusal::new(
            Reason::MissingScope,
            format!("{what}, which scopes the key, {how}"),
        )
    }
}

/// A path, as [`Scope::json`] makes one.
impl TryFrom<&str> for Scope {
    type Error = Error;

    fn try_from(path: &str) -> Result<Self, Error> {
        Self::json(path)
    }
}

enum Found<'a> {
    Text(Cow<'a, str>),
    Nothing,
    Many,
}

impl<'a> Found<'a> {
    fn of(text: Option<Cow<'a, str>>) -> Self {
        match text {
            Some(text) if !text.trim().is_empty() => Self::Text(text),
            Some(_) | None => Self::Nothing,
        }
    }
}

fn header<'a>(head: &'a Parts, name: &HeaderName) -> Found<'a> {
    let mut lines = head.headers.get_all(name).iter();
    let first = lines.next();
    if lines.next().is_some() {
        return Found::Many;
    }
    let text = first.and_then(|value| str::from_utf8(value.as_bytes()).ok());
    Found::of(text.map(|text| Cow::Borrowed(text.trim_ascii())))
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Source::Fixed(name) => write!(f, "Scope::fixed({name:?})"),
            Source::Header(name) => write!(f, "Scope::header({:?})", name.as_str()),
            Source::Segment(n) => write!(f, "Scope::path_segment({n})"),
            Source::Json(pick) => write!(f, "Scope::json({:?})", pick.path().to_string()),
            Source::Body(what, _) => write!(f, "Scope::by_body({what})"),
            Source::Function(of, _) => write!(f, "Scope::by({of})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;
    use crate::channel::path::OriginalPath;

    #[derive(Clone)]
    struct User(i64);

    fn head(uri: &str, user: &[&str]) -> Parts {
        let mut request = Request::builder().uri(uri);
        for user in user {
            request = request.header("x-user", *user);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn read(scope: &Scope, head: &Parts) -> Result<String, Reason> {
        scope
            .of(head, b"")
            .map(Cow::into_owned)
            .map_err(|refusal| refusal.reason())
    }

    #[test]
    fn a_header_is_read_if_it_occurs_once() {
        let scope = Scope::header("x-user");
        assert_eq!(read(&scope, &head("/", &["ann"])), Ok("ann".into()));
        for none in [&[][..], &[""], &["  "], &["ann", "bob"], &["ann", "ann"]] {
            assert_eq!(
                read(&scope, &head("/", none)),
                Err(Reason::MissingScope),
                "{none:?}"
            );
        }
    }

    #[test]
    fn an_extension_is_read_by_type() {
        let scope = Scope::extension(|user: &User| user.0);
        let mut head = head("/", &[]);
        assert_eq!(read(&scope, &head), Err(Reason::MissingScope));
        head.extensions.insert(User(7));
        assert_eq!(read(&scope, &head), Ok("7".into()));
    }

    #[test]
    fn a_path_segment_is_decoded_and_never_empty() {
        let scope = Scope::path_segment(1);
        assert_eq!(read(&scope, &head("/chat/a%20b/x", &[])), Ok("a b".into()));
        for none in ["/chat", "/chat/", "/chat//x", "/chat/%ff", "*"] {
            assert_eq!(
                read(&scope, &head(none, &[])),
                Err(Reason::MissingScope),
                "{none}"
            );
        }
    }

    #[test]
    fn the_path_is_the_one_that_the_client_asked_for() {
        let mut head = head("/5/x", &[]);
        head.extensions
            .insert(OriginalPath::new("/chat/5/x".parse().unwrap()));
        assert_eq!(read(&Scope::path_segment(0), &head), Ok("chat".into()));
    }

    #[test]
    fn a_refusal_names_what_is_missing() {
        let refusal = Scope::header("x-user")
            .of(&head("/", &[]), b"")
            .unwrap_err();
        assert!(refusal.detail().contains("x-user"), "{refusal}");
    }

    #[test]
    fn a_function_may_find_nothing() {
        let scope = Scope::by(|head| head.uri.query().map(str::to_owned));
        assert_eq!(read(&scope, &head("/?a", &[])), Ok("a".into()));
        assert_eq!(read(&scope, &head("/", &[])), Err(Reason::MissingScope));
    }
}
