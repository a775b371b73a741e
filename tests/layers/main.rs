//! Proves what each order of this layer and those of tower-http does: a test per order. The page
//! `docs/layers.md` says which order to use.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod app;
mod bodies;
mod coding;
mod cors;
mod limits;
mod tracing;
