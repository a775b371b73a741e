//! A run whose caller left goes on.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use http_body::Body;
use http_body_util::BodyExt;
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;
use tracing::{Instrument, Span};

use crate::counts::Counters;

/// The tasks that go on without a caller.
#[derive(Debug)]
pub(crate) struct Detached {
    /// Runs whose callers left, responses that stream, and settlements that are tried again.
    tasks: TaskTracker,
    /// Request bodies that were answered before their end.
    bodies: TaskTracker,
}

impl Detached {
    pub(crate) fn new() -> Self {
        Self {
            tasks: TaskTracker::new(),
            bodies: TaskTracker::new(),
        }
    }

    /// How many runs, responses and settlements go on.
    pub(crate) fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Runs `task` to its end, whoever waits for it. Must be called within a runtime.
    pub(crate) fn see_through(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task.instrument(Span::current()));
    }

    /// Runs `task` beside a request; `false` outside of a runtime, where there is nobody to run it.
    pub(crate) fn beside(&self, task: impl Future<Output = ()> + Send + 'static) -> bool {
        let runtime = Handle::try_current();
        let spawned = runtime.map(|runtime| self.tasks.spawn_on(task, &runtime));
        spawned.is_ok()
    }

    /// Waits until no task is left, or for `limit`. Gives the number of those that still go on.
    pub(crate) async fn drain(&self, limit: Duration) -> usize {
        self.tasks.close();
        self.bodies.close();
        let all = async {
            self.tasks.wait().await;
            self.bodies.wait().await;
        };
        let ended = timeout(limit, all).await;
        self.tasks.reopen();
        self.bodies.reopen();
        match ended {
            Ok(()) => 0,
            Err(_) => self.tasks.len() + self.bodies.len(),
        }
    }

    /// Reads what is left of a request body that was answered early, so that the client comes to
    /// read the answer: several HTTP/1 clients do not look before they have sent everything, and a
    /// connection whose body was read to its end can be used again.
    ///
    /// Bounded in bytes, in time and in number; beyond, the server closes the connection or
    /// resets the stream.
    pub(crate) fn drain_body<B>(&self, body: Pin<Box<B>>)
    where
        B: Body + Send + 'static,
        B::Data: Send,
    {
        if body.is_end_stream() || self.bodies.len() >= DRAINS {
            return;
        }
        self.bodies.spawn(async move {
            // Whether it was read to the end makes no difference to anyone.
            timeout(DRAIN_TIME, drain_up_to(body, DRAIN_BYTES))
                .await
                .ok();
        });
    }
}

const DRAINS: usize = 1024;
const DRAIN_TIME: Duration = Duration::from_secs(10);
const DRAIN_BYTES: usize = 32 << 20;

async fn drain_up_to<B: Body>(mut body: Pin<Box<B>>, limit: usize) {
    let mut read = 0;
    while let Some(Ok(frame)) = body.frame().await {
        read += frame.data_ref().map_or(0, bytes::Buf::remaining);
        if read > limit {
            return;
        }
    }
}

/// Whether a request must be seen through although its caller leaves.
#[derive(Debug, Default)]
pub(crate) struct Attendance(AtomicBool);

impl Attendance {
    /// From here on the rest must happen: a claim is about to be sent, or a lease is held.
    pub(crate) fn stay(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Nothing is held: the rest is only for the caller.
    pub(crate) fn leave(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    fn must_stay(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A future that goes on in a task of its own if it is dropped while it must not end.
pub(crate) struct Staying<T: Send + 'static> {
    /// `None` once it has ended.
    future: Option<Boxed<T>>,
    attendance: Arc<Attendance>,
    detached: Arc<Detached>,
    counters: Arc<Counters>,
    /// Taken when the request came, since it may be dropped outside of every runtime.
    runtime: Option<Handle>,
    span: Span,
    /// Stays `true` if the future panics: it must not be polled again then.
    polling: bool,
}

impl<T: Send + 'static> Staying<T> {
    pub(crate) fn new(
        future: Boxed<T>,
        attendance: Arc<Attendance>,
        (detached, counters): (Arc<Detached>, Arc<Counters>),
    ) -> Self {
        Self {
            future: Some(future),
            attendance,
            detached,
            counters,
            runtime: Handle::try_current().ok(),
            span: Span::current(),
            polling: false,
        }
    }
}

impl<T: Send + 'static> Future for Staying<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let this = &mut *self;
        let Some(future) = &mut this.future else {
            return Poll::Pending;
        };
        this.polling = true;
        let polled = future.as_mut().poll(cx);
        this.polling = false;
        if polled.is_ready() {
            this.future = None;
        }
        polled
    }
}

impl<T: Send + 'static> Drop for Staying<T> {
    fn drop(&mut self) {
        let Some(future) = self.future.take() else {
            return;
        };
        if !self.attendance.must_stay() || self.polling {
            return;
        }
        let Some(runtime) = self.runtime.take() else {
            return;
        };
        self.counters.detach();
        // The answer is for nobody; a response that still streams is recorded by its own task.
        let rest = async move { drop(future.await) };
        let rest = rest.instrument(std::mem::replace(&mut self.span, Span::none()));
        self.detached.tasks.spawn_on(rest, &runtime);
    }
}

impl<T: Send + 'static> fmt::Debug for Staying<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Staying").finish_non_exhaustive()
    }
}
