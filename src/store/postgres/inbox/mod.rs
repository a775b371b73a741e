//! The inbox in PostgreSQL.

pub(super) mod accept;
mod accept_ways;
pub(super) mod chores;
pub(super) mod desk;
mod queue;
mod read;
pub(super) mod report;
pub(super) mod tidy;
mod turns;
