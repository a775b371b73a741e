//! The outbox: effects wait in it, and are handled.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http_body_util::Empty;

use crate::channel::contract::{Channel, Concern, Refusal, Terms};
use crate::delivery::Delivery;
use crate::effects::effect::{Each, Effect};
use crate::error::{BoxError, Error};
use crate::inbox::build::Inbox;
use crate::inbox::letters::Letters;
use crate::inbox::worker::Worker;
use crate::store::queue::contract::Queue;
use crate::store::queue::turn::Behind;

/// Handles the effects that runs [enqueued](crate::Claimed::enqueue): in each conversation one at a
/// time, in the order in which their runs were committed, with retries and dead letters, as an
/// [inbox](crate::inbox) handles its messages.
///
/// ```
/// use tower_idempotency::effects::{Effect, Outbox};
/// # use tower_idempotency::{BoxError, Error, store::Queue};
///
/// # fn start(store: impl Queue) -> Result<(), Error> {
/// let worker = Outbox::new(&store)?.each(|effect: Effect| async move {
///     println!("{}: {:?}, key {}", effect.name(), effect.payload(), effect.step_key("send"));
///     Ok::<(), BoxError>(())
/// })?;
/// # async move {
/// tokio::spawn(worker.run());
/// # };
/// # Ok(())
/// # }
/// ```
#[must_use = "effects wait until a worker runs"]
pub struct Outbox<Q> {
    inbox: Inbox<Q, EffectChannel>,
}

/// The worker of an [`Outbox`].
pub type OutboxWorker<Svc, Q> = Worker<Svc, Q, EffectChannel, Empty<Bytes>>;

impl<Q: Queue> Outbox<Q> {
    /// The outbox of the store that is given to the layer or inbox whose runs enqueue effects.
    ///
    /// # Errors
    /// [Misconfigured](Error::is_misconfigured) if the store has none, as `MemoryStore` has.
    pub fn new(store: &Q) -> Result<Self, Error> {
        let outbox = store.outbox().ok_or_else(|| {
            Error::misconfigured("the store has no outbox: use PostgresStore or SqliteStore")
        })?;
        let channel = EffectChannel(Terms::webhook(CHANNEL));
        Ok(Self {
            inbox: Inbox::new(outbox, channel).woken_by(store.news()),
        })
    }

    /// How many lines are handled at the same time in this process. Default: 256.
    pub fn concurrency(self, lines: usize) -> Self {
        self.with(|inbox| inbox.concurrency(lines))
    }

    /// How long a worker may go without renewing its turns. Default: 30 s.
    pub fn lease(self, lease: Duration) -> Self {
        self.with(|inbox| inbox.lease(lease))
    }

    /// How many attempts an effect has before it is dead. Default: 10.
    pub fn attempts(self, most: u32) -> Self {
        self.with(|inbox| inbox.attempts(most))
    }

    /// How long an attempt may take. Default: one minute.
    pub fn attempt_limit(self, limit: Duration) -> Self {
        self.with(|inbox| inbox.attempt_limit(limit))
    }

    /// The pause before the second attempt, doubled before each further one up to `longest`.
    /// Default: 1 s and 5 minutes.
    pub fn backoff(self, first: Duration, longest: Duration) -> Self {
        self.with(|inbox| inbox.backoff(first, longest))
    }

    /// Whether the effects behind one that failed wait for it. Default: they do.
    pub fn behind_a_failure(self, behind: Behind) -> Self {
        self.with(|inbox| inbox.behind_a_failure(behind))
    }

    /// How often the worker looks for what other processes enqueued. Default: 500 ms. What this
    /// process enqueues is looked for at once.
    pub fn look_every(self, interval: Duration) -> Self {
        self.with(|inbox| inbox.look_every(interval))
    }

    /// How long a worker that was told to stop goes on with what it is handling. Default: 20 s.
    pub fn stop_limit(self, limit: Duration) -> Self {
        self.with(|inbox| inbox.stop_limit(limit))
    }

    /// The dead effects, and what waits.
    pub fn letters(&self) -> Letters<Q> {
        self.inbox.letters()
    }

    /// A worker that gives each effect to a closure.
    ///
    /// `Ok` says that it happened. An error is tried again with growing pauses;
    /// [`Failure`](crate::inbox::Failure) as the error says when, or never again. A function names
    /// the error's type; in a closure its last `Ok` does.
    ///
    /// ```
    /// # use tower_idempotency::{BoxError, Error, effects::{Effect, Outbox}, store::Queue};
    /// async fn happen(effect: Effect) -> Result<(), BoxError> {
    ///     match effect.name() {
    ///         "notify" => Ok(()), // call somebody, with effect.step_key("notify")
    ///         other => Err(format!("there is no effect {other}").into()),
    ///     }
    /// }
    ///
    /// # fn start(store: impl Queue) -> Result<(), Error> {
    /// let worker = Outbox::new(&store)?.each(happen)?;
    /// # async move {
    /// tokio::spawn(worker.run());
    /// # };
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [Misconfigured](Error::is_misconfigured) if there are no places, no attempts, or no time.
    pub fn each<F, W, E>(self, handle: F) -> Result<OutboxWorker<Each<F>, Q>, Error>
    where
        F: FnOnce(Effect) -> W + Clone + Send + 'static,
        W: Future<Output = Result<(), E>> + Send,
        E: Into<BoxError>,
    {
        self.wrap(Each(handle))
    }

    /// A worker that calls a Tower service for each effect, such as an axum `Router`: with
    /// `POST /name` and the payload as the body, and with [`Claimed`](crate::Claimed) and
    /// [`Received`](crate::inbox::Received) in the extensions. What its answer says is told in the
    /// [inbox's module](crate::inbox).
    ///
    /// # Errors
    /// As [`each`](Self::each).
    pub fn wrap<Svc: Clone>(self, service: Svc) -> Result<OutboxWorker<Svc, Q>, Error> {
        let (_, worker) = self.inbox.wrap(service)?;
        Ok(worker)
    }

    fn with(self, change: impl FnOnce(Inbox<Q, EffectChannel>) -> Inbox<Q, EffectChannel>) -> Self {
        Self {
            inbox: change(self.inbox),
        }
    }
}

impl<Q> fmt::Debug for Outbox<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbox")
            .field("inbox", &self.inbox)
            .finish_non_exhaustive()
    }
}

/// The name of the channel that effects' keys belong to.
pub(crate) const CHANNEL: &str = "effects";

/// The channel of effects. No request brings one.
#[derive(Debug)]
pub struct EffectChannel(Terms);

impl Channel for EffectChannel {
    fn terms(&self, _: &Parts) -> &Terms {
        &self.0
    }

    fn concern(&self, _: &Parts) -> Result<Concern, Refusal> {
        Ok(Concern::Pass)
    }

    fn deliveries(&self, _: &Parts, _: &[u8]) -> Result<Vec<Delivery>, Refusal> {
        Ok(Vec::new())
    }
}
