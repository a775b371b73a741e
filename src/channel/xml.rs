//! Reads a few elements out of an XML document.

use quick_xml::Reader;
use quick_xml::events::{BytesRef, Event};

use crate::channel::contract::{Reason, Refusal};
use crate::error::Error;

/// Why a document is not read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It is no XML, or no UTF-8.
    NotXml,
    /// It declares a document type. No sender needs one, and entities are how a short document
    /// becomes a long one.
    DocumentType,
    /// The element at that path occurs twice.
    Repeated(String),
}

/// The texts of the elements at `paths`, such as `/xml/MsgId`, each path once; `None` for those
/// that are missing.
///
/// One pass over the body. Attributes and namespaces are not read, entities other than XML's own
/// five are none, and what is nested deeply is only counted.
pub(crate) fn texts(body: &[u8], paths: &[&str]) -> Result<Vec<Option<String>>, Fault> {
    let text = std::str::from_utf8(body).map_err(|_| Fault::NotXml)?;
    let mut reader = Reader::from_str(text);
    let mut walk = Walk::new(paths);
    loop {
        match reader.read_event().map_err(|_| Fault::NotXml)? {
            Event::Start(tag) => walk.enter(tag.name().into_inner())?,
            Event::Empty(tag) => {
                walk.enter(tag.name().into_inner())?;
                walk.leave();
            }
            Event::End(_) => walk.leave(),
            Event::Text(text) => walk.text(&text.xml10_content())?,
            Event::CData(text) => walk.text(&text.xml10_content())?,
            Event::GeneralRef(entity) => walk.text(expand(&entity)?.encode_utf8(&mut [0; 4]))?,
            Event::DocType(_) => return Err(Fault::DocumentType),
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
            Event::Eof => return walk.end(),
        }
    }
}

/// Checks a path: element names from the root down.
pub(crate) fn path(path: &str) -> Result<Box<str>, Error> {
    let names = path.strip_prefix('/').unwrap_or_default().split('/');
    let wrong = |name: &str| name.is_empty() || name.contains(|c: char| c.is_whitespace());
    if names.into_iter().any(wrong) {
        let detail = format!("the path {path:?} does not name elements, as `/order/id` does");
        return Err(Error::misconfigured(detail));
    }
    Ok(path.into())
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        let detail = match fault {
            Fault::NotXml => "the body is no XML".into(),
            Fault::DocumentType => "the body declares a document type".into(),
            Fault::Repeated(path) => format!("the element {path} occurs twice in the body"),
        };
        Self::new(Reason::MalformedBody, detail)
    }
}

/// The way from the root to where the reader stands.
struct Walk<'p> {
    paths: &'p [&'p str],
    found: Vec<Option<String>>,
    path: String,
    /// For each element that is open: how long the path was before it, and which path it is.
    open: Vec<(usize, Option<usize>)>,
    seen_root: bool,
}

impl<'p> Walk<'p> {
    fn new(paths: &'p [&'p str]) -> Self {
        Self {
            paths,
            found: vec![None; paths.len()],
            path: String::new(),
            open: Vec::new(),
            seen_root: false,
        }
    }

    fn enter(&mut self, name: &str) -> Result<(), Fault> {
        if self.open.is_empty() && self.seen_root {
            return Err(Fault::NotXml);
        }
        self.seen_root = true;
        let before = self.path.len();
        self.path.push('/');
        self.path.push_str(name);
        let wanted = self.paths.iter().position(|path| *path == self.path);
        if let Some(slot) = wanted.and_then(|at| self.found.get_mut(at))
            && slot.replace(String::new()).is_some()
        {
            return Err(Fault::Repeated(self.path.clone()));
        }
        self.open.push((before, wanted));
        Ok(())
    }

    fn leave(&mut self) {
        if let Some((before, _)) = self.open.pop() {
            self.path.truncate(before);
        }
    }

    fn text(&mut self, text: &str) -> Result<(), Fault> {
        match self.open.last() {
            Some((_, wanted)) => {
                if let Some(Some(found)) = wanted.and_then(|at| self.found.get_mut(at)) {
                    found.push_str(text);
                }
                Ok(())
            }
            None if text.trim().is_empty() => Ok(()),
            None => Err(Fault::NotXml),
        }
    }

    fn end(self) -> Result<Vec<Option<String>>, Fault> {
        if self.open.is_empty() && self.seen_root {
            Ok(self.found)
        } else {
            Err(Fault::NotXml)
        }
    }
}

fn expand(entity: &BytesRef<'_>) -> Result<char, Fault> {
    match entity.resolve_char_ref() {
        Ok(Some(character)) => return Ok(character),
        Ok(None) => {}
        Err(_) => return Err(Fault::NotXml),
    }
    match &**entity {
        "lt" => Ok('<'),
        "gt" => Ok('>'),
        "amp" => Ok('&'),
        "apos" => Ok('\''),
        "quot" => Ok('"'),
        _ => Err(Fault::NotXml),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(body: &str) -> Result<Option<String>, Fault> {
        let mut found = texts(body.as_bytes(), &["/xml/id"])?;
        Ok(found.remove(0))
    }

    #[test]
    fn a_path_names_elements_from_the_root_down() {
        for good in ["/a", "/xml/MsgId", "/x:a/b/c"] {
            assert!(path(good).is_ok(), "{good}");
        }
        for bad in ["", "/", "a", "xml/MsgId", "/a/", "//a", "/a b"] {
            assert!(path(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_element_is_read_however_its_text_is_written() {
        for body in [
            "<xml><id>a&amp;b</id></xml>",
            "<?xml version=\"1.0\"?>\n<xml>\n<id><![CDATA[a&b]]></id>\n</xml>\n",
            "<xml a='>'><!-- <id>c</id> --><id x=\"1\">a<![CDATA[&]]>&#x62;</id></xml>",
            "\u{feff}<xml><other><id>c</id></other><id>a&#38;b</id></xml>",
        ] {
            assert_eq!(id(body), Ok(Some("a&b".to_owned())), "{body}");
        }
    }

    #[test]
    fn an_element_elsewhere_is_another() {
        for body in [
            "<id>1</id>",
            "<xml/>",
            "<xml><ID>1</ID><x:id>1</x:id><a><id>1</id></a></xml>",
        ] {
            assert_eq!(id(body), Ok(None), "{body}");
        }
        assert_eq!(id("<xml><id/></xml>"), Ok(Some(String::new())));
    }

    #[test]
    fn an_element_that_is_there_twice_is_a_fault() {
        let twice = "<xml><id>1</id><id>1</id></xml>";
        assert_eq!(id(twice), Err(Fault::Repeated("/xml/id".to_owned())));
    }

    #[test]
    fn what_is_no_document_is_a_fault() {
        for body in [
            "",
            " ",
            "{}",
            "<xml>",
            "<xml><id>1</xml>",
            "<xml></id></xml>",
            "<xml/><xml/>",
            "text<xml/>",
            "<xml/>text",
            "<xml>&unknown;</xml>",
            "<xml>&#xD800;</xml>",
            "<xml><id>1</id>",
        ] {
            assert_eq!(id(body), Err(Fault::NotXml), "{body}");
        }
        assert_eq!(texts(b"<xml>\xff</xml>", &[]), Err(Fault::NotXml));
    }

    #[test]
    fn a_document_type_is_a_fault() {
        let bomb = "<!DOCTYPE xml [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]><xml>&b;</xml>";
        assert_eq!(id(bomb), Err(Fault::DocumentType));
        let outside = "<!DOCTYPE xml SYSTEM \"file:///etc/passwd\"><xml/>";
        assert_eq!(id(outside), Err(Fault::DocumentType));
    }
}
