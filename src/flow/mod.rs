//! The story of one request, and its steps.

pub(crate) mod claim;
pub(crate) mod commit;
pub(crate) mod conclude;
pub(crate) mod context;
pub(crate) mod ending;
pub(crate) mod granted;
pub(crate) mod keep;
pub(crate) mod known;
pub(crate) mod observe;
pub(crate) mod reading;
pub(crate) mod recording;
pub(crate) mod run;
pub(crate) mod settling;
pub(crate) mod story;
pub(crate) mod stream;
