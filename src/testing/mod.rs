//! The contracts of this crate as suites of tests, for implementations of your own.

#![expect(clippy::panic, reason = "a test fails by panicking")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::indexing_slicing, reason = "a test fails by panicking")]
#![expect(clippy::string_slice, reason = "a test fails by panicking")]
#![expect(clippy::missing_panics_doc, reason = "the module says so for all")]
#![expect(clippy::wildcard_enum_match_arm, reason = "any other answer is wrong")]

pub mod queue;
pub mod store;

pub use crate::chance::seed;
