//! The story of one request, and its steps.

pub(crate) mod claim;
pub(crate) mod context;
pub(crate) mod recording;
pub(crate) mod run;
pub(crate) mod settle;
pub(crate) mod story;
pub(crate) mod stream;
