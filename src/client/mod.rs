//! The sender's half, for clients in Rust: a key for each logical send, and retries that keep it.
//!
//! A client that loses the answer does not know whether its message arrived. Sent again without a
//! key it may be handled twice; given up it may be lost. With one key in all attempts the server
//! runs it once and answers each attempt alike, so the client may retry as often as it likes.
//!
//! [`SetKeyLayer`] makes the key, [`RetryPolicy`] decides about the next attempt, and
//! [`CollectLayer`] reads an answer to its end before it counts as one. Their order:
//!
//! | from outside in | because |
//! | --- | --- |
//! | [`SetKeyLayer`] | one key for all attempts: inside of `retry` each attempt would be a new message |
//! | [`retry`](tower::retry) | |
//! | `timeout` | of one attempt; longer than the server lets a repeat wait, which is 10 s by default |
//! | [`CollectLayer`] | a body that breaks off or stalls is a failed attempt like any other |
//! | the client | |
//!
//! With hyper-util's client:
//!
//! ```
//! use std::time::Duration;
//!
//! use bytes::Bytes;
//! use http::{Request, Response};
//! use http_body_util::Full;
//! use hyper_util::client::legacy::Client;
//! use hyper_util::rt::TokioExecutor;
//! use tower::{BoxError, ServiceBuilder, ServiceExt};
//! use tower_idempotency::client::{CollectLayer, RetryPolicy, SetKeyLayer};
//!
//! # async fn send() -> Result<(), BoxError> {
//! let client = ServiceBuilder::new()
//!     .layer(SetKeyLayer::v7())
//!     .retry(RetryPolicy::new())
//!     .timeout(Duration::from_secs(15))
//!     .layer(CollectLayer::new(1 << 20))
//!     .service(Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>());
//!
//! let message = Request::post("http://127.0.0.1:3000/chat/1/messages")
//!     .header("x-user", "ann")
//!     .header("content-type", "application/json")
//!     .body(Full::from(r#"{"text": "hello"}"#))?;
//! let answer: Response<Bytes> = client.oneshot(message).await?;
//! # Ok(())
//! # }
//! ```
//!
//! With reqwest, whose client is a Tower service of its own types; two lines translate them:
//!
//! ```
//! use std::time::Duration;
//!
//! use bytes::Bytes;
//! use http::{Request, Response};
//! use tower::{BoxError, ServiceBuilder};
//! use tower_idempotency::client::{CollectLayer, RetryPolicy, SetKeyLayer};
//!
//! let client = ServiceBuilder::new()
//!     .layer(SetKeyLayer::v4())
//!     .retry(RetryPolicy::new().attempts(5).give_up_after(Duration::from_secs(30)))
//!     .timeout(Duration::from_secs(15))
//!     .layer(CollectLayer::new(1 << 20))
//!     .map_response(Response::<reqwest::Body>::from)
//!     .filter(|request: Request<Bytes>| reqwest::Request::try_from(request))
//!     .service(reqwest::Client::new());
//! # let _: &dyn tower::Service<Request<Bytes>, Response = Response<Bytes>, Error = BoxError, Future = _> = &client;
//! ```
//!
//! # What outlives the process
//!
//! The layer's key lives as long as the call: whoever drops the call's future, or restarts, and
//! sends again, sends a new message. Where a send must survive that, make the key with
//! [`new_key`] when the user hits send, store it with the message, and set the header; the layer
//! keeps a key that is there.
//!
//! # What is retried
//!
//! Only what has a key, or a safe method, and whose body can be sent again ([`Repeat`]): everything
//! else is sent once, and its answer or error handed on. See [`RetryPolicy`] for which answers are
//! followed by another attempt. gRPC calls are not retried: their outcome is in their trailers, and
//! their messages come as a stream.

mod answer;
mod body;
mod collect;
mod errors;
mod key;
mod retry;
mod set_key;

pub use body::{Once, Repeat};
pub use collect::{Collect, CollectLayer};
pub use errors::{AnyError, RetryError};
pub use key::new_key;
pub use retry::RetryPolicy;
pub use set_key::{SetKey, SetKeyLayer};
