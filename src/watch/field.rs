//! The names of spans and their fields.

/// The span of a request that carries a message, and of each attempt of an inbox's worker.
pub const SPAN: &str = "idempotency";

/// The channel's name.
pub const CHANNEL: &str = "idempotency.channel";

/// The key of the request's first message: 32 hexadecimal digits, the first half of its
/// [digest](crate::Key::digest), by which a row is found in the stores' tables. In the clear, as
/// `channel/scope/id`, where the layer or inbox was [told so](crate::KeysInLogs).
pub const KEY: &str = "idempotency.key";

/// How many messages the request carries.
pub const MESSAGES: &str = "idempotency.messages";

/// Which attempt of the message this is, from 1: the highest one of the request's.
pub const ATTEMPT: &str = "idempotency.attempt";

/// What the request came to: a value of the label `outcome` of
/// [`REQUESTS`](crate::watch::metric::REQUESTS).
pub const OUTCOME: &str = "idempotency.outcome";

/// All fields.
pub const ALL: [&str; 5] = [CHANNEL, KEY, MESSAGES, ATTEMPT, OUTCOME];
