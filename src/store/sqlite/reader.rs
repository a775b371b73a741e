//! The thread that looks.

use std::sync::mpsc::Receiver;

use rusqlite::{Connection, OptionalExtension, params};
use tokio::sync::oneshot;

use crate::error::Error;
use crate::store::contract::Sight;
use crate::store::sqlite::clock::Moment;
use crate::store::sqlite::fault;
use crate::store::sqlite::kept;
use crate::store::sqlite::post::{self, Message};

/// A look at some keys.
pub(super) struct Look {
    digests: Vec<kept::Digest>,
    caller: oneshot::Sender<Result<Vec<Seen>, Error>>,
}

/// What was seen of one key; the caller makes it a sight.
pub(super) struct Seen {
    state: Option<kept::State>,
    at: Moment,
}

pub(super) type Reply = oneshot::Receiver<Result<Vec<Seen>, Error>>;

impl Look {
    pub(super) fn new(digests: Vec<kept::Digest>) -> (Self, Reply) {
        let (caller, reply) = oneshot::channel();
        (Self { digests, caller }, reply)
    }
}

impl Seen {
    /// The answer, whose record is read here and not on the reader's thread.
    pub(super) fn sight(self) -> Result<Sight, Error> {
        Ok(match self.state {
            None => Sight::Absent,
            Some(kept::State::Running { until }) => Sight::Running {
                remaining: self.at.until(until),
            },
            Some(kept::State::Done { record }) => Sight::Done(kept::record(&record)?),
        })
    }
}

/// Serves until the last handle is gone or one asks to stop.
pub(super) fn run(connection: Connection, looks: &Receiver<Message<Look>>) {
    while let Ok(message) = looks.recv() {
        match message {
            Message::Job(look) if look.caller.is_closed() => {}
            Message::Job(look) => {
                let seen = look.digests.iter().map(|digest| see(&connection, digest));
                // A caller who went away needs no answer.
                drop(look.caller.send(seen.collect()));
            }
            Message::Stop(caller) => {
                drop(connection);
                return post::stopped(caller);
            }
        }
    }
}

fn see(connection: &Connection, digest: &kept::Digest) -> Result<Seen, Error> {
    let at = Moment::now();
    let look = || {
        connection
            .prepare_cached(LOOK)?
            .query_row(params![digest, at.column()], |row| Ok(kept::state(row)))
            .optional()
    };
    Ok(Seen {
        state: look().map_err(fault::of_call)?.transpose()?,
        at,
    })
}

/// A row whose retention has ended is as good as none.
const LOOK: &str = "
SELECT state, leased_until, record FROM idempotency_claims AS claim
WHERE key = ?1 AND (
    state <> 'done' OR expires_at > ?2 OR idle IS NOT NULL AND EXISTS (
        SELECT 1 FROM idempotency_conversations AS conversation
        WHERE conversation.conversation = claim.conversation AND latest_at + idle > ?2))";
