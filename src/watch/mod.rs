//! What to watch: the names of all metrics and tracing fields, in one place.
//!
//! Metrics go through the [`metrics`](https://docs.rs/metrics) facade to whatever recorder the
//! application installs, with the feature of that name; without it nothing is measured, and
//! nothing is spent. With it, each event looks its metric up in the recorder, which costs some
//! 100 ns. [`metric`] lists them, `describe` tells the recorder what they are.
//!
//! Traces are `tracing` spans and events. Each request that carries a message has a span
//! [`SPAN`](field::SPAN) at level `INFO`, in which its handler runs as well; [`field`] lists what is
//! known there. Outcomes are events at `DEBUG`, what an operator should look at is `WARN`, what was
//! given up is `ERROR`.
//!
//! The page [`docs/operations.md`] says what each of them is good for.
//!
//! [`docs/operations.md`]: https://github.com/tower-idempotency/tower-idempotency/blob/main/docs/operations.md
//!
//! ```
//! use tower_idempotency::watch::{field, metric};
//!
//! // Buckets for a histogram, a filter for a log: by constant, not by text.
//! assert_eq!(metric::STORE_SECONDS.name, "idempotency_store_seconds");
//! assert_eq!(field::KEY, "idempotency.key");
//! ```

pub(crate) mod emit;
pub mod field;
pub mod metric;
pub(crate) mod shown;
pub(crate) mod span;
#[cfg(feature = "metrics")]
pub(crate) mod with_metrics;
#[cfg(not(feature = "metrics"))]
pub(crate) mod without_metrics;

#[cfg(feature = "metrics")]
pub use with_metrics::describe;
