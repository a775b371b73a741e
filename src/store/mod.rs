//! Stores: run it, replay it, it is running, it is something else.

pub(crate) mod contract;

pub use contract::{
    Claim, End, Hold, Lease, Nonce, Settled, Settlement, Sight, Standing, Store, Token, Verdict,
    Wanted,
};
