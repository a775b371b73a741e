//! Whether a recorded answer is in a coding that its repeat accepts.

use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, HeaderName, VARY};
use http::{HeaderMap, HeaderValue};

use crate::policy::Protocol;

const GRPC_ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
const GRPC_ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");

/// The codings that a request accepts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Accepted {
    /// The header's lines. Most requests have one, which then costs no allocation.
    first: Option<HeaderValue>,
    others: Vec<HeaderValue>,
}

impl Accepted {
    /// What a request says about it.
    pub(crate) fn by(headers: &HeaderMap, protocol: Protocol) -> Self {
        let name = match protocol {
            Protocol::Http => ACCEPT_ENCODING,
            Protocol::Grpc | Protocol::GrpcWeb => GRPC_ACCEPT_ENCODING,
        };
        let mut lines = headers.get_all(name).iter().cloned();
        Self {
            first: lines.next(),
            others: lines.collect(),
        }
    }

    /// Whether an answer with these headers can be given to the request.
    ///
    /// A request that says nothing accepts every coding ([RFC 9110, section 12.5.3]), and yet a
    /// client that says nothing mostly knows none. It is given what it was given the first time: an
    /// answer whose `Vary` shows that its coding was chosen by the first request is none for it.
    ///
    /// [RFC 9110, section 12.5.3]: https://www.rfc-editor.org/rfc/rfc9110#section-12.5.3
    pub(crate) fn admits(&self, answer: &HeaderMap, protocol: Protocol) -> bool {
        let (coding, silence_admits) = match protocol {
            Protocol::Http => (CONTENT_ENCODING, !is_chosen_by_coding(answer)),
            Protocol::Grpc | Protocol::GrpcWeb => (GRPC_ENCODING, false),
        };
        let mut codings = answer.get_all(coding).iter().flat_map(items);
        match self.first {
            None if silence_admits => true,
            None => codings.all(is_identity),
            Some(_) => codings.all(|coding| self.names(coding)),
        }
    }

    fn names(&self, coding: &str) -> bool {
        let lines = self.first.iter().chain(&self.others);
        let mut any = is_identity(coding);
        for item in lines.flat_map(items) {
            let (name, weight) = weighed(item);
            if is_same(name, coding) {
                return weight;
            }
            if name == "*" {
                any = weight;
            }
        }
        any
    }
}

fn is_chosen_by_coding(answer: &HeaderMap) -> bool {
    let mut names = answer.get_all(VARY).iter().flat_map(items);
    names.any(|name| name == "*" || name.eq_ignore_ascii_case(ACCEPT_ENCODING.as_str()))
}

/// The items of a comma-separated list. A line that is no text has none.
fn items(line: &HeaderValue) -> impl Iterator<Item = &str> {
    let text = line.to_str().unwrap_or_default();
    text.split(',')
        .map(str::trim)
        .filter(|item| !item.is_empty())
}

/// A coding, and whether its weight is over 0.
fn weighed(item: &str) -> (&str, bool) {
    let Some((name, parameters)) = item.split_once(';') else {
        return (item, true);
    };
    let weight = parameters.trim().strip_prefix("q=");
    let is_zero = weight.is_some_and(|q| q.trim().parse() == Ok(0.0));
    (name.trim(), !is_zero)
}

fn is_identity(coding: &str) -> bool {
    coding.eq_ignore_ascii_case("identity")
}

/// `x-gzip` is another name of `gzip` (RFC 9110, section 8.4.1.3).
fn is_same(one: &str, other: &str) -> bool {
    let plain = |coding: &str| coding.to_ascii_lowercase();
    let short = |coding: &str| match plain(coding).strip_prefix("x-") {
        Some(rest) => rest.to_owned(),
        None => plain(coding),
    };
    short(one) == short(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in lines {
            map.append(*name, HeaderValue::from_static(value));
        }
        map
    }

    fn admits(accepted: &[&'static str], coding: &'static str) -> bool {
        let lines: Vec<_> = accepted.iter().map(|v| ("accept-encoding", *v)).collect();
        let answer = headers(&[("content-encoding", coding), ("vary", "accept-encoding")]);
        Accepted::by(&headers(&lines), Protocol::Http).admits(&answer, Protocol::Http)
    }

    #[test]
    fn a_coding_must_be_named_or_starred_and_not_excluded() {
        for accepted in [
            "gzip",
            "br, gzip;q=0.5",
            "GZIP",
            "*",
            "x-gzip",
            "br, *;q=0.1",
        ] {
            assert!(admits(&[accepted], "gzip"), "{accepted}");
        }
        for accepted in ["br", "identity", "gzip;q=0", "gzip; q=0.0, *", "*;q=0", ""] {
            assert!(!admits(&[accepted], "gzip"), "{accepted}");
        }
        assert!(admits(&["br", "gzip"], "gzip"), "two lines");
        assert!(!admits(&["gzip"], "gzip, br"), "two codings");
        assert!(admits(&["gzip, br"], "gzip, br"), "two codings");
    }

    #[test]
    fn an_answer_without_a_coding_is_for_everybody() {
        for accepted in [&[][..], &["gzip"], &["identity;q=0, gzip"]] {
            let lines: Vec<_> = accepted.iter().map(|v| ("accept-encoding", *v)).collect();
            let accepted = Accepted::by(&headers(&lines), Protocol::Http);
            assert!(accepted.admits(&headers(&[]), Protocol::Http));
        }
    }

    #[test]
    fn a_request_that_says_nothing_gets_a_coding_only_where_it_was_not_chosen() {
        assert!(!admits(&[], "gzip"));
        assert!(admits(&[], "identity"));
        let silent = Accepted::default();
        for (vary, admitted) in [
            ("origin", true),
            ("origin, Accept-Encoding", false),
            ("*", false),
        ] {
            let answer = headers(&[("content-encoding", "gzip"), ("vary", vary)]);
            assert_eq!(silent.admits(&answer, Protocol::Http), admitted, "{vary}");
        }
    }

    #[test]
    fn grpc_has_headers_of_its_own_and_silence_accepts_nothing() {
        let answer = headers(&[("grpc-encoding", "gzip")]);
        let asks = |lines| Accepted::by(&headers(lines), Protocol::Grpc);
        assert!(asks(&[("grpc-accept-encoding", "identity,gzip")]).admits(&answer, Protocol::Grpc));
        assert!(!asks(&[("grpc-accept-encoding", "identity")]).admits(&answer, Protocol::Grpc));
        assert!(!asks(&[("accept-encoding", "gzip")]).admits(&answer, Protocol::Grpc));
        assert!(asks(&[]).admits(&headers(&[]), Protocol::Grpc));
    }
}
