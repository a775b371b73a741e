//! Passes requests on to an upstream over HTTP/1.1.

use std::convert::Infallible;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::uri::Authority;
use http::{Request, Response, StatusCode, Version};
use http_body::Body;
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tower_idempotency::BoxError;

use crate::forward;
use crate::upgrade::Upgrade;

/// The upstream's answer, or the gateway's own.
pub(crate) type Answer = Response<Either<Incoming, Full<Bytes>>>;

/// A service that passes requests on. A clone shares the connections.
#[derive(Debug)]
pub(crate) struct Proxy<B> {
    client: Client<HttpConnector, B>,
    upstream: Authority,
    timeout: Duration,
}

impl<B> Proxy<B>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    pub(crate) fn new(upstream: Authority, timeout: Duration) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(Duration::from_secs(5)));
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(Duration::from_secs(30))
            .build(connector);
        Self {
            client,
            upstream,
            timeout,
        }
    }

    async fn pass_on(self, mut request: Request<B>) -> Answer {
        let upgrade = Upgrade::of(&mut request);
        let (mut head, body) = request.into_parts();
        forward::to_upstream(&mut head);
        head.version = Version::HTTP_11;
        head.extensions.clear();
        match forward::uri(&head.uri, &self.upstream) {
            Ok(uri) => head.uri = uri,
            Err(_) => return refusal(StatusCode::BAD_REQUEST),
        }
        if upgrade.is_some() {
            Upgrade::ask(&mut head.headers);
        }
        let asked = self.client.request(Request::from_parts(head, body));
        let mut answer = match tokio::time::timeout(self.timeout, asked).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => {
                tracing::warn!(?error, upstream = %self.upstream, "the upstream gave no answer");
                return refusal(StatusCode::BAD_GATEWAY);
            }
            Err(_) => return refusal(StatusCode::GATEWAY_TIMEOUT),
        };
        forward::hop(answer.headers_mut());
        if let Some(upgrade) = upgrade {
            upgrade.join(&mut answer);
        }
        answer.map(Either::Left)
    }
}

impl<B> Clone for Proxy<B> {
    fn clone(&self) -> Self {
        Self {
            client: self.client.clone(),
            upstream: self.upstream.clone(),
            timeout: self.timeout,
        }
    }
}

/// An answer of the gateway's own. None of them is a success, so the key is free again.
pub(crate) fn refusal(status: StatusCode) -> Answer {
    let text = status.canonical_reason().unwrap_or_default();
    let mut answer = Response::new(Either::Right(Full::from(text)));
    *answer.status_mut() = status;
    answer
}

impl<B> tower::Service<Request<B>> for Proxy<B>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Answer;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Answer, Infallible>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let answer = self.clone().pass_on(request);
        Box::pin(async { Ok(answer.await) })
    }
}
