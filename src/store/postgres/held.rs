//! A connection that goes back to its pool only if it was left as it was found.

use deadpool_postgres::{ClientWrapper, Object};

/// A connection out of the pool.
///
/// Dropped, it is closed: whoever stops in the middle of a statement, by a time limit or because
/// its caller went away, cannot know what the connection is in the middle of, and the pool would
/// hand it on as it is.
pub(super) struct Held {
    object: Option<Object>,
}

impl Held {
    pub(super) fn new(object: Object) -> Self {
        Self {
            object: Some(object),
        }
    }

    /// `None` never: only [`give_back`](Self::give_back) takes the connection out.
    pub(super) fn client(&self) -> Option<&ClientWrapper> {
        self.object.as_deref()
    }

    /// The connection, for whoever takes care of it from now on.
    pub(super) fn into_object(mut self) -> Option<Object> {
        self.object.take()
    }

    /// The statement has ended, and with it its transaction: the next one may use the connection.
    pub(super) fn give_back(mut self) {
        drop(self.object.take());
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(object) = self.object.take() {
            drop(Object::take(object));
        }
    }
}
