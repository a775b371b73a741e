//! An HTTP proxy that loses, cuts, delays or doubles what passes through it, over real sockets.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::uri::Authority;
use http::{Method, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tower::BoxError;

/// What happens to one POST. Other requests pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is answered.
    Pass,
    /// Its connection is closed before it reaches the server.
    LoseRequest,
    /// The server answers, and the connection is closed instead.
    LoseAnswer,
    /// The connection is closed in the middle of the answer's body.
    CutAnswer,
    /// The server has it twice at once; the second answer is passed on.
    Double,
    /// It is answered so much later.
    Late(Duration),
    /// It is answered with this status and reason, and does not reach the server.
    Refuse(u16, &'static str),
}

/// A listening proxy; its connections end when it is dropped.
pub(crate) struct Lossy {
    pub(crate) address: SocketAddr,
    rules: Arc<Rules>,
    _tasks: JoinSet<()>,
}

struct Rules {
    server: Authority,
    client: Client<HttpConnector, Full<Bytes>>,
    keys: Mutex<Vec<String>>,
    fate: Box<dyn Fn(usize) -> Fate + Send + Sync>,
}

type Answer = Response<UnsyncBoxBody<Bytes, BoxError>>;

impl Lossy {
    /// A proxy before the server at this address. `fate` is told the number of each POST, from 0.
    pub(crate) async fn before(
        server: SocketAddr,
        fate: impl Fn(usize) -> Fate + Send + Sync + 'static,
    ) -> Self {
        Self::at(([127, 0, 0, 1], 0).into(), server, fate).await
    }

    /// A proxy that listens at an address of its own.
    pub(crate) async fn at(
        address: SocketAddr,
        server: SocketAddr,
        fate: impl Fn(usize) -> Fate + Send + Sync + 'static,
    ) -> Self {
        let rules = Arc::new(Rules {
            server: server.to_string().parse().unwrap(),
            client: Client::builder(TokioExecutor::new()).build_http(),
            keys: Mutex::default(),
            fate: Box::new(fate),
        });
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, Arc::clone(&rules)));
        Self {
            address,
            rules,
            _tasks: tasks,
        }
    }

    /// The key of each POST so far.
    pub(crate) fn keys(&self) -> Vec<String> {
        self.rules.keys.lock().unwrap().clone()
    }

    /// How many POSTs came so far.
    pub(crate) fn posts(&self) -> usize {
        self.rules.keys.lock().unwrap().len()
    }
}

async fn accept(listener: TcpListener, rules: Arc<Rules>) {
    let mut connections = JoinSet::new();
    loop {
        let (socket, _) = listener.accept().await.unwrap();
        let rules = Arc::clone(&rules);
        connections.spawn(async move {
            let service = service_fn(|request| pass(&rules, request));
            // An error is how a connection is closed without an answer.
            drop(
                http1::Builder::new()
                    .serve_connection(TokioIo::new(socket), service)
                    .await,
            );
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn pass(rules: &Rules, request: Request<Incoming>) -> Result<Answer, BoxError> {
    let fate = rules.fate_of(&request);
    let (head, body) = request.into_parts();
    let request = Request::from_parts(head, Full::new(body.collect().await?.to_bytes()));
    match fate {
        Fate::LoseRequest => return Err("the request is lost".into()),
        Fate::Refuse(status, why) => return refusal(status, why),
        Fate::Late(time) => tokio::time::sleep(time).await,
        Fate::Pass | Fate::LoseAnswer | Fate::CutAnswer | Fate::Double => {}
    }
    let answer = if fate == Fate::Double {
        let (first, second) = tokio::join!(rules.send(request.clone()), rules.send(request));
        first?;
        second?
    } else {
        rules.send(request).await?
    };
    match fate {
        Fate::LoseAnswer => Err("the answer is lost".into()),
        Fate::CutAnswer => Ok(answer.map(|whole| cut(&whole))),
        Fate::Pass | Fate::LoseRequest | Fate::Refuse(..) | Fate::Double | Fate::Late(_) => {
            Ok(answer.map(|whole| {
                Full::new(whole)
                    .map_err(|never| match never {})
                    .boxed_unsync()
            }))
        }
    }
}

impl Rules {
    fn fate_of(&self, request: &Request<Incoming>) -> Fate {
        if request.method() != Method::POST {
            return Fate::Pass;
        }
        let key = request.headers().get("idempotency-key");
        let key = key.map_or("", |key| key.to_str().unwrap());
        let mut keys = self.keys.lock().unwrap();
        keys.push(key.to_owned());
        (self.fate)(keys.len() - 1)
    }

    /// The server's whole answer.
    async fn send(&self, mut request: Request<Full<Bytes>>) -> Result<Response<Bytes>, BoxError> {
        let path = request.uri().path_and_query().cloned().unwrap();
        *request.uri_mut() = http::Uri::builder()
            .scheme("http")
            .authority(self.server.clone())
            .path_and_query(path)
            .build()?;
        let (head, body) = self.client.request(request).await?.into_parts();
        Ok(Response::from_parts(head, body.collect().await?.to_bytes()))
    }
}

fn refusal(status: u16, why: &str) -> Result<Answer, BoxError> {
    let problem = Full::from(format!(r#"{{"title": "{why}"}}"#));
    let body = problem.map_err(|never| match never {}).boxed_unsync();
    Ok(Response::builder().status(status).body(body)?)
}

/// Half of a body, and when that is on its way the end of its connection.
fn cut(whole: &Bytes) -> UnsyncBoxBody<Bytes, BoxError> {
    let half = Frame::data(whole.slice(..whole.len() / 2));
    let end = async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        Err("the answer is cut".into())
    };
    let frames = stream::iter([Ok(half)]).chain(stream::once(end));
    BodyExt::boxed_unsync(StreamBody::new(frames))
}
