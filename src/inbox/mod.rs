//! Ack first: a message is stored and acknowledged at once, and handled from a queue.
//!
//! For webhooks whose handler is slow: their senders wait some seconds for an answer and then send
//! again. Here the answer goes out as soon as the message's key and the raw request are committed;
//! the same handler then runs from the queue, with retries, one message at a time in each
//! conversation. A repeat is acknowledged and dropped, however far the first one has come.
//!
//! ```
//! use axum::{Router, routing::post};
//! use tower_idempotency::channel::WhatsApp;
//! use tower_idempotency::inbox::Inbox;
//! # use tower_idempotency::store::MemoryStore as SqliteStore;
//!
//! # async fn app() -> Result<Router, tower_idempotency::Error> {
//! // Called by the worker, once for each message, however often it is delivered.
//! let handler = Router::new().route("/whatsapp", post(|body: String| async move {
//!     println!("{body}");
//! }));
//!
//! # let store = SqliteStore::new();
//! # let inbox = Inbox::new(store, WhatsApp::unverified()).may_lose_waiting();
//! # #[cfg(any())]
//! let inbox = Inbox::new(store, WhatsApp::unverified());
//! let (front, worker) = inbox.wrap(handler)?;
//! tokio::spawn(worker.run());
//! Ok(Router::new().route_service("/whatsapp", front))
//! # }
//! ```
//!
//! # What the handler gets
//! The request as it came: method, URI, headers and body bytes. A request with several messages is
//! split where its channel can cut it: each part keeps everything but the other messages. Two
//! extensions come with it: [`Received`] (the message, the attempt, when it first came, whether it
//! was verified) and [`Claimed`](crate::Claimed). Other extensions and trailers are not stored.
//!
//! # What its answer says
//! | answer | the message |
//! | --- | --- |
//! | 2xx | is done; its payload goes, its key stays |
//! | any other, an error, a panic, a broken body, too late | is tried again, after `Retry-After` or with growing pauses, until its attempts are spent; then it is dead |
//! | extension [`Failure::Later`] | is tried again at its time |
//! | extension [`Failure::Never`], or a status of [`Inbox::gives_up_on`] | is dead |
//! | extension [`Disposition`](crate::Disposition) | is done (`Record`), tried again (`Release`) or dead (`Unknown`), whatever the status |
//!
//! # What is promised
//! * What was answered 2xx was committed first, and is handled until it is done or dead.
//! * In a conversation one message at a time, in the order of acceptance, over all processes on
//!   the store. Order holds between messages of which one was acknowledged before the other was
//!   sent; a dead message lets the others pass, and a redriven one comes behind them.
//! * A message is handled once unless its worker dies, or cannot reach the store for a whole
//!   lease, in the middle of it.
//!
//! Dead messages are listed, redriven and dropped through [`Letters`], and over HTTP through the
//! router `admin` of the feature of that name.

#[cfg(feature = "admin")]
mod admin;
mod attempt;
pub(crate) mod build;
mod commit;
mod counts;
mod decide;
pub(crate) mod failure;
mod front;
mod held;
pub(crate) mod letters;
mod measure;
pub(crate) mod raw;
mod receive;
mod received;
mod room;
mod shared;
mod turn;
pub(crate) mod worker;

#[cfg(feature = "admin")]
pub use admin::admin;
pub use build::{Inbox, Wrapped};
pub use counts::InboxCounts;
pub use failure::Failure;
pub use front::Front;
pub use letters::{Letter, Letters, Stored};
pub use received::Received;
pub use worker::Worker;
