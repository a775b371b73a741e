//! JSON paths: any text is a path or an error that points at it, any body has an answer, and the
//! ids are those that a plain walk over the document finds.

use std::fmt;

use http::Request;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use tower_idempotency::Delivery;
use tower_idempotency::channel::{Channel, JsonPath, Scope};

use crate::channels::owes;
use crate::request::line;

/// Three lines are the path of the messages, a part of the id and the scope; the rest is a body.
pub fn check(data: &[u8]) {
    let (path, rest) = line(data);
    let (part, rest) = line(rest);
    let (scope, body) = line(rest);
    let text = |line| std::str::from_utf8(line).unwrap_or_default();
    anything(text(path), text(part), text(scope), body);
    walked(body);
}

/// A channel of any paths that can be read gives an answer.
fn anything(path: &str, part: &str, scope: &str, body: &[u8]) {
    let Ok(channel) = JsonPath::new("json", path) else {
        let error = JsonPath::new("json", path).map(drop).expect_err("an error");
        assert!(error.to_string().ends_with('^'), "{error}");
        return;
    };
    let channel = match channel.clone().id([part]) {
        Ok(with_part) => with_part,
        Err(_) => channel,
    };
    let channel = match channel.clone().scope(scope) {
        Ok(scoped) => scoped,
        Err(_) => channel,
    };
    let channel = match Scope::json(scope).map(|it| channel.clone().conversation(it)) {
        Ok(Ok(named)) => named,
        Ok(Err(_)) | Err(_) => channel,
    };
    let head = Request::post("/").body(()).expect("a head").into_parts().0;
    owes(&channel.unverified(), &head, body, 0x5555_5555_5555_5555);
}

/// The ids at one path are those that another reader finds there.
fn walked(body: &[u8]) {
    let channel = JsonPath::new("json", "$.e[*].m[*].id").expect("a path");
    let head = Request::post("/").body(()).expect("a head").into_parts().0;
    let found = channel.unverified().deliveries(&head, body);
    let found = found.map(|all| {
        let ids = all.iter().map(Delivery::key);
        ids.map(|key| key.id().to_owned()).collect::<Vec<_>>()
    });
    let agrees = match (&found, ids(body)) {
        (Ok(found), Ok(expected)) => *found == expected,
        (Err(_), Err(Fault::Refused | Fault::NotJson)) => true,
        // Whether the fault or the end of the JSON shows first is nobody's concern.
        (Ok(found), Err(Fault::NotJson)) => found.is_empty(),
        (Ok(_), Err(Fault::Refused)) | (Err(_), Ok(_)) => false,
    };
    assert!(agrees, "{found:?} in {}", body.escape_ascii());
}

enum Fault {
    NotJson,
    Refused,
}

/// The ids in the order of their first appearance, written as a key writes them.
fn ids(body: &[u8]) -> Result<Vec<String>, Fault> {
    let mut ids: Vec<String> = Vec::new();
    walk(body, &mut ids)?;
    if ids.iter().any(|id| id.len() > 1024) {
        return Err(Fault::Refused);
    }
    let mut once: Vec<String> = Vec::new();
    for id in ids {
        let id = id.replace('\\', "\\\\").replace('|', "\\|");
        if !once.contains(&id) {
            once.push(id);
        }
    }
    Ok(once)
}

fn walk(body: &[u8], ids: &mut Vec<String>) -> Result<(), Fault> {
    let text = std::str::from_utf8(body).map_err(|_| Fault::NotJson)?;
    let root: &RawValue = serde_json::from_str(text).map_err(|_| Fault::NotJson)?;
    let Some(entries) = member(root, "e")? else {
        return Ok(());
    };
    for entry in children(entries)? {
        let Some(messages) = member(entry, "m")? else {
            continue;
        };
        for message in children(messages)? {
            if let Some(id) = member(message, "id")? {
                ids.extend(id_text(id)?);
            }
        }
    }
    Ok(())
}

/// A string that is not blank, or the digits of an integer.
fn id_text(value: &RawValue) -> Result<Option<String>, Fault> {
    let raw = value.get();
    if raw.starts_with('"') {
        let text: String = serde_json::from_str(raw).map_err(|_| Fault::NotJson)?;
        if text.contains(|c: char| c.is_ascii_control()) {
            return Err(Fault::Refused);
        }
        return Ok(Some(text).filter(|text| !text.trim_ascii().is_empty()));
    }
    let digits = raw.strip_prefix('-').unwrap_or(raw);
    let integer = digits.bytes().all(|byte| byte.is_ascii_digit());
    Ok(integer.then(|| raw.to_owned()))
}

fn member<'a>(object: &'a RawValue, name: &str) -> Result<Option<&'a RawValue>, Fault> {
    let mut found = None;
    for (other, value) in members(object)? {
        if other == name && found.replace(value).is_some() {
            return Err(Fault::Refused);
        }
    }
    Ok(found)
}

/// What a wildcard selects. Members of one name are a fault there, too.
fn children(value: &RawValue) -> Result<Vec<&RawValue>, Fault> {
    if value.get().starts_with('[') {
        return serde_json::from_str(value.get()).map_err(|_| Fault::NotJson);
    }
    let members = members(value)?;
    let mut names: Vec<&String> = members.iter().map(|(name, _)| name).collect();
    names.sort_unstable();
    if names.windows(2).any(|two| two[0] == two[1]) {
        return Err(Fault::Refused);
    }
    Ok(members.into_iter().map(|(_, value)| value).collect())
}

/// The members of an object, and none of anything else.
fn members(value: &RawValue) -> Result<Vec<(String, &RawValue)>, Fault> {
    if !value.get().starts_with('{') {
        return Ok(Vec::new());
    }
    let mut json = serde_json::Deserializer::from_str(value.get());
    json.deserialize_map(Members).map_err(|_| Fault::NotJson)
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(members)
    }
}
