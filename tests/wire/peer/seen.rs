//! A request as all peers send it, and an answer as all of them see it.

/// A request: always a POST.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

/// An answer, without what may differ between a first one and its replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) status: u16,
    /// In order, `date` left out.
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Vec<(String, Vec<u8>)>,
}

impl Ask {
    /// A message with a key, that tells the app what to answer.
    pub(crate) fn new(key: &str, answer: &str) -> Self {
        Self {
            headers: Vec::new(),
            body: b"hello".to_vec(),
        }
        .with("idempotency-key", key)
        .with("x-answer", answer)
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }
}

impl Seen {
    pub(crate) fn new(status: u16, headers: Vec<(String, Vec<u8>)>) -> Self {
        let mut headers = headers;
        headers.retain(|(name, _)| name != "date");
        Self {
            status,
            headers,
            body: Vec::new(),
            trailers: Vec::new(),
        }
    }

    /// The lines of one field.
    pub(crate) fn all(&self, name: &str) -> Vec<&[u8]> {
        let of_name = self.headers.iter().filter(|(it, _)| it == name);
        of_name.map(|(_, value)| value.as_slice()).collect()
    }

    pub(crate) fn is_replayed(&self) -> bool {
        self.all("idempotency-replayed") == [b"true"]
    }

    /// Without the mark of a replay, and with the fields in the order of their names: a first
    /// answer and its replay do not promise one order of different fields.
    pub(crate) fn unmarked(mut self) -> Self {
        self.headers
            .retain(|(name, _)| name != "idempotency-replayed");
        self.headers.sort_by(|(a, _), (b, _)| a.cmp(b));
        self
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}
