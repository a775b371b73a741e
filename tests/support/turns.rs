//! A turn that an accept has given.

use tower_idempotency::store::{Accepted, Line, Place, TurnHold};

/// The one message that was accepted: where it stands, and the turn of its line.
pub(crate) fn begun(line: Line, accepted: &[Accepted]) -> (Place, TurnHold) {
    match accepted {
        [
            Accepted::New {
                place,
                turn: Some(turn),
            },
        ] => (*place, TurnHold::new(line, *turn)),
        other => panic!("not one new message with its turn: {other:?}"),
    }
}
