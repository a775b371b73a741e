//! The inbox in the same file.

pub(super) mod accept;
pub(super) mod letters;
pub(super) mod line;
mod queue;
pub(super) mod report;
pub(super) mod take;
