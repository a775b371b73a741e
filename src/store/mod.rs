//! Stores: run it, replay it, it is running, it is something else.

pub(crate) mod contract;
mod memory;

pub use contract::{
    Claim, End, Hold, Lease, Nonce, Settled, Settlement, Sight, Standing, Store, Token, Verdict,
    Wanted,
};
pub use memory::MemoryStore;
