//! The channel of a route.

use std::ops::Range;

use http::HeaderName;
use toml::Spanned;
use tower_idempotency::channel::{ByPath, IdempotencyKey, JsonPath, Scope};
use tower_idempotency::verify::{HmacSignature, Verified};

use crate::check::Secrets;
use crate::fault::Faults;
use crate::file::{self, Route};
use crate::presets::{self, Check, Mount, verify};

/// The route's channel at its path; none if the route has none, or a fault.
pub(crate) fn of(route: &Spanned<Route>, secrets: Secrets<'_>, faults: &mut Faults<'_>) -> ByPath {
    let mut builder = Builder {
        at: route.span(),
        route: route.get_ref(),
        secrets,
        faults,
    };
    builder.build().unwrap_or_default()
}

struct Builder<'a, 'f> {
    at: Range<usize>,
    route: &'a Route,
    secrets: Secrets<'a>,
    faults: &'a mut Faults<'f>,
}

impl Builder<'_, '_> {
    fn build(&mut self) -> Option<ByPath> {
        let path = self.route.path.get_ref().clone();
        let channels = ByPath::new();
        let channel = match (&self.route.channel, &self.route.json_path) {
            (None, None) => {
                self.only_for_channels();
                return None;
            }
            (Some(channel), Some(_)) => {
                self.fault(
                    channel.span(),
                    "channel",
                    "stands beside a json_path: take one",
                );
                return None;
            }
            (None, Some(ids)) => return Some(channels.at(path, self.json_path(ids)?)),
            (Some(channel), None) => channel,
        };
        let name = channel.get_ref().as_str();
        if name == "idempotency-key" {
            return Some(channels.at(path, self.idempotency_key()?));
        }
        let Some(preset) = presets::named(name) else {
            let known = presets::names();
            let what = format!("{name:?} is none of idempotency-key, {known}");
            self.fault(channel.span(), "channel", &what);
            return None;
        };
        let check = self.check(preset.check);
        match preset.mount {
            Mount::Alone(mount) => {
                if let Some(scope) = &self.route.scope {
                    let what = "this channel reads it from the message";
                    self.fault(scope.span(), "scope", what);
                }
                Some(mount(channels, path, check?))
            }
            Mount::Scoped(what_for, mount) => {
                let scope = self.scope(what_for);
                Some(mount(channels, path, check?, scope?))
            }
        }
    }

    fn json_path(&mut self, ids: &Spanned<String>) -> Option<Verified<JsonPath, Check>> {
        let name = self.route.name.as_ref().map(Spanned::get_ref);
        if name.is_none() {
            self.missing("name", "is missing beside json_path");
        }
        let channel = JsonPath::new(name.map_or("", String::as_str), ids.get_ref());
        if let Err(error) = &channel {
            self.fault(ids.span(), "json_path", &error.to_string());
        }
        let check = self.signed();
        let scope = match &self.route.scope {
            Some(_) => Some(self.scope("")?),
            None => None,
        };
        let mut channel = channel.ok()?;
        if let Some(scope) = scope {
            channel = channel.scope(scope).ok()?;
        }
        if is_set(self.route.required.as_ref()) {
            channel = channel.required();
        }
        name?;
        Some(channel.verified_by(check?))
    }

    /// The verifier of a sender that has no channel of its own: HMAC-SHA256 in a header.
    fn signed(&mut self) -> Option<Check> {
        let Some(header) = &self.route.signature_header else {
            if self.route.secret_env.is_some() {
                self.missing("signature_header", "is missing beside secret_env");
                return None;
            }
            return self.check(|_| None);
        };
        let Ok(name) = HeaderName::from_bytes(header.get_ref().as_bytes()) else {
            self.fault(header.span(), "signature_header", "is no name of a header");
            return None;
        };
        let prefix = self.route.signature_prefix.as_ref();
        let prefix = prefix.map_or("", |prefix| lasting(prefix.get_ref()));
        self.check(|secret| Some(verify(HmacSignature::sha256(name, secret).prefix(prefix))))
    }

    fn idempotency_key(&mut self) -> Option<IdempotencyKey> {
        for (field, given) in [
            (
                "secret_env",
                self.route.secret_env.as_ref().map(Spanned::span),
            ),
            (
                "unverified",
                self.route.unverified.as_ref().map(Spanned::span),
            ),
        ] {
            if let Some(span) = given {
                self.fault(span, field, "clients of one's own sign nothing");
            }
        }
        let is_unscoped = is_set(self.route.unscoped.as_ref());
        let channel = match &self.route.scope {
            Some(scope) if is_unscoped => {
                self.fault(scope.span(), "scope", "stands beside unscoped: take one");
                return None;
            }
            None if is_unscoped => IdempotencyKey::unscoped(),
            Some(_) | None => IdempotencyKey::scoped_by(self.scope("says whose key it is")?),
        };
        Some(if is_set(self.route.required.as_ref()) {
            channel.required()
        } else {
            channel
        })
    }

    /// The route's verifier: by its secret, or none if that is spelled out.
    fn check(&mut self, by: impl FnOnce(String) -> Option<Check>) -> Option<Check> {
        let unverified = is_set(self.route.unverified.as_ref());
        let Some(name) = &self.route.secret_env else {
            if unverified {
                return Some(Box::new(|_, _| Ok(())));
            }
            let what = "is missing. Whoever can guess an id suppresses the real message: \
                        name the variable of the sender's secret, or say unverified = true";
            self.missing("secret_env", what);
            return None;
        };
        if unverified {
            self.fault(
                name.span(),
                "secret_env",
                "stands beside unverified: take one",
            );
            return None;
        }
        let Some(secret) = (self.secrets)(name.get_ref()).filter(|secret| !secret.is_empty())
        else {
            let what = format!("the environment has no {}", name.get_ref());
            self.fault(name.span(), "secret_env", &what);
            return None;
        };
        let check = by(secret);
        if check.is_none() {
            let what = format!("{} holds no secret of this sender's form", name.get_ref());
            self.fault(name.span(), "secret_env", &what);
        }
        check
    }

    fn scope(&mut self, what_for: &str) -> Option<Scope> {
        let Some(scope) = &self.route.scope else {
            let what = format!("is missing; it {what_for}");
            self.missing("scope", &what);
            return None;
        };
        match scope.get_ref() {
            file::Scope::Header(name) => {
                let name = HeaderName::from_bytes(name.as_bytes());
                let Ok(name) = name else {
                    self.fault(scope.span(), "scope.header", "is no name of a header");
                    return None;
                };
                Some(Scope::header(lasting(name.as_str())))
            }
            file::Scope::Segment(n) => Some(Scope::path_segment(*n)),
            file::Scope::Fixed(name) => Some(Scope::fixed(name)),
        }
    }

    /// Fields without a channel that they could be for.
    fn only_for_channels(&mut self) {
        let route = self.route;
        for (field, given) in [
            ("name", route.name.as_ref().map(Spanned::span)),
            ("scope", route.scope.as_ref().map(Spanned::span)),
            ("secret_env", route.secret_env.as_ref().map(Spanned::span)),
            ("keep", route.keep.as_ref().map(Spanned::span)),
            ("required", route.required.as_ref().map(Spanned::span)),
        ] {
            if let Some(span) = given {
                self.fault(span, field, "the route has no channel and no json_path");
            }
        }
    }

    /// A fault of a field that is not there: the table is named in its place.
    fn missing(&mut self, field: &str, what: &str) {
        self.fault(self.at.clone(), field, what);
    }

    fn fault(&mut self, span: Range<usize>, field: &str, what: &str) {
        self.faults.add(span, &format!("route.{field}"), what);
    }
}

fn is_set(value: Option<&Spanned<bool>>) -> bool {
    value.is_some_and(|value| *value.get_ref())
}

/// A text that lasts as long as the process, as the settings do.
fn lasting(text: &str) -> &'static str {
    text.to_owned().leak()
}
