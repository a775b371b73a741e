//! A thousand sends through a proxy that loses a third of the answers.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{Request, Response};
use http_body_util::Full;
use tower::{BoxError, Service, ServiceBuilder, ServiceExt};
use tower_idempotency::client::{CollectLayer, RetryPolicy, SetKeyLayer};

use crate::lossy::{Fate, Lossy};
use crate::server::{ANSWER, Server, hyper_client, layer};

const SENDS: usize = 1000;

/// Field case B38.
#[tokio::test]
async fn a_thousand_sends_over_hyper_are_a_thousand_messages() {
    let server = Server::with(layer()).await;
    let proxy = lossy(&server).await;
    let client = ServiceBuilder::new()
        .layer(SetKeyLayer::v7())
        .retry(policy())
        .timeout(Duration::from_secs(15))
        .layer(CollectLayer::new(1024))
        .service(hyper_client::<Full<Bytes>>());
    send_all(&client, proxy.address).await;
    each_once(&server, &proxy);
}

#[tokio::test]
async fn a_thousand_sends_over_reqwest_are_a_thousand_messages() {
    let server = Server::with(layer()).await;
    let proxy = lossy(&server).await;
    let client = ServiceBuilder::new()
        .layer(SetKeyLayer::v4())
        .retry(policy())
        .timeout(Duration::from_secs(15))
        .layer(CollectLayer::new(1024))
        .map_response(Response::<reqwest::Body>::from)
        .filter(|request: Request<Bytes>| reqwest::Request::try_from(request))
        .service(reqwest::Client::new());
    send_all(&client, proxy.address).await;
    each_once(&server, &proxy);
}

#[tokio::test]
async fn without_the_servers_layer_lost_answers_make_duplicates() {
    let server = Server::bare(Duration::ZERO).await;
    let proxy = lossy(&server).await;
    let client = ServiceBuilder::new()
        .layer(SetKeyLayer::v7())
        .retry(policy())
        .layer(CollectLayer::new(1024))
        .service(hyper_client::<Full<Bytes>>());
    send_all(&client, proxy.address).await;
    some_twice(&server);
}

#[tokio::test]
async fn without_a_key_lost_answers_make_duplicates() {
    let server = Server::with(layer()).await;
    let proxy = lossy(&server).await;
    let client = ServiceBuilder::new()
        .retry(policy().id_elsewhere())
        .layer(CollectLayer::new(1024))
        .service(hyper_client::<Full<Bytes>>());
    send_all(&client, proxy.address).await;
    some_twice(&server);
}

/// Field case B98.
#[tokio::test]
async fn with_a_key_for_each_attempt_lost_answers_make_duplicates() {
    let server = Server::with(layer()).await;
    let proxy = lossy(&server).await;
    let client = ServiceBuilder::new()
        .retry(policy().id_elsewhere())
        .layer(SetKeyLayer::v7())
        .layer(CollectLayer::new(1024))
        .service(hyper_client::<Full<Bytes>>());
    send_all(&client, proxy.address).await;
    some_twice(&server);
}

/// Of three POSTs one is answered by nothing, or by half an answer, though the server has it.
async fn lossy(server: &Server) -> Lossy {
    let fate = |number| match number % 6 {
        0 => Fate::LoseAnswer,
        3 => Fate::CutAnswer,
        _ => Fate::Pass,
    };
    Lossy::before(server.address, fate).await
}

/// Enough attempts that a run of bad luck does not end a test.
fn policy() -> RetryPolicy {
    RetryPolicy::new()
        .attempts(40)
        .backoff(Duration::from_millis(1), Duration::from_millis(20))
}

/// Sends `SENDS` texts, a few at a time, each until it is answered.
async fn send_all<S, B>(client: &S, address: SocketAddr)
where
    S: Service<Request<B>, Response = Response<Bytes>, Error = BoxError> + Clone,
    B: From<String>,
{
    let sends = (0..SENDS).map(|number| async move {
        let request = Request::post(format!("http://{address}/messages"))
            .body(B::from(format!("message {number}")))
            .unwrap();
        let answer = client.clone().oneshot(request).await.unwrap();
        assert_eq!(answer.status(), 201);
        assert_eq!(answer.body(), ANSWER);
    });
    stream::iter(sends)
        .buffer_unordered(16)
        .collect::<()>()
        .await;
}

fn each_once(server: &Server, proxy: &Lossy) {
    let texts = server.texts();
    assert_eq!(texts.len(), SENDS);
    assert!(texts.values().all(|times| *times == 1), "{texts:?}");
    let lost = proxy.posts() / 3;
    println!("{SENDS} sends, {lost} answers lost: {SENDS} messages, 0 duplicates");
    assert!(lost > 400, "{lost}");
}

fn some_twice(server: &Server) {
    let texts = server.texts();
    assert_eq!(texts.len(), SENDS);
    let duplicates = texts.values().sum::<usize>() - SENDS;
    println!("{SENDS} sends: {duplicates} duplicates");
    assert!(duplicates > 300, "{duplicates}");
}
