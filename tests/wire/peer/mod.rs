//! The peers: who sends the requests, and what they saw of the answers.

pub(crate) mod curl;
pub(crate) mod h2;
pub(crate) mod raw;
pub(crate) mod seen;

pub(crate) use seen::{Ask, Seen};
