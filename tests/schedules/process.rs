//! Processes that can be killed and paused.
//!
//! A killed process does no more: what it would send is not sent, what it would be told is not
//! told, its handlers stand still. Nobody outside can tell that from its end, and no destructor
//! runs that the end would not have run. A paused one goes on later.

use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio::time::{Instant, Sleep, sleep_until};
use tokio_util::sync::CancellationToken;

pub(crate) struct Process {
    /// Unlike any other process's, also after a restart.
    pub(crate) number: usize,
    pub(crate) death: CancellationToken,
    paused_until: Mutex<Instant>,
}

impl Process {
    pub(crate) fn new(number: usize) -> Self {
        Self {
            number,
            death: CancellationToken::new(),
            paused_until: Mutex::new(Instant::now()),
        }
    }

    pub(crate) fn pause(&self, until: Instant) {
        *self.until() = until;
    }

    /// Returns while the process runs: after its pause, never after its death.
    pub(crate) async fn running(&self) {
        while self.is_standing() {
            match self.is_paused() {
                Some(until) => sleep_until(until).await,
                None => std::future::pending().await,
            }
        }
    }

    /// Whether it is paused, or dead.
    pub(crate) fn is_standing(&self) -> bool {
        self.is_paused().is_some() || self.death.is_cancelled()
    }

    fn is_paused(&self) -> Option<Instant> {
        let until = *self.until();
        (until > Instant::now()).then_some(until)
    }

    fn until(&self) -> std::sync::MutexGuard<'_, Instant> {
        self.paused_until
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// A future that is polled only while its process runs.
pub(crate) struct Within<'a, F> {
    process: &'a Process,
    future: Pin<Box<F>>,
    pause: Option<Pin<Box<Sleep>>>,
}

impl<'a, F: Future> Within<'a, F> {
    pub(crate) fn new(process: &'a Process, future: F) -> Self {
        Self {
            process,
            future: Box::pin(future),
            pause: None,
        }
    }
}

impl<F: Future> Future for Within<'_, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        while let Some(until) = self.process.is_paused() {
            let pause = self
                .pause
                .get_or_insert_with(|| Box::pin(sleep_until(until)));
            if pause.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            self.pause = None;
        }
        if self.process.death.is_cancelled() {
            return Poll::Pending;
        }
        self.future.as_mut().poll(cx)
    }
}
