//! XML: any bytes have an answer, and where a strict reader accepts the document, too, both read the
//! same id.

use http::Request;
use roxmltree::{Document, Node};
use tower_idempotency::channel::{Channel, Scope, WeChat, XmlPath};

use crate::channels::owes;

/// `data` is a body.
pub fn check(data: &[u8]) {
    let head = Request::post("/").body(()).expect("a head").into_parts().0;
    let id = XmlPath::new("xml", "/xml/id").expect("a path").unverified();
    let more = XmlPath::new("more", "/xml/id").and_then(|it| it.and("/xml/a/b"));
    let more = more.and_then(|it| Ok(it.scope(Scope::xml("/xml/a")?)));
    let more = more.expect("paths").required().unverified();
    let senders: [&dyn Channel; 3] = [&id, &more, &WeChat::unverified()];
    for sender in senders {
        owes(sender, &head, data, 1);
    }
    let Ok(found) = id.deliveries(&head, data) else {
        return;
    };
    let document = std::str::from_utf8(data).ok();
    let Some(document) = document.and_then(|text| Document::parse(text).ok()) else {
        return;
    };
    let Some(found) = found.first().map(|it| it.key().id().to_owned()) else {
        return;
    };
    let expected = expected(&document)
        .replace('\\', "\\\\")
        .replace('|', "\\|");
    assert_eq!(found, expected, "{}", data.escape_ascii());
}

fn expected(document: &Document<'_>) -> String {
    let root = document.root_element();
    let is_id = |node: &Node<'_, '_>| node.is_element() && node.tag_name().name() == "id";
    let id = root.children().find(is_id);
    let texts = id.into_iter().flat_map(|id| id.children());
    texts
        .filter(Node::is_text)
        .filter_map(|it| it.text())
        .collect()
}
