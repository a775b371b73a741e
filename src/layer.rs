//! The layer and its options.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use http::header::HeaderName;
use tower_layer::Layer;

use crate::channel::contract::{Channel, OnUnknown};
use crate::counts::{Counters, Counts, Mode};
use crate::detach::Detached;
use crate::error::Error;
use crate::fingerprint::BodyForm;
use crate::flow::context::{Context, Said};
use crate::flow::known::{Known, settle};
use crate::key::Key;
use crate::policy::{
    Comparison, Effect, OnStoreFailure, OnStreamingCall, OnUnconfirmed, Options, Others,
};
use crate::record::Keep;
use crate::service::Idempotency;
use crate::store::contract::Store;
use crate::store::unknown::Resolved;
use crate::store::watched::watched;
use crate::traps::{Trap, traps};
use crate::underway::Underway;
use crate::watch::shown::KeysInLogs;

/// Runs every message once: claims its key before the inner service is called, and replays the
/// recorded success to a repeat.
///
/// # Where it stands
///
/// Behind what belongs to one exchange with one client, in front of what belongs to the message:
///
/// ```
/// # use std::time::Duration;
/// # use axum::{Router, http::StatusCode, routing::post};
/// # use tower::ServiceBuilder;
/// # use tower_http::compression::CompressionLayer;
/// # use tower_http::cors::CorsLayer;
/// # use tower_http::timeout::TimeoutLayer;
/// # use tower_http::trace::TraceLayer;
/// use tower_idempotency::IdempotencyLayer;
/// use tower_idempotency::channel::{IdempotencyKey, Scope};
/// use tower_idempotency::store::MemoryStore;
///
/// let channel = IdempotencyKey::scoped_by(Scope::header("x-user"));
/// let idempotency = IdempotencyLayer::new(MemoryStore::new(), channel);
/// let layers = ServiceBuilder::new() // the first is outermost
///     .layer(TraceLayer::new_for_http())
///     .layer(CorsLayer::permissive())
///     .layer(CompressionLayer::new())
///     .layer(TimeoutLayer::with_status_code(
///         StatusCode::GATEWAY_TIMEOUT,
///         Duration::from_secs(30),
///     ))
///     // authentication, if the scope is what it found out
///     .layer(idempotency);
/// let app: Router = Router::new().route("/messages", post(|| async { "done" })).layer(layers);
/// ```
///
/// The page [`docs/layers.md`] has each layer, and what becomes of the other order.
///
/// [`docs/layers.md`]: https://github.com/tower-idempotency/tower-idempotency/blob/main/docs/layers.md
///
/// # Sharing
///
/// A clone, and every service that it makes, shares the store, the counts and the running
/// messages. Options are set before the first service is made; a value set here overrides what
/// the channel brings along.
///
/// Mounted twice on the way of a request, with the same keys, it claims once: the inner layer passes
/// on what the outer one has decided.
#[must_use = "a layer does nothing until it is mounted"]
pub struct IdempotencyLayer<S, C> {
    /// Shared by all services, so that making one costs a reference count: axum makes one for
    /// each request to a router whose state was not given yet.
    context: Arc<Context<S, C>>,
}

impl<S: Store, C: Channel> IdempotencyLayer<S, C> {
    /// A layer over a store, for the messages of a channel.
    pub fn new(store: S, channel: C) -> Self {
        let context = Context {
            store: watched(store),
            channel: Arc::new(channel),
            options: Options::default(),
            counters: Arc::default(),
            underway: Arc::new(Underway::new()),
            detached: Arc::new(Detached::new()),
            said: Said::nothing(),
        };
        Self {
            context: Arc::new(context),
        }
    }

    /// How long a run may go without its lease being renewed. Default: 30 s.
    ///
    /// A run that is alive renews it every third of it. After a process died, its messages can be
    /// run again when their leases have lapsed: make it shorter than the sender goes on
    /// repeating, and longer than a process may be paused.
    ///
    /// # Panics
    /// If it is zero: no run could begin under it.
    pub fn lease(self, lease: Duration) -> Self {
        assert!(!lease.is_zero(), "a lease of no time");
        self.with(|options| options.lease = lease)
    }

    /// How long a repeat waits for the first run before it is told to come again.
    /// Default: the channel's; 10 s for clients that make their own key.
    pub fn wait(self, wait: Duration) -> Self {
        self.with(|options| options.wait = Some(wait))
    }

    /// How long records are kept. Default: the channel's. A repeat that comes later runs again,
    /// so it must be longer than the sender goes on repeating.
    pub fn keep(self, keep: Keep) -> Self {
        self.with(|options| options.keep = Some(keep))
    }

    /// Whether a repeat must be the same request, and in which form its body is compared.
    /// Default: the channel's.
    pub fn compare(self, compare: Option<BodyForm>) -> Self {
        self.with(|options| options.compare = Comparison::AsLayer(compare))
    }

    /// The largest request body, in bytes. A larger one is answered 413. Default: 1 MiB.
    pub fn max_request(self, bytes: usize) -> Self {
        self.with(|options| options.max_request = bytes)
    }

    /// How long a request's body may take to come. A later one is answered 408. Default: 60 s.
    ///
    /// Nothing is claimed before the body is whole, so a sender that trickles its bytes holds
    /// up to [`max_request`](Self::max_request) of memory and its connection, and no key.
    pub fn read_limit(self, limit: Duration) -> Self {
        self.with(|options| options.read_limit = limit)
    }

    /// What a gRPC call gets that carries a key and streams its requests. Default: it is refused.
    pub fn on_streaming_call(self, choice: OnStreamingCall) -> Self {
        self.with(|options| options.on_streaming_call = choice)
    }

    /// The largest response body that is kept, in bytes. A larger one reaches its caller
    /// untouched; a repeat is told that it was not kept. Default: 1 MiB.
    pub fn max_response(self, bytes: usize) -> Self {
        self.with(|options| options.max_response = bytes)
    }

    /// How long one store call may take. Default: 5 s.
    ///
    /// # Panics
    /// If it is zero: no store could answer.
    pub fn store_limit(self, limit: Duration) -> Self {
        assert!(!limit.is_zero(), "a store limit of no time");
        self.with(|options| options.store_limit = limit)
    }

    /// What a request gets when the store does not answer. Default: 503 with `Retry-After`.
    pub fn on_store_failure(self, choice: OnStoreFailure) -> Self {
        self.with(|options| options.on_store_failure = choice)
    }

    /// What a caller gets when its success could not be recorded. Default: 503 with
    /// `Retry-After`.
    pub fn on_unconfirmed(self, choice: OnUnconfirmed) -> Self {
        self.with(|options| options.on_unconfirmed = choice)
    }

    /// What becomes of a message whose run ended without saying whether its work was done: a
    /// timeout, a panic, a process that died. Default: the channel's; each of this crate's
    /// [runs again](OnUnknown::RunAgain), unless [`Parking`](crate::channel::Parking) is around it.
    ///
    /// Where that is parked, what turns a panic into an answer (`CatchPanicLayer`) belongs outside
    /// of this layer: inside, its 500 is an answer like any other, and the next repeat runs. A
    /// timeout outside only ends the exchange with the caller: the run goes on and is recorded.
    pub fn on_unknown(self, choice: OnUnknown) -> Self {
        self.with(|options| options.on_unknown = Some(choice))
    }

    /// What the handler is given of a batch in which some messages are done or run elsewhere.
    /// Default: they are cut out of the body.
    pub fn others(self, choice: Others) -> Self {
        self.with(|options| options.others = choice)
    }

    /// Also records answers with this status, such as 404. Default: 2xx and 3xx are recorded, and
    /// everything else is run again by the next repeat.
    pub fn also_record(self, status: StatusCode) -> Self {
        self.with(|options| options.also_recorded.push(status))
    }

    /// Replaces the list of header fields that are left out of records. Default: `Date`,
    /// `Set-Cookie`, `WWW-Authenticate`, `Authentication-Info`, and the CORS fields.
    ///
    /// Hop-by-hop fields and framing belong to one connection and are never recorded.
    pub fn not_replayed(self, fields: impl IntoIterator<Item = HeaderName>) -> Self {
        self.with(|options| options.not_replayed = fields.into_iter().collect())
    }

    /// How many runs may go on in tasks of their own: those whose callers left, and those whose
    /// responses stream. Beyond it, requests with a key are answered 503 before they are claimed;
    /// no run is cut. Default: 65,536.
    pub fn max_detached(self, runs: usize) -> Self {
        self.with(|options| options.max_detached = runs)
    }

    /// How many repeats may wait for the runs of others at the same time. One more is told at once
    /// to come again. Default: 1,024.
    ///
    /// A repeat that waits holds its connection and its body, so whoever sends a running key over
    /// and over holds up to this many times [`max_request`](Self::max_request) of memory.
    pub fn max_waiting(self, repeats: usize) -> Self {
        self.with(|options| options.max_waiting = repeats)
    }

    /// How traces name messages. Default: by a digest that names no person.
    pub fn keys_in_logs(self, keys: KeysInLogs) -> Self {
        self.with(|options| options.keys = keys)
    }

    /// Changes the options; services made before keep theirs.
    fn with(mut self, change: impl FnOnce(&mut Options)) -> Self {
        change(&mut Arc::make_mut(&mut self.context).options);
        self
    }

    /// The layer only looks: it counts and traces what it would have done, and changes nothing.
    /// Default: it acts.
    ///
    /// Every request runs the handler, at once, with its own body and without the extension
    /// [`Claimed`](crate::Claimed), and gets the handler's own answer: nothing is blocked, refused,
    /// held back or delayed, whatever the store does. A caller that leaves ends its handler, as
    /// without the layer. In a task beside it, the layer does as it would: it claims the key once
    /// the handler has read the body, renews the lease while the handler runs, and records the
    /// handler's success or releases the key. [`counts`](Self::counts), metrics (`mode="observe"`)
    /// and traces then say what would have happened.
    ///
    /// # What it writes
    /// The same rows as a layer that acts, since only they tell a repeat: keys, records with bodies
    /// up to [`max_response`](Self::max_response), and their retention. So it also shows what the
    /// store will have to bear; and once the layer acts, what was recorded before is replayed.
    /// Where two requests with one key both run, the first one's answer is recorded.
    ///
    /// # What it does not see
    /// A request whose body the handler does not read to its end counts as `unread`: to read on
    /// would change what the sender sees. It costs a copy of the head, a task, and as much memory
    /// as the two bodies take, up to the limits.
    pub fn observe_only(mut self) -> Self {
        let context = Arc::make_mut(&mut self.context);
        context.options.effect = Effect::Observes;
        context.counters = Arc::new(Counters::of(Mode::Observe));
        self
    }

    /// Looks for options that cannot work with the channel: keys that are kept for a shorter time
    /// than the channel's sender goes on repeating.
    ///
    /// The first service that the layer makes traces them as errors, once; call this at the start
    /// of a server that shall rather not begin. What only may go wrong is a warning there: a lease
    /// that is longer than the sender goes on repeating, so that no repeat comes after it where a
    /// process dies.
    ///
    /// # Errors
    /// [Misconfigured](Error::is_misconfigured), with the first of them.
    pub fn check(&self) -> Result<(), Error> {
        for trap in self.traps() {
            if let Trap::Certain(what) = trap {
                return Err(Error::misconfigured(what));
            }
        }
        Ok(())
    }

    fn traps(&self) -> Vec<Trap> {
        let context = &self.context;
        traps(&context.options, &context.channel.all_terms())
    }

    /// What this layer did until now.
    pub fn counts(&self) -> Counts {
        self.context.counters.snapshot()
    }

    /// Settles a message whose run ended without saying whether its work was done, once that is
    /// known. Its repeats get the record then, or run.
    ///
    /// Any process may do so whose layer has the same store and channels; it need not serve.
    /// Refused while the run's lease is alive: the answer says how the message stands.
    /// [`store::settle_unknown`](crate::store::settle_unknown) is what it does, and says more.
    ///
    /// Rows whose outcome is unknown are those that are running and lapsed:
    ///
    /// ```sql
    /// -- PostgreSQL
    /// SELECT channel, scope, id, attempt, claimed_at, lease_until FROM idempotency
    ///     WHERE state = 'running' AND lease_until <= now();
    /// -- SQLite: a view with readable times
    /// SELECT channel, scope, id, attempt, claimed_at, leased_until FROM idempotency
    ///     WHERE state = 'running' AND leased_until <= datetime('now');
    /// ```
    ///
    /// [`Key::restored`] makes a key of a row's texts. Nobody else needs an index for this, so it
    /// reads the table from end to end.
    ///
    /// Takes up to the store's [limit](Self::store_limit). Dropped half way, it is done or not, or
    /// the key counts as running for half a minute and then as unknown again.
    ///
    /// # Errors
    /// If the store cannot tell; [misconfigured](Error::is_misconfigured) if the key's channel is
    /// none of this layer's.
    pub async fn settle_unknown(&self, key: &Key, known: Known) -> Result<Resolved, Error> {
        settle(&self.context, key, known).await
    }

    /// Waits until no run goes on without a caller, for `limit` at most, and gives the number of
    /// those that still do.
    ///
    /// Call it after the server's own shutdown, which returns before such runs end; a run that
    /// is cut by the end of the process is run again once its lease has lapsed, unless that is
    /// parked.
    ///
    /// Safe to drop; the runs go on.
    pub async fn drain(&self, limit: Duration) -> usize {
        self.context.detached.drain(limit).await
    }
}

impl<S: Store, C: Channel, Svc> Layer<Svc> for IdempotencyLayer<S, C> {
    type Service = Idempotency<Svc, S, C>;

    fn layer(&self, inner: Svc) -> Self::Service {
        self.context.said.traps.call_once(|| {
            self.traps().iter().for_each(Trap::say);
        });
        Idempotency::new(inner, Arc::clone(&self.context))
    }
}

impl<S, C> Clone for IdempotencyLayer<S, C> {
    fn clone(&self) -> Self {
        Self {
            context: Arc::clone(&self.context),
        }
    }
}

impl<S, C> fmt::Debug for IdempotencyLayer<S, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdempotencyLayer")
            .field("options", &self.context.options)
            .finish_non_exhaustive()
    }
}
