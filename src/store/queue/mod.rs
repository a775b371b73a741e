//! Inboxes: messages wait in lines, and are handled in turns.

pub(crate) mod arrival;
pub(crate) mod backlog;
pub(crate) mod contract;
pub(crate) mod turn;

pub use arrival::{Accepted, Arrival, Line, Place, Stage};
pub use backlog::{Backlog, DeadLetter, Death};
pub use contract::Queue;
pub use turn::{Behind, Ended, Onward, Report, Then, Turn, TurnHold, Waiting};
