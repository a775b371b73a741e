//! A chat handler that writes two rows: in the transaction of its run, and in one of its own.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use deadpool_postgres::{Manager, Pool};
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use tokio_postgres::NoTls;
use tower::{Layer, Service, ServiceExt, service_fn};
use tower_idempotency::channel::{IdempotencyKey, Scope};
use tower_idempotency::store::{PostgresOptions, PostgresStore};
use tower_idempotency::{Claimed, IdempotencyLayer, RequestBody};

use crate::flush::SlowFlush;
use crate::load::{self, Shown};
use crate::message;
use crate::options::Options;
use crate::seasoned;
use crate::table::Runs;

/// The counters lie apart, so that handlers do not wait for one another.
const TABLES: &str = "
CREATE TABLE messages (id text PRIMARY KEY, text text NOT NULL);
CREATE TABLE counters (chat integer PRIMARY KEY, unread integer NOT NULL);
INSERT INTO counters SELECT n, 0 FROM generate_series(0, 9999) AS s (n);";

const INSERT: &str = "INSERT INTO messages (id, text) VALUES ($1, $2)";
const COUNT: &str = "UPDATE counters SET unread = unread + 1 WHERE chat = $1";

/// As many connections as the store lends.
const CONNECTIONS: usize = 32;

pub(crate) fn run(options: &Options) {
    if options.wants("effects") {
        compare(None, options, "a handler that writes two rows");
    }
    if options.wants("effects") || options.wants("effects-slow") {
        let slow = SlowFlush::compile();
        compare(
            Some(&slow.path()),
            options,
            "the same, each flush 2 ms longer",
        );
    }
}

fn compare(preload: Option<&Path>, options: &Options, title: &str) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let cluster = runtime.block_on(seasoned::start(preload));
    let (pool, store) = runtime.block_on(open(&cluster.url()));
    let mut runs = Runs::default();
    for _ in 0..options.rounds {
        for callers in options.in_flight() {
            let server = Some(cluster.pid());
            let mut push = |name: &str, shown: Shown| {
                runs.push(&format!("{callers} in flight, {name}"), shown);
            };
            let own = own(&pool);
            let load = load::closed(callers, options.time, server, own);
            push("no layer, a transaction of its own", runtime.block_on(load));
            for (name, effects) in [("in the run's transaction", 0), ("and an effect", 1)] {
                let shared = shared(&store, effects);
                let load = load::closed(callers, options.time, server, shared);
                push(name, runtime.block_on(load));
            }
        }
    }
    runs.print(title, "a transaction of its own");
}

async fn open(url: &str) -> (Pool, PostgresStore) {
    let manager = Manager::new(url.parse().unwrap(), NoTls);
    let pool = Pool::builder(manager)
        .max_size(CONNECTIONS)
        .build()
        .unwrap();
    pool.get()
        .await
        .unwrap()
        .batch_execute(TABLES)
        .await
        .unwrap();
    let options = PostgresOptions::new()
        .transactions(CONNECTIONS)
        .limit(Duration::from_mins(1))
        .without_sweeper();
    let store = PostgresStore::connect_with(url, &options).await.unwrap();
    store.migrate().await.unwrap();
    (pool, store)
}

fn chat() -> i32 {
    rand::random_range(0..10_000)
}

type Sent = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

/// Requests to a handler without a layer.
fn own(pool: &Pool) -> impl Fn() -> Sent + Clone + Send + 'static {
    let pool = pool.clone();
    move || {
        let pool = pool.clone();
        Box::pin(async move {
            let mut client = pool.get().await.unwrap();
            let transaction = client.transaction().await.unwrap();
            let insert = transaction.prepare_cached(INSERT).await.unwrap();
            let count = transaction.prepare_cached(COUNT).await.unwrap();
            let id = message::id();
            transaction
                .execute(&insert, &[&id, &"hello"])
                .await
                .unwrap();
            transaction.execute(&count, &[&chat()]).await.unwrap();
            transaction.commit().await.unwrap();
        })
    }
}

/// Requests to the same handler behind the layer, with so many effects each.
fn shared(store: &PostgresStore, effects: usize) -> impl Fn() -> Sent + Clone + Send + 'static {
    let handler = service_fn(
        move |request: Request<RequestBody<Full<Bytes>>>| async move {
            let claimed = request.extensions().get::<Claimed>().unwrap();
            let transaction = claimed.transaction().await.unwrap();
            let insert = transaction.prepare_cached(INSERT).await.unwrap();
            let count = transaction.prepare_cached(COUNT).await.unwrap();
            let id = claimed.messages()[0].key().id();
            transaction
                .execute(&insert, &[&id, &"hello"])
                .await
                .unwrap();
            transaction.execute(&count, &[&chat()]).await.unwrap();
            for _ in 0..effects {
                claimed.enqueue("notify", "hello").unwrap();
            }
            Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(b"stored"))))
        },
    );
    let channel = IdempotencyKey::scoped_by(Scope::header("x-user"));
    let layer = IdempotencyLayer::new(store.clone(), channel);
    let service = Arc::new(layer.layer(handler));
    move || {
        let service = Arc::clone(&service);
        Box::pin(async move {
            let mut service = Arc::unwrap_or_clone(service);
            let request = Request::post("/")
                .header("idempotency-key", message::id())
                .header("x-user", "ann")
                .body(Full::new(Bytes::from_static(b"hello")))
                .unwrap();
            let response = service.ready().await.unwrap().call(request).await.unwrap();
            assert!(response.status().is_success(), "{response:?}");
            response.into_body().collect().await.unwrap();
        })
    }
}
