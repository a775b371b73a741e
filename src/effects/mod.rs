//! Side effects once: what a handler does is tied to the record of its run.
//!
//! A message that is handled once is half of it: the row it writes, the counter it bumps and the
//! notification it sends must not happen again either when a run dies half way, loses its lease or
//! is tried again. There are three ways; take the first that fits.
//!
//! | the effect | the way | what is promised |
//! | --- | --- | --- |
//! | is in the store's own database | `claimed.transaction()` (PostgreSQL), `claimed.in_transaction(…)` (SQLite) | committed with the record: at most once, and exactly once if anybody was ever given a success |
//! | is elsewhere (a push, a mail, a call) and must happen | [`claimed.enqueue(…)`](crate::Claimed::enqueue) and an [`Outbox`] | enqueued exactly as above; then handled until it is done or dead. A worker that dies between the call and its end calls again, with the same [key](Effect::step_key) |
//! | is elsewhere and must be in the answer (a charge) | call it in the handler, with [`message.step_key("charge")`](crate::Message::step_key) as its idempotency key | called once for each attempt, always with the same key: once, if the other side keeps keys |
//!
//! What is nice to have and may be lost with the process goes into
//! [`claimed.after_recorded(…)`](crate::Claimed::after_recorded).
//!
//! ```
//! use axum::Extension;
//! use http::StatusCode;
//! use tower_idempotency::Claimed;
//!
//! # #[cfg(feature = "postgres")]
//! async fn order(Extension(claimed): Extension<Claimed>, text: String) -> Result<String, StatusCode> {
//!     let failed = |_| StatusCode::INTERNAL_SERVER_ERROR;
//!     let transaction = claimed.transaction().await.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
//!     transaction.execute("INSERT INTO orders (text) VALUES ($1)", &[&text]).await.map_err(failed)?;
//!     claimed.enqueue("notify", text).map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
//!     Ok("ordered".to_owned()) // committed here: the order, the notification and this answer
//! }
//! ```
//!
//! # What the layer does
//! The record of the run is the last statement of the handler's transaction. It names the run's
//! fencing token; if another run took over, it changes nothing, and everything is rolled back. An
//! error, a panic, and any answer that is no success are rolled back, too. A commit whose answer was
//! lost is looked up in the row, never guessed; until that is known the caller is told to come again.
//!
//! | the caller gets | because |
//! | --- | --- |
//! | the handler's answer | everything is committed, or the handler itself failed |
//! | the other run's record, or 503 `superseded` | another run took over; nothing of this one is in force |
//! | 503 `rolled-back` | the transaction failed: an SQL error that the handler swallowed, a constraint at the commit, the database went away |
//! | 503 `unconfirmed` | the answer to the commit was lost and the store is not there to tell |
//! | 500 `transaction-misused` | the handler said `COMMIT` or `ROLLBACK` itself, or kept the transaction when it returned |
//!
//! An answer over `max_response` is committed, and recorded without its body; it goes out after the
//! commit.
//!
//! In an inbox the same holds for the end of a message: it is done in the transaction of its handler,
//! or tried again.

pub(crate) mod effect;
mod enqueue;
#[cfg(feature = "axum")]
mod extract;
#[cfg(feature = "postgres")]
mod in_postgres;
#[cfg(feature = "sqlite")]
mod in_sqlite;
pub(crate) mod outbox;

pub use effect::{Each, Effect};
pub use outbox::{EffectChannel, Outbox, OutboxWorker};
