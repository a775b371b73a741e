//! The worker: takes turns, and handles their messages.

use std::fmt;
use std::future::pending;
use std::marker::PhantomData;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::{Fuse, FusedFuture, join};
use http::{Request, Response};
use http_body::Body;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::task::{AbortOnDropHandle, TaskTracker};
use tower_service::Service;

use crate::body::request::RequestBody;
use crate::channel::contract::Channel;
use crate::error::BoxError;
use crate::inbox::held::{Held, beat};
use crate::inbox::measure::measure;
use crate::inbox::room::Given;
use crate::inbox::shared::Shared;
use crate::inbox::turn::{AT_ONCE, Stops, handle};
use crate::pace::usable;
use crate::store::queue::contract::Queue;
use crate::store::queue::turn::{Turn, TurnHold};

/// Handles the messages of an inbox: made by [`Inbox::wrap`](crate::inbox::Inbox::wrap), and
/// spawned by the application.
///
/// Without a running worker, messages are accepted and wait: for the worker of another process,
/// or the next one of this. Any number of processes may work on one store.
///
/// # Turns
/// A conversation's messages are handled one at a time, in the order in which they were accepted,
/// by whichever worker has the conversation's turn. The turn is leased and renewed; a worker that
/// dies loses it when its lease lapses, and one that cannot reach the store gives up its handlers
/// before that.
///
/// # Handlers that block
/// Turns are renewed in a task of their own. A handler that blocks its thread is harmless as long
/// as the runtime has another thread; in a current-thread runtime, or with as many blocking
/// handlers as threads, nothing is renewed, and messages may be handled twice at once. Move such
/// work to [`spawn_blocking`](tokio::task::spawn_blocking).
///
/// # Dropping
/// Dropped, or with its task aborted, it drops its handlers and gives their turns back as far as
/// the runtime still runs. [`run_until`](Self::run_until) ends in order.
#[must_use = "messages wait until the worker runs"]
pub struct Worker<Svc, Q, C, B> {
    pub(crate) service: Svc,
    pub(crate) shared: Arc<Shared<Q, C>>,
    pub(crate) given: UnboundedReceiver<Given>,
    pub(crate) body: PhantomData<fn() -> B>,
}

impl<Svc, Q, C, B> Worker<Svc, Q, C, B> {
    /// Works for ever.
    ///
    /// Must be run within a tokio runtime with time enabled. Safe to drop; see
    /// [above](Self#dropping).
    pub async fn run<R>(self)
    where
        Q: Queue,
        C: Channel,
        Svc: Service<Request<RequestBody<B>>, Response = Response<R>> + Clone + Send + 'static,
        Svc::Future: Send,
        Svc::Error: Into<BoxError> + Send,
        B: Send + 'static,
        R: Body<Data = Bytes> + Send + 'static,
        R::Error: Into<BoxError>,
    {
        self.run_until(pending()).await;
    }

    /// Works until `stop` is ready; then takes no more messages, finishes those that are being
    /// handled within the inbox's [limit](crate::inbox::Inbox::stop_limit), cuts what is left,
    /// and gives all turns back, so that another worker goes on at once.
    ///
    /// A message that is cut has had an attempt. Safe to drop; see [above](Self#dropping).
    pub async fn run_until<R>(self, stop: impl Future<Output = ()> + Send)
    where
        Q: Queue,
        C: Channel,
        Svc: Service<Request<RequestBody<B>>, Response = Response<R>> + Clone + Send + 'static,
        Svc::Future: Send,
        Svc::Error: Into<BoxError> + Send,
        B: Send + 'static,
        R: Body<Data = Bytes> + Send + 'static,
        R::Error: Into<BoxError>,
    {
        let stops = Stops::default();
        // Whoever drops this future stops its turns.
        let _cut = stops.now.clone().drop_guard();
        let held = Arc::<Held>::default();
        let beats = beat(Arc::clone(&self.shared), Arc::clone(&held));
        let measure = measure(Arc::clone(&self.shared));
        let beats = async move {
            join(beats, measure).await;
        };
        let _heart = AbortOnDropHandle::new(spawn(beats));
        let mut hands = Hands {
            service: self.service,
            shared: self.shared,
            held,
            stops,
            turns: TaskTracker::new(),
            body: PhantomData,
        };
        let _open = Open::new(&hands.shared);
        let mut given = self.given;
        hands.work(&mut given, stop).await;
        hands.end(given).await;
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the worker's own task, which it stops"
)]
fn spawn(task: impl Future<Output = ()> + Send + 'static) -> tokio::task::JoinHandle<()> {
    tokio::spawn(task)
}

/// The room of a worker that runs. However the worker ends, the front gives it no more.
struct Open<Q: Queue, C: Channel>(Arc<Shared<Q, C>>);

impl<Q: Queue, C: Channel> Open<Q, C> {
    fn new(shared: &Arc<Shared<Q, C>>) -> Self {
        shared.room.open(shared.plan.concurrency);
        Self(Arc::clone(shared))
    }
}

impl<Q: Queue, C: Channel> Drop for Open<Q, C> {
    fn drop(&mut self) {
        self.0.room.close();
    }
}

/// A worker that runs.
struct Hands<Svc, Q, C, B> {
    service: Svc,
    shared: Arc<Shared<Q, C>>,
    held: Arc<Held>,
    stops: Stops,
    turns: TaskTracker,
    body: PhantomData<fn() -> B>,
}

/// What a look at the store found.
struct Taken {
    turns: Vec<Turn>,
    /// Until when the turns can be counted on.
    until: Instant,
    /// One for each of the turns, at least.
    places: OwnedSemaphorePermit,
}

impl<Svc, Q, C, B> Hands<Svc, Q, C, B> {
    /// Takes what the front gives, and looks for what others left, until it is stopped.
    async fn work<R>(
        &mut self,
        given: &mut UnboundedReceiver<Given>,
        stop: impl Future<Output = ()> + Send,
    ) where
        Q: Queue,
        C: Channel,
        Svc: Service<Request<RequestBody<B>>, Response = Response<R>> + Clone + Send + 'static,
        Svc::Future: Send,
        Svc::Error: Into<BoxError> + Send,
        B: Send + 'static,
        R: Body<Data = Bytes> + Send + 'static,
        R::Error: Into<BoxError>,
    {
        let shared = Arc::clone(&self.shared);
        let mut stop = pin!(stop);
        let mut due = pin!(due(&shared, Instant::now()));
        let mut look = pin!(Fuse::terminated());
        loop {
            tokio::select! {
                () = &mut stop => break,
                Some(Given { turn, until, place }) = given.recv() => {
                    self.begin(turn, until, place);
                }
                places = &mut due, if look.is_terminated() => {
                    look.set(take(&shared, places).fuse());
                }
                taken = &mut look => {
                    due.set(self::due(&shared, self.begin_all(taken)));
                }
            }
        }
        if !look.is_terminated() {
            // What it finds is ours for a whole lease, and nobody would know.
            let found = look.await.turns;
            let turns: Vec<TurnHold> = found.iter().map(|turn| turn.hold).collect();
            shared.give_back(&turns).await;
        }
    }

    /// Begins the turns that a look has found; gives when to look again.
    fn begin_all<R>(&mut self, taken: Taken) -> Instant
    where
        Q: Queue,
        C: Channel,
        Svc: Service<Request<RequestBody<B>>, Response = Response<R>> + Clone + Send + 'static,
        Svc::Future: Send,
        Svc::Error: Into<BoxError> + Send,
        B: Send + 'static,
        R: Body<Data = Bytes> + Send + 'static,
        R::Error: Into<BoxError>,
    {
        let Taken {
            turns,
            until,
            mut places,
        } = taken;
        // As many lines as there was room for: there may be more.
        let is_full = places.num_permits() == turns.len();
        let is_late = turns.iter().any(|turn| turn.overdue > TOO_LATE);
        self.shared.room.set_behind(is_full && is_late);
        for turn in turns {
            if let Some(place) = places.split(1) {
                self.begin(turn, until, place);
            }
        }
        if is_full {
            Instant::now()
        } else {
            Instant::now() + self.shared.plan.look_every
        }
    }

    fn begin<R>(&mut self, turn: Turn, until: Instant, place: OwnedSemaphorePermit)
    where
        Q: Queue,
        C: Channel,
        Svc: Service<Request<RequestBody<B>>, Response = Response<R>> + Clone + Send + 'static,
        Svc::Future: Send,
        Svc::Error: Into<BoxError> + Send,
        B: Send + 'static,
        R: Body<Data = Bytes> + Send + 'static,
        R::Error: Into<BoxError>,
    {
        let holding = self.held.hold(turn.hold, until);
        let shared = Arc::clone(&self.shared);
        let handle = handle(
            shared,
            self.service.clone(),
            (turn, holding),
            self.stops.clone(),
        );
        self.turns.spawn(async move {
            handle.await;
            drop(place);
        });
    }

    /// Ends the turns: those that wait at once, the others when their message has ended, or when
    /// the limit is over.
    async fn end(self, mut given: UnboundedReceiver<Given>)
    where
        Q: Queue,
        C: Channel,
        Svc: Send,
    {
        let limit = self.shared.plan.stop_limit;
        self.shared.room.close();
        self.stops.soon.cancel();
        self.turns.close();
        given.close();
        let mut unbegun = Vec::new();
        while let Some(given) = given.recv().await {
            unbegun.push(given.turn.hold);
        }
        self.shared.give_back(&unbegun).await;
        if timeout(limit, self.turns.wait()).await.is_err() {
            self.stops.now.cancel();
            // Each has one report left, which has a time limit of its own.
            self.turns.wait().await;
        }
    }
}

/// Waits until it is time to look for lines that are due, and there is room for some: at `at`, or
/// earlier if the front says that something waits.
async fn due<Q: Queue, C: Channel>(shared: &Shared<Q, C>, at: Instant) -> OwnedSemaphorePermit {
    let soonest = at.min(Instant::now() + SOONEST);
    tokio::select! {
        () = sleep_until(at) => {}
        () = shared.room.look.notified() => sleep_until(soonest).await,
    }
    match shared.room.free(MOST_LINES).await {
        Some(places) => places,
        // The room is closed: the worker ends.
        None => pending().await,
    }
}

/// Takes as many lines as there are places. A failure is as good as finding none.
async fn take<Q: Queue, C: Channel>(shared: &Shared<Q, C>, places: OwnedSemaphorePermit) -> Taken {
    let lease = shared.plan.lease;
    let until = Instant::now() + usable(lease);
    let lines = places.num_permits();
    let take = shared.context.store.take(lines, AT_ONCE, lease);
    Taken {
        turns: shared.within(take).await.unwrap_or_default(),
        until,
        places,
    }
}

/// A look follows the one before it after this time at the soonest, whatever comes in between.
const SOONEST: Duration = Duration::from_millis(50);

/// How many lines a look takes at most.
const MOST_LINES: usize = 64;

/// Lines that are due for longer are not overtaken by fresh ones.
const TOO_LATE: Duration = Duration::from_secs(1);

impl<Svc, Q, C, B> fmt::Debug for Worker<Svc, Q, C, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").finish_non_exhaustive()
    }
}
