//! Forms: any bytes have an answer, and a field is read as the form says it.

use std::collections::BTreeSet;

use http::Request;
use tower_idempotency::channel::{Channel, FormField, Reason, Scope, Slack, Twilio};

use crate::channels::owes;

/// `data` is a body.
pub fn check(data: &[u8]) {
    let head = Request::post("/").header("content-type", "application/x-www-form-urlencoded");
    let head = head.body(()).expect("a head").into_parts().0;
    let json = FormField::json("json", "payload", "$.*[*].id").expect("a path");
    let form = FormField::new("form", "id");
    let form = form.and("to").scope(Scope::form_field("a")).unverified();
    let senders: [&dyn Channel; 4] = [
        &form,
        &json.and("id").unverified(),
        &Twilio::unverified(),
        &Slack::unverified(),
    ];
    for sender in senders {
        owes(sender, &head, data, 1);
    }
    let found = form.deliveries(&head, data);
    let found = found.map_err(|refusal| refusal.reason());
    let found = found.map(|all| {
        let key = all.first().map(|it| it.key().clone());
        key.map(|key| (key.scope().to_owned(), key.id().to_owned()))
    });
    if let Some(expected) = expected(data) {
        assert_eq!(found, expected, "{}", data.escape_ascii());
    }
}

type Answer = Result<Option<(String, String)>, Reason>;

/// What the form says, if it says it in plain words: `None` for what only the channel judges.
fn expected(data: &[u8]) -> Option<Answer> {
    let values = |name: &str| -> BTreeSet<String> {
        let pairs = form_urlencoded::parse(data);
        let values = pairs.filter(|(it, _)| it == name);
        values.map(|(_, value)| value.into_owned()).collect()
    };
    let all = ["id", "to", "a"].map(values);
    let wrong = |text: &String| {
        text.contains('\u{fffd}') || text.contains(char::is_control) || text.len() > 1024
    };
    if all.iter().flatten().any(wrong) {
        return None;
    }
    if all[..2].iter().any(|values| values.len() > 1) {
        return Some(Err(Reason::MalformedBody));
    }
    let first = |values: &BTreeSet<String>| {
        let value = values.first().filter(|text| !text.trim().is_empty());
        value.map(|text| text.replace('\\', "\\\\").replace('|', "\\|"))
    };
    let Some((id, to)) = first(&all[0]).zip(first(&all[1])) else {
        return Some(Ok(None));
    };
    if all[2].len() > 1 {
        return Some(Err(Reason::MalformedBody));
    }
    match all[2].first().filter(|text| !text.trim().is_empty()) {
        Some(scope) => Some(Ok(Some((scope.clone(), format!("{id}|{to}"))))),
        None => Some(Err(Reason::MissingScope)),
    }
}
