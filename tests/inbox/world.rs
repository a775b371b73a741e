//! An inbox on the memory store, with a handler that does what the message's id says.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceExt, service_fn};
use tower_idempotency::channel::JsonPath;
use tower_idempotency::inbox::{Failure, Front, Inbox, Letters, Received};
use tower_idempotency::store::MemoryStore;
use tower_idempotency::verify::Unverified;
use tower_idempotency::{Claimed, Disposition, RequestBody};

pub(crate) type Handled = Request<RequestBody<Full<Bytes>>>;
pub(crate) type Handler = BoxCloneSyncService<Handled, Response<Full<Bytes>>, BoxError>;
pub(crate) type Hook = Unverified<JsonPath>;

/// A sender whose body is `{"messages": [{"id": …, "chat": …}, …]}`.
pub(crate) fn hook() -> Hook {
    JsonPath::new("hook", "$.messages[*].id")
        .unwrap()
        .conversation("$.messages[*].chat")
        .unwrap()
        .required()
        .unverified()
}

/// One run of the handler.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) id: String,
    pub(crate) attempt: u32,
    pub(crate) began: Instant,
    pub(crate) ended: Option<Instant>,
    pub(crate) first_received_at: SystemTime,
    pub(crate) request: String,
}

/// What the handler did.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<Run>>>, Arc<Notify>);

impl Log {
    pub(crate) fn runs(&self) -> Vec<Run> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn ids(&self) -> Vec<String> {
        self.runs().into_iter().map(|run| run.id).collect()
    }

    /// The runs of one message.
    pub(crate) fn of(&self, id: &str) -> Vec<Run> {
        let mut runs = self.runs();
        runs.retain(|run| run.id == id);
        runs
    }

    fn begin(&self, run: Run) -> usize {
        let mut runs = self.0.lock().unwrap();
        runs.push(run);
        self.1.notify_waiters();
        runs.len() - 1
    }

    fn end(&self, at: usize) {
        self.0.lock().unwrap()[at].ended = Some(Instant::now());
        self.1.notify_waiters();
    }

    /// Waits until the log is as it should be.
    pub(crate) async fn until(&self, is_so: impl Fn(&[Run]) -> bool) -> Vec<Run> {
        loop {
            let changed = self.1.notified();
            let runs = self.runs();
            if is_so(&runs) {
                return runs;
            }
            changed.await;
        }
    }

    /// Waits until so many runs have ended.
    pub(crate) async fn ended(&self, count: usize) -> Vec<Run> {
        self.until(|runs| runs.iter().filter(|run| run.ended.is_some()).count() >= count)
            .await
    }
}

/// An inbox that runs.
pub(crate) struct World {
    pub(crate) store: MemoryStore,
    pub(crate) front: Front<Handler, MemoryStore, Hook, Full<Bytes>>,
    pub(crate) log: Log,
    stop: Option<oneshot::Sender<()>>,
    worker: JoinHandle<()>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(|inbox| inbox)
    }

    /// An inbox with options.
    pub(crate) fn with(
        options: impl FnOnce(Inbox<MemoryStore, Hook>) -> Inbox<MemoryStore, Hook>,
    ) -> Self {
        Self::on(MemoryStore::new(), Log::default(), options)
    }

    /// One more process on a store.
    pub(crate) fn on(
        store: MemoryStore,
        log: Log,
        options: impl FnOnce(Inbox<MemoryStore, Hook>) -> Inbox<MemoryStore, Hook>,
    ) -> Self {
        let inbox = options(Inbox::new(store.clone(), hook()).may_lose_waiting());
        let (front, worker) = inbox.wrap(handler(&log)).unwrap();
        let (stop, stopped) = oneshot::channel();
        let stopped = async {
            // A test that drops the sender stops its worker, too.
            stopped.await.ok();
        };
        Self {
            store,
            front,
            log,
            stop: Some(stop),
            worker: tokio::spawn(worker.run_until(stopped)),
        }
    }

    /// Posts a body and gives status and body of the answer.
    pub(crate) async fn post(&self, body: impl ToString) -> (StatusCode, String) {
        let request = Request::post("/hook?x=1")
            .header("x-line", "1")
            .header("x-line", "2")
            .body(Full::from(body.to_string()))
            .unwrap();
        self.send(request).await
    }

    pub(crate) async fn send(&self, request: Request<Full<Bytes>>) -> (StatusCode, String) {
        let response = self.front.clone().oneshot(request).await.unwrap();
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    /// Delivers one message, which must be acknowledged.
    pub(crate) async fn deliver(&self, chat: &str, id: &str) {
        let (status, _) = self.post(batch(&[(chat, id)])).await;
        assert_eq!(status, StatusCode::OK);
    }

    pub(crate) fn letters(&self) -> Letters<MemoryStore> {
        Letters::new(self.store.clone())
    }

    /// Waits until nothing waits.
    pub(crate) async fn drained(&self) {
        while self.letters().backlog().await.unwrap().lines > 0 {
            sleep(Duration::from_millis(1)).await;
        }
    }

    /// Tells the worker to stop, and waits until it has.
    pub(crate) async fn stop(&mut self) {
        drop(self.stop.take());
        (&mut self.worker).await.unwrap();
    }

    /// Aborts the worker's task.
    pub(crate) fn abort(&self) {
        self.worker.abort();
    }
}

pub(crate) fn batch(messages: &[(&str, &str)]) -> Value {
    let message = |(chat, id): &(&str, &str)| json!({"chat": chat, "id": id});
    json!({"messages": messages.iter().map(message).collect::<Vec<_>>()})
}

/// Notes each run, and answers as the id says, by its first word:
/// `ok`, `slow` (2 s), `fail` (500), `fail2` (500 twice, then 200), `never`, `later` (in 7 s, once),
/// `after` (503 with `Retry-After: 120`, once), `panic`, `error`, `broken`, `hang`, `given` (200
/// with `Release`), `kept` (500 with `Record`).
pub(crate) fn handler(log: &Log) -> Handler {
    let log = log.clone();
    BoxCloneSyncService::new(service_fn(move |request: Handled| {
        handle(log.clone(), request)
    }))
}

async fn handle(log: Log, request: Handled) -> Result<Response<Full<Bytes>>, BoxError> {
    let Some(received) = request.extensions().get::<Received>().cloned() else {
        return Ok(Response::new("passed".into()));
    };
    let claimed = request.extensions().get::<Claimed>().unwrap().clone();
    assert_eq!(claimed.messages()[0].key(), received.delivery().key());
    assert_eq!(claimed.messages()[0].attempt(), received.attempt());
    let id = received.delivery().key().id().to_owned();
    let (head, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let at = log.begin(Run {
        id: id.clone(),
        attempt: received.attempt(),
        began: Instant::now(),
        ended: None,
        first_received_at: received.first_received_at(),
        request: format!(
            "{} {} {:?} {}",
            head.method,
            head.uri,
            head.headers.get_all("x-line").iter().collect::<Vec<_>>(),
            String::from_utf8_lossy(&body)
        ),
    });
    let answer = answer(&id, received.attempt()).await;
    log.end(at);
    answer
}

async fn answer(id: &str, attempt: u32) -> Result<Response<Full<Bytes>>, BoxError> {
    let word = id.split('-').next().unwrap();
    let status = |code: u16| Response::builder().status(code);
    let done = || Ok(Response::new(Full::default()));
    match (word, attempt) {
        ("slow", _) => {
            sleep(Duration::from_secs(2)).await;
            done()
        }
        ("fail", _) | ("fail2", 1 | 2) => Ok(status(500).body("out of order".into())?),
        ("never", _) => Ok(status(422)
            .extension(Failure::Never)
            .body("no such shop".into())?),
        ("later", 1) => {
            let later = Failure::Later(Duration::from_secs(7));
            Ok(status(200).extension(later).body(Full::default())?)
        }
        ("after", 1) => Ok(status(503)
            .header("retry-after", "120")
            .body(Full::default())?),
        ("panic", _) => panic!("at the disco"),
        ("error", _) => Err("no connection".into()),
        ("hang", _) => std::future::pending().await,
        ("given", 1) => Ok(status(200)
            .extension(Disposition::Release)
            .body(Full::default())?),
        ("kept", _) => Ok(status(500)
            .extension(Disposition::Record)
            .body(Full::default())?),
        _ => done(),
    }
}
