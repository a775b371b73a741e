//! Renewals.

use std::time::Duration;

use rusqlite::params;

use crate::error::Error;
use crate::store::lease::{Hold, Standing, Token};
use crate::store::sqlite::batch::Batch;
use crate::store::sqlite::clock::Moment;
use crate::store::sqlite::job::{Abandoned, Work};
use crate::store::sqlite::kept;

/// Extends leases from now.
pub(super) struct RenewWork {
    lease: Duration,
    holds: Vec<(kept::Digest, Token)>,
}

impl RenewWork {
    pub(super) fn new(holds: &[Hold], lease: Duration) -> Self {
        let hold = |hold: &Hold| (kept::digest(&hold.key), hold.token);
        Self {
            lease,
            holds: holds.iter().map(hold).collect(),
        }
    }
}

impl Work for RenewWork {
    type Answer = Vec<Standing>;

    const ABANDONED: Abandoned = Abandoned::Drop;

    fn perform(&self, batch: &mut Batch<'_>) -> Result<Vec<Standing>, Error> {
        let until = Moment::now().plus(self.lease).column();
        let renew = |(digest, token): &(kept::Digest, Token)| match batch
            .execute(RENEW, params![digest, token.number(), until])?
        {
            0 => Ok(Standing::Lost),
            _ => Ok(Standing::Renewed),
        };
        self.holds.iter().map(renew).collect()
    }
}

const RENEW: &str = "
UPDATE idempotency_claims SET leased_until = ?3
WHERE key = ?1 AND token = ?2 AND state = 'running'";
