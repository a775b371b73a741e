//! The way from the handles to one of the store's threads.

use std::sync::mpsc::{Receiver, Sender, channel};

use tokio::sync::oneshot;

use crate::error::Error;

/// What a thread is sent.
pub(super) enum Message<J> {
    Job(J),
    /// Finish what came before, let go of the file, say so, and end.
    Stop(oneshot::Sender<()>),
}

/// The handles' side. The thread ends when the last one is dropped.
pub(super) struct Post<J>(Sender<Message<J>>);

impl<J> Clone for Post<J> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<J> Post<J> {
    pub(super) fn new() -> (Self, Receiver<Message<J>>) {
        let (sender, receiver) = channel();
        (Self(sender), receiver)
    }

    /// # Errors
    /// If the thread has ended.
    pub(super) fn send(&self, job: J) -> Result<(), Error> {
        self.0.send(Message::Job(job)).map_err(|_| closed())
    }

    /// Ends the thread, and waits until it has ended. Does nothing if it has before.
    pub(super) async fn stop(&self) {
        let (done, ended) = oneshot::channel();
        if self.0.send(Message::Stop(done)).is_ok() {
            // An error says that the thread is gone already.
            drop(ended.await);
        }
    }
}

/// Says that the thread has let go of the file.
pub(super) fn stopped(caller: oneshot::Sender<()>) {
    if caller.send(()).is_err() {
        tracing::debug!("a shutdown of the SQLite store was not waited for");
    }
}

/// What a call is told whose thread has ended.
pub(super) fn closed() -> Error {
    Error::unavailable("the SQLite store was shut down")
}
