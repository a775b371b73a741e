//! A request as text, so that seeds can be read and mutations stay requests.

use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Request, Uri};

/// `word METHOD path`, lines of headers, an empty line, the body. What is no such line is skipped.
pub(crate) struct Asked<'a> {
    /// The first word: what the request is for.
    pub(crate) word: &'a str,
    pub(crate) head: Parts,
    pub(crate) body: &'a [u8],
}

impl<'a> Asked<'a> {
    pub(crate) fn parse(data: &'a [u8]) -> Self {
        let (line, mut rest) = line(data);
        let mut words = std::str::from_utf8(line).unwrap_or_default().split(' ');
        let word = words.next().unwrap_or_default();
        let mut head = Request::new(()).into_parts().0;
        let method = words.next().and_then(|word| word.parse().ok());
        head.method = method.unwrap_or(Method::POST);
        let uri = words.next().and_then(|word| word.parse::<Uri>().ok());
        head.uri = uri.unwrap_or_default();
        while !rest.is_empty() {
            let (header, behind) = self::line(rest);
            rest = behind;
            if header.is_empty() {
                break;
            }
            if let Some((name, value)) = pair(header) {
                head.headers.append(name, value);
            }
        }
        Self {
            word,
            head,
            body: rest,
        }
    }
}

/// The first line without its end, and what is behind it.
pub(crate) fn line(data: &[u8]) -> (&[u8], &[u8]) {
    match data.iter().position(|byte| *byte == b'\n') {
        Some(at) => (&data[..at], &data[at + 1..]),
        None => (data, &[]),
    }
}

fn pair(line: &[u8]) -> Option<(HeaderName, HeaderValue)> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    let name = HeaderName::from_bytes(&line[..colon]).ok()?;
    let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii()).ok()?;
    Some((name, value))
}
