//! Runs every chat message once: one [`IdempotencyLayer`] for any Tower service.
//!
//! Every chat message arrives at least once. A webhook's sender waits a few seconds for an answer
//! and posts the message again; a phone on a train sends, loses the answer and sends again. Text
//! and time cannot tell a repeat from a second "ok"; the channel's own message id can, or a key
//! that the client makes once for each logical send.
//!
//! The layer takes that key out of the request, **claims** it in a [store] before the inner
//! service is called, and **replays the recorded success** to a repeat.
//!
//! ```
//! use axum::{Router, routing::post};
//! use tower_idempotency::IdempotencyLayer;
//! use tower_idempotency::channel::{IdempotencyKey, Scope};
//! use tower_idempotency::store::MemoryStore;
//!
//! # fn app() -> Router {
//! // Clients send `Idempotency-Key`; `x-user` says whose key it is.
//! let channel = IdempotencyKey::scoped_by(Scope::header("x-user"));
//! let layer = IdempotencyLayer::new(MemoryStore::new(), channel);
//! Router::new()
//!     .route("/messages", post(|text: String| async move { format!("got {text}") }))
//!     .layer(layer)
//! # }
//! ```
//!
//! Several senders, with a store of their own retention and signatures checked first:
//!
//! ```
//! use std::time::Duration;
//!
//! use tower_idempotency::IdempotencyLayer;
//! use tower_idempotency::channel::{ByPath, IdempotencyKey, JsonPath, Scope, WhatsApp};
//! use tower_idempotency::store::MemoryStore;
//!
//! # fn layer() -> Result<IdempotencyLayer<MemoryStore, ByPath>, tower_idempotency::Error> {
//! let channels = ByPath::new()
//!     .at("/chat", IdempotencyKey::scoped_by(Scope::header("x-user")))
//!     .at("/webhooks/whatsapp", WhatsApp::unverified())
//!     .at("/webhooks/shop", JsonPath::new("shop", "$.events[*].id")?.unverified());
//! let layer = IdempotencyLayer::new(MemoryStore::new(), channels)
//!     .lease(Duration::from_secs(30))
//!     .max_response(256 << 10);
//! # Ok(layer)
//! # }
//! ```
//!
//! Where the handler takes longer than the sender waits, [`inbox`] stores the message, answers, and
//! runs the handler from a queue.
//!
//! What a handler writes can be committed with its record, see [`effects`]. The [guide] says what to
//! choose, and how to put the layer before an existing handler.
//!
//! [guide]: https://github.com/tower-idempotency/tower-idempotency/blob/main/docs/guide.md
//!
//! # The way of a request
//!
//! | step | does | leaves early with |
//! | --- | --- | --- |
//! | concern | judges method, path and headers: can this carry a message? | the inner service, body untouched |
//! | read | collects the body, within limits | 413, 408; a cut body is no request |
//! | verify | the sender's signature, over the raw bytes | 401, nothing claimed |
//! | name | the messages in head and body | the inner service if there is none |
//! | claim | all keys in one store call | a replay, 409 or 503 with `Retry-After`, 422 |
//! | run | the inner service, with [`Claimed`] in the request's extensions | |
//! | settle | records a success, releases a failure, parks what nobody knows where that is asked for; message by message | |
//!
//! A caller that goes away after the claim was sent does not stop the run: it goes on in a task of
//! its own, and [`IdempotencyLayer::drain`] waits for such runs at shutdown.
//!
//! # What is promised
//!
//! 1. While a key's row lives, at most one record is written for it, and it is never replaced.
//! 2. The store never grants two unexpired leases for one key.
//! 3. A caller that was given a success, and every later repeat that is given one, get the same
//!    one until retention or forgetting removes it.
//! 4. After a caller was given a success, no run is started for that key while its row lives.
//! 5. Effects written in the claim's own database [transaction](effects) are committed at most once,
//!    and exactly once if anybody was ever given a success.
//! 6. If faults stop and the sender repeats, the key ends done: no key is stuck for longer than a
//!    lease, unless it is parked.
//! 7. A 2xx to a webhook means that every message in it is done, or durably stored by an inbox.
//! 8. Ack first: what was answered 2xx was committed first; it is handled until it is done or dead;
//!    in a conversation one at a time, in the order of acceptance.
//!
//! # What is not
//!
//! * That two handlers never execute at the same instant: a process that is paused for longer than
//!   its lease goes on when it wakes. It cannot record; it can still call others. Pass the key and
//!   the [token](store::Token) on to them.
//! * That every success of a handler reaches its caller: where the record is not confirmed, the
//!   caller is told to come again, and gets it then.
//! * Anything past retention: a repeat that comes later is a first message.
//! * That a handler's calls to other systems are made once, if it is cut half way: the next repeat
//!   runs again. For those pass [a key for each step](Message::step_key) on. Where the other system
//!   knows no keys, [park](OnUnknown::Park) what was cut instead, for all channels or
//!   [for one](channel::Parking), and [settle](IdempotencyLayer::settle_unknown) it when it is known
//!   what became of it.
//!
//! # Features
//!
//! | feature | default | gives |
//! | --- | --- | --- |
//! | `sqlite` | yes | the embedded store: one file, no server |
//! | `postgres` | no | the store for production |
//! | `verify` | yes | the senders' signature schemes |
//! | `xml` | yes | senders with XML bodies |
//! | `admin` | no | a small axum router for operators of an inbox |
//! | `axum` | no | [`Claimed`] as an argument of handlers; the path before `nest` cut off its prefix |
//! | `client` | no | the sender's half: a key for each send, and retries that keep it |
//! | `metrics` | no | counters and histograms through the `metrics` facade, see [`watch`] |
//! | `testing` | no | the store contract as a suite of named tests |
#![cfg_attr(docsrs, feature(doc_cfg))]

mod body;
mod canonical;
#[cfg(any(test, feature = "testing"))]
mod chance;
pub mod channel;
mod claimed;
#[cfg(feature = "client")]
pub mod client;
mod coding;
mod counts;
mod delivery;
mod detach;
pub mod effects;
mod error;
mod fingerprint;
mod flow;
pub mod inbox;
mod key;
mod layer;
mod outcome;
mod pace;
#[cfg(doctest)]
mod pages;
mod path;
mod policy;
mod problem;
mod record;
mod reply;
mod service;
pub mod store;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod traps;
mod underway;
pub mod verify;
pub mod watch;

pub use body::{RequestBody, ResponseBody};
pub use channel::contract::OnUnknown;
pub use claimed::{Claimed, Message};
pub use counts::Counts;
pub use delivery::Delivery;
pub use error::{BoxError, Error};
pub use fingerprint::{BodyForm, Fingerprint, Part};
pub use flow::known::Known;
pub use key::{Conversation, Key};
pub use layer::IdempotencyLayer;
pub use policy::{Disposition, OnStoreFailure, OnStreamingCall, OnUnconfirmed, Others};
pub use record::{Keep, Payload, Record, Whole};
pub use service::{Idempotency, ResponseFuture};
pub use watch::shown::KeysInLogs;
