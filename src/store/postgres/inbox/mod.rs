//! The inbox in PostgreSQL.

mod accept;
pub(super) mod chores;
pub(super) mod desk;
mod queue;
mod read;
mod report;
mod tidy;
mod turns;
