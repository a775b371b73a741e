//! JSON in one form, whatever the order of its members and its white space.

use std::borrow::Cow;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// Each level is scanned once more by the level above it, so the depth bounds the work.
const DEPTH: usize = 64;

/// The canonical form of a document: members sorted by name, no white space, strings as
/// `serde_json` writes them, numbers digit for digit. `None` if it is no JSON or too deep.
pub(crate) fn json(body: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(body).ok()?;
    let root: &RawValue = serde_json::from_str(text).ok()?;
    let mut out = Vec::with_capacity(body.len());
    write(root, DEPTH, &mut out)?;
    Some(out)
}

fn write(value: &RawValue, depth: usize, out: &mut Vec<u8>) -> Option<()> {
    let depth = depth.checked_sub(1)?;
    let text = value.get();
    match text.as_bytes().first()? {
        b'{' => {
            let Members(mut members) = serde_json::from_str(text).ok()?;
            // Stable, so that a name that occurs twice keeps the order of its values.
            members.sort_by(|(a, _), (b, _)| a.cmp(b));
            out.push(b'{');
            for (name, value) in members {
                serde_json::to_writer(&mut *out, &name).ok()?;
                out.push(b':');
                write(value, depth, out)?;
                out.push(b',');
            }
            out.push(b'}');
        }
        b'[' => {
            let elements: Vec<&RawValue> = serde_json::from_str(text).ok()?;
            out.push(b'[');
            for element in elements {
                write(element, depth, out)?;
                out.push(b',');
            }
            out.push(b']');
        }
        b'"' => {
            let Text(string) = serde_json::from_str(text).ok()?;
            serde_json::to_writer(out, &string).ok()?;
        }
        _ => out.extend_from_slice(text.as_bytes()),
    }
    Some(())
}

#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// The members of an object in their order, repeated names included.
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

struct MembersVisitor;

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some((Text(name), value)) = map.next_entry()? {
            members.push((name, value));
        }
        Ok(Members(members))
    }
}

#[cfg(test)]
mod tests {
    use super::json;

    #[test]
    fn order_white_space_and_escapes_do_not_matter() {
        let a = json(br#"{"b":[1,{"y":2,"x":"\u0041"}],"a":null}"#).unwrap();
        let b = json(b" { \"a\" : null , \"b\" : [ 1, {\"x\":\"A\",\"y\":2} ] } ").unwrap();
        assert_eq!(a, b);
    }

    /// Field case B51.
    #[test]
    fn values_that_differ_stay_different() {
        for (a, b) in [
            ("[1,2]", "[2,1]"),
            ("9007199254740993", "9007199254740992"),
            ("1", "1.0"),
            ("\"1\"", "1"),
            (r#"{"a":1,"a":2}"#, r#"{"a":2,"a":1}"#),
            ("{}", "[]"),
        ] {
            assert_ne!(
                json(a.as_bytes()).unwrap(),
                json(b.as_bytes()).unwrap(),
                "{a} {b}"
            );
        }
    }

    #[test]
    fn no_json_and_deep_nesting_have_no_canonical_form() {
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        for bad in ["", "{", "{\"a\":1} x", &deep] {
            assert_eq!(json(bad.as_bytes()), None);
        }
    }
}
