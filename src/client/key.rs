//! Keys: long, unique, and nothing that a user could type.

use http::HeaderValue;
use uuid::Uuid;

/// How a key is made.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    V4,
    V7,
}

impl Form {
    pub(crate) fn make(self) -> HeaderValue {
        let key = match self {
            Self::V4 => Uuid::new_v4(),
            Self::V7 => Uuid::now_v7(),
        };
        let mut buffer = Uuid::encode_buffer();
        let text = key.hyphenated().encode_lower(&mut buffer);
        #[expect(clippy::expect_used, reason = "digits, letters and hyphens")]
        HeaderValue::from_str(text).expect("a UUID is a header's value")
    }
}

/// A new key, to be stored with a message that must be sent also after a restart: a version 7 UUID.
///
/// Make it when the user hits send, once: an edited text is a new message and needs a new one. Put
/// it into the header `Idempotency-Key` of each attempt.
pub fn new_key() -> String {
    Uuid::now_v7().to_string()
}
