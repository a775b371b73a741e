//! What must hold whatever is sent: one module per target, each with a function that panics where
//! it does not. The targets call it under libFuzzer, `tests/seeds.rs` without.

pub mod channels;
pub mod cut;
pub mod forms;
pub mod json;
mod request;
pub mod seeds;
#[path = "../../tests/support/senders.rs"]
mod senders;
pub mod signatures;
pub mod xml;
