//! Reads fields out of a form.

use std::borrow::Cow;

use http::header::CONTENT_TYPE;
use http::request::Parts;

use crate::channel::contract::{Reason, Refusal};

/// The values of the fields called `names` in an urlencoded form; `None` for those that are
/// missing. One pass over the body, whatever it holds.
///
/// # Errors
/// If a field occurs twice and says two things, or is no UTF-8.
pub(crate) fn fields<'a>(
    body: &'a [u8],
    names: &[&str],
) -> Result<Vec<Option<Cow<'a, str>>>, Refusal> {
    let mut values = vec![None; names.len()];
    for (name, value) in form_urlencoded::parse(body) {
        let slots = names.iter().zip(&mut values);
        for (_, slot) in slots.filter(|(wanted, _)| **wanted == name) {
            *slot = Some(agreed(&name, slot.take(), value.clone())?);
        }
    }
    Ok(values)
}

fn agreed<'a>(
    name: &str,
    first: Option<Cow<'a, str>>,
    value: Cow<'a, str>,
) -> Result<Cow<'a, str>, Refusal> {
    // What is no UTF-8 was decoded to this character, and two such values must not become one.
    if value.contains('\u{fffd}') {
        return Err(wrong(format!("the field `{name}` is no UTF-8")));
    }
    match first {
        Some(first) if first != value => Err(wrong(format!("the field `{name}` says two things"))),
        Some(_) | None => Ok(value),
    }
}

fn wrong(detail: String) -> Refusal {
    Refusal::new(Reason::MalformedBody, detail)
}

/// Whether the head says that the body is an urlencoded form.
pub(crate) fn is_form(head: &Parts) -> bool {
    let kind = head.headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next());
    kind.is_some_and(|kind| {
        kind.trim()
            .eq_ignore_ascii_case("application/x-www-form-urlencoded")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> Result<Vec<Option<Cow<'_, str>>>, Reason> {
        fields(body.as_bytes(), &["id", "to"]).map_err(|refusal| refusal.reason())
    }

    #[test]
    fn fields_are_decoded_and_found_anywhere() {
        let found = read("a=1&to=x+y%2B&&id=%C3%BC&b").unwrap();
        assert_eq!(found, [Some("ü".into()), Some("x y+".into())]);
        assert_eq!(read("").unwrap(), [None, None]);
        assert_eq!(read("ID=1&%69d=2").unwrap(), [Some("2".into()), None]);
    }

    #[test]
    fn a_field_may_be_there_twice_if_it_says_one_thing() {
        assert!(read("id=1&id=1").is_ok());
        assert_eq!(read("id=1&id=2"), Err(Reason::MalformedBody));
        assert!(read("other=1&other=2").is_ok());
    }

    #[test]
    fn a_value_that_is_no_text_is_refused_where_it_is_read() {
        assert_eq!(read("id=%ff"), Err(Reason::MalformedBody));
        assert!(read("other=%ff").is_ok());
    }
}
