//! An inbox and its options.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use http::header::HeaderName;
use tokio::sync::Notify;

use crate::channel::contract::Channel;
use crate::counts::{Counters as LayerCounters, Mode};
use crate::detach::Detached;
use crate::error::Error;
use crate::flow::context::{Context, Said};
use crate::inbox::counts::Counters;
use crate::inbox::decide::{Backoff, Loss, Plan, Replies, Requests, check};
use crate::inbox::front::Front;
use crate::inbox::letters::Letters;
use crate::inbox::room::Room;
use crate::inbox::shared::Shared;
use crate::inbox::worker::Worker;
use crate::policy::Options;
use crate::record::Keep;
use crate::store::queue::contract::Queue;
use crate::store::queue::turn::Behind;
use crate::store::watched::watched;
use crate::underway::Underway;
use crate::watch::shown::KeysInLogs;

/// Stores each message, answers its sender at once, and runs the handler from a queue.
///
/// See the [module](crate::inbox).
#[must_use = "an inbox does nothing until it is wrapped around a handler"]
pub struct Inbox<Q, C> {
    store: Q,
    channel: C,
    plan: Plan,
    options: Options,
    /// What wakes the worker beside the front.
    news: Option<Arc<Notify>>,
}

impl<Q: Queue, C: Channel> Inbox<Q, C> {
    /// An inbox in a store, for the messages of a channel.
    pub fn new(store: Q, channel: C) -> Self {
        Self {
            store,
            channel,
            plan: Plan::default(),
            options: Options::default(),
            news: None,
        }
    }

    /// The worker looks for messages when it is told so here, too.
    pub(crate) fn woken_by(mut self, news: Option<Arc<Notify>>) -> Self {
        self.news = news;
        self
    }

    /// How many lines are handled at the same time in this process. Default: 256.
    pub fn concurrency(self, lines: usize) -> Self {
        self.plan(|plan| plan.concurrency = lines)
    }

    /// How long a worker may go without renewing its turns. Default: 30 s.
    ///
    /// It renews them every third of it. After a process died, its lines go on elsewhere when
    /// their leases have lapsed.
    pub fn lease(self, lease: Duration) -> Self {
        self.plan(|plan| plan.lease = lease)
    }

    /// How many attempts a message has before it is dead. Default: 10, which take four to nine
    /// minutes if each fails at once. What dies in a longer outage is redriven by
    /// [`Letters::redrive_all`].
    ///
    /// An attempt is counted when the message is taken, so one that kills its worker has its last
    /// attempt, too. Waiting for a turn is none.
    pub fn attempts(self, most: u32) -> Self {
        self.plan(|plan| plan.attempts = most)
    }

    /// How long an attempt may take; then its handler is dropped, and the attempt has failed.
    /// Default: one minute.
    pub fn attempt_limit(self, limit: Duration) -> Self {
        self.plan(|plan| plan.attempt_limit = limit)
    }

    /// The pause before the second attempt, doubled before each further one up to `longest`, each
    /// shortened at random by up to a half. Default: 1 s and 5 minutes.
    ///
    /// A `Retry-After` of the handler's answer, and [`Failure::Later`], count more.
    ///
    /// [`Failure::Later`]: crate::inbox::Failure::Later
    pub fn backoff(self, first: Duration, longest: Duration) -> Self {
        self.plan(|plan| plan.backoff = Backoff { first, longest })
    }

    /// Whether the messages behind one that failed wait for it. Default: they do.
    pub fn behind_a_failure(self, behind: Behind) -> Self {
        self.plan(|plan| plan.behind = behind)
    }

    /// How long keys are kept, from when their messages were accepted. Default: a week longer
    /// than their conversation had new messages, and a day longer than the sender goes on
    /// repeating. A message that is not done keeps its key however long it takes.
    pub fn keep(self, keep: Keep) -> Self {
        self.plan(|plan| plan.keep = Some(keep))
    }

    /// The raw request of a message that is done stays with its key, to be read by
    /// [`Letters::kept`]. Default: it goes, and the key stays.
    pub fn keep_requests(self) -> Self {
        self.plan(|plan| plan.requests = Requests::Stay)
    }

    /// How often the worker looks for messages that other processes left, or whose time has come.
    /// Default: 500 ms. What this process accepts is handled at once.
    pub fn look_every(self, interval: Duration) -> Self {
        self.plan(|plan| plan.look_every = interval)
    }

    /// How long a worker that was told to stop goes on with what it is handling. Default: 20 s.
    pub fn stop_limit(self, limit: Duration) -> Self {
        self.plan(|plan| plan.stop_limit = limit)
    }

    /// Header fields that are not stored with the request, such as credentials that the handler
    /// does not need. Default: none.
    pub fn leave_out(self, fields: impl IntoIterator<Item = HeaderName>) -> Self {
        self.plan(|plan| plan.left_out = fields.into_iter().collect())
    }

    /// Statuses by which the handler says that no later attempt can do better: the message is dead
    /// at once, as by [`Failure::Never`], and the next one of its conversation comes. Default: none,
    /// since what is 404 or 422 today may be a fault of the handler that is mended tomorrow.
    ///
    /// [`Failure::Never`]: crate::inbox::Failure::Never
    pub fn gives_up_on(self, statuses: impl IntoIterator<Item = StatusCode>) -> Self {
        self.plan(|plan| plan.given_up_on = statuses.into_iter().collect())
    }

    /// The handler sends its replies by itself, through the channel's own API.
    ///
    /// Some channels read the reply out of the answer's body (`TwiML`, Telegram's `method`, Slack's
    /// commands …). Here the answer goes out before the handler runs, so such a channel is refused
    /// unless this is said.
    pub fn reply_elsewhere(self) -> Self {
        self.plan(|plan| plan.replies = Replies::Elsewhere)
    }

    /// Waiting messages may go with the process, although their senders were told that they were
    /// received: for tests, and for a [`MemoryStore`](crate::store::MemoryStore).
    pub fn may_lose_waiting(self) -> Self {
        self.plan(|plan| plan.loss = Loss::Accepted)
    }

    /// The largest request body, in bytes. A larger one is answered 413. Default: 1 MiB.
    pub fn max_request(mut self, bytes: usize) -> Self {
        self.options.max_request = bytes;
        self
    }

    /// How long a request's body may take to come. A later one is answered 408. Default: 60 s.
    pub fn read_limit(mut self, limit: Duration) -> Self {
        self.options.read_limit = limit;
        self
    }

    /// How long one store call may take. Default: 5 s.
    pub fn store_limit(mut self, limit: Duration) -> Self {
        self.options.store_limit = limit;
        self
    }

    /// How traces name messages. Default: by a digest that names no person.
    pub fn keys_in_logs(mut self, keys: KeysInLogs) -> Self {
        self.options.keys = keys;
        self
    }

    /// How often the worker counts what waits and what is dead, for the gauges of
    /// [`watch`](crate::watch). Default: never.
    ///
    /// It costs the store a look at everything that waits. The numbers are the whole store's, so
    /// one process is enough; [`Letters::backlog`] sets the same gauges whenever it is called,
    /// such as once for each scrape. Without the feature `metrics` nothing is counted.
    pub fn measure_every(self, interval: Duration) -> Self {
        self.plan(|plan| plan.measure_every = Some(interval))
    }

    /// Puts the inbox in front of a handler: the front goes into the router, the worker is
    /// spawned.
    ///
    /// The handler is any Tower service for HTTP requests, a whole axum `Router` included. It is
    /// called by the worker with one message at a time, and by the front with what is no message;
    /// a function becomes one as a route of a router. `B` is the body of the requests that come to
    /// the front, and follows from where it is mounted. A process that only works says it:
    ///
    /// ```
    /// # use axum::{Router, routing::post};
    /// # use tower_idempotency::{Error, channel::WhatsApp, inbox::Inbox, store::Queue};
    /// # fn worker(store: impl Queue) -> Result<(), Error> {
    /// let handler = Router::new().route("/whatsapp", post(|| async { "handled" }));
    /// let inbox = Inbox::new(store, WhatsApp::unverified());
    /// let (_, worker) = inbox.wrap::<_, axum::body::Body>(handler)?;
    /// # async move {
    /// tokio::spawn(worker.run());
    /// # };
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [Misconfigured](Error::is_misconfigured) if the combination cannot work:
    /// * the store keeps messages in memory only, and [`may_lose_waiting`] was not said;
    /// * the reply of a channel is the body of its answer, and [`reply_elsewhere`] was not said;
    /// * keys are kept for a shorter time than the channel's sender goes on repeating;
    /// * there are no places, no attempts, or no time.
    ///
    /// [`may_lose_waiting`]: Self::may_lose_waiting
    /// [`reply_elsewhere`]: Self::reply_elsewhere
    pub fn wrap<Svc: Clone, B>(self, service: Svc) -> Result<Wrapped<Svc, Q, C, B>, Error> {
        check(
            &self.plan,
            &self.channel.all_terms(),
            self.store.is_durable(),
        )?;
        let context = Context {
            store: watched(self.store),
            channel: Arc::new(self.channel),
            options: self.options,
            counters: Arc::new(LayerCounters::of(Mode::Inbox)),
            underway: Arc::new(Underway::new()),
            detached: Arc::new(Detached::new()),
            said: Said::nothing(),
        };
        let (room, given) = Room::new(self.news.unwrap_or_default());
        let shared = Arc::new(Shared {
            context,
            plan: self.plan,
            counters: Arc::<Counters>::default(),
            room,
        });
        let front = Front {
            service: service.clone(),
            shared: Arc::clone(&shared),
            body: PhantomData,
        };
        let worker = Worker {
            service,
            shared,
            given,
            body: PhantomData,
        };
        Ok((front, worker))
    }

    /// The dead messages of the store, and what waits in it.
    pub fn letters(&self) -> Letters<Q> {
        Letters::new(self.store.clone())
    }

    fn plan(mut self, change: impl FnOnce(&mut Plan)) -> Self {
        change(&mut self.plan);
        self
    }
}

/// The two halves of an inbox.
pub type Wrapped<Svc, Q, C, B> = (Front<Svc, Q, C, B>, Worker<Svc, Q, C, B>);

impl<Q, C> fmt::Debug for Inbox<Q, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox")
            .field("plan", &self.plan)
            .finish_non_exhaustive()
    }
}
