//! Texts as the server takes them.

use std::borrow::Cow;

/// The text with each NUL, which PostgreSQL's `text` cannot hold, written `␀`. For reading only:
/// rows are found by digests of the texts as they are.
pub(super) fn readable(text: &str) -> Cow<'_, str> {
    if text.contains('\0') {
        Cow::Owned(text.replace('\0', "␀"))
    } else {
        Cow::Borrowed(text)
    }
}
