//! The blocks of Rust in the README and the pages of `docs/`, compiled as they stand there.

#[doc = include_str!("../README.md")]
mod readme {}

#[doc = include_str!("../docs/guide.md")]
mod guide {}

#[doc = include_str!("../docs/layers.md")]
mod layers {}

#[doc = include_str!("../docs/inbox.md")]
mod inbox {}

#[doc = include_str!("../docs/operations.md")]
mod operations {}

#[doc = include_str!("../docs/channels.md")]
mod channels {}

#[doc = include_str!("../docs/clients.md")]
mod clients {}
