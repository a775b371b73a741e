//! Connections that become a `WebSocket`: bytes go both ways.
//!
//! Nothing else: an upgrade to HTTP/2 would carry requests past the layer.

use http::header::{CONNECTION, HeaderValue, UPGRADE};
use http::{HeaderMap, Request, Response, StatusCode};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;

/// A client's wish to upgrade.
pub(crate) struct Upgrade {
    client: OnUpgrade,
}

const WEBSOCKET: HeaderValue = HeaderValue::from_static("websocket");

impl Upgrade {
    /// Takes the wish out of a request.
    pub(crate) fn of<B>(request: &mut Request<B>) -> Option<Self> {
        let protocol = request.headers().get(UPGRADE)?.as_bytes();
        protocol
            .eq_ignore_ascii_case(WEBSOCKET.as_bytes())
            .then(|| Self {
                client: hyper::upgrade::on(request),
            })
    }

    /// Passes the wish on, for whoever is on the other side of the next connection.
    pub(crate) fn ask(headers: &mut HeaderMap) {
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, WEBSOCKET);
    }

    /// Joins the two connections if the upstream agreed.
    pub(crate) fn join<B>(self, response: &mut Response<B>) {
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return;
        }
        let upstream = hyper::upgrade::on(&mut *response);
        Self::ask(response.headers_mut());
        tokio::spawn(async move {
            let (Ok(client), Ok(upstream)) = tokio::join!(self.client, upstream) else {
                return;
            };
            let (mut client, mut upstream) = (TokioIo::new(client), TokioIo::new(upstream));
            // Either side may break off; the other is then closed.
            tokio::io::copy_bidirectional(&mut client, &mut upstream)
                .await
                .ok();
        });
    }
}
