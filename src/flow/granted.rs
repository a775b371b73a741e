//! The messages that a request may run.

use std::sync::Arc;
use std::time::Duration;

use crate::claimed::{By, Claimed, Message};
use crate::delivery::Delivery;
use crate::policy::Head;
use crate::store::contract::Store;
use crate::store::lease::{Hold, Lease};
use crate::store::loan::Loan;
use crate::underway::Mine;

/// The messages that a request may run.
#[derive(Debug)]
pub(crate) struct Granted {
    /// With the place of each message among the request's deliveries.
    pub(crate) leases: Vec<(usize, Lease)>,
    /// What keeps the request from being answered with a success, beside its own messages.
    pub(crate) open: Option<Open>,
    pub(crate) mine: Mine,
}

/// A message of a request that is not done, whatever became of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Open {
    /// It runs elsewhere, or was given back: it may be done after this time.
    Running(Duration),
    /// Nobody knows what became of it, for so long.
    Unknown(Duration),
}

impl Granted {
    /// The transaction that the run may borrow. That of several messages goes by the token of the
    /// first.
    pub(crate) fn loan(&self, store: &impl Store) -> Option<Arc<dyn Loan>> {
        let (_, lease) = self.leases.first()?;
        store.loan(lease.token())
    }

    /// What the handler is told. Leases and messages stand in the same order.
    pub(crate) fn claimed(
        &self,
        loan: Option<Arc<dyn Loan>>,
        deliveries: Vec<Delivery>,
    ) -> Claimed {
        let mut leases = self.leases.iter().peekable();
        let mut others = Vec::new();
        let mut messages = Vec::with_capacity(self.leases.len());
        for (place, delivery) in deliveries.into_iter().enumerate() {
            match leases.next_if(|(at, _)| *at == place) {
                Some((_, lease)) => messages.push(Message::new(delivery, lease)),
                None => others.push(delivery.key().clone()),
            }
        }
        Claimed::new(By::Layer, messages, others, loan)
    }

    pub(crate) fn holds(&self) -> Vec<Hold> {
        self.leases.iter().map(|(_, lease)| lease.hold()).collect()
    }

    /// While one of the messages is not this run's and not done, or the handler gave one back, the
    /// answer will be no success; and while the handler's writes are not committed, it may be none.
    /// So its head cannot go out before the end.
    pub(crate) fn head(&self, claimed: &Claimed) -> Head {
        if self.open.is_some() || claimed.gives_some_back() || claimed.is_in_transaction() {
            Head::WaitsForTheEnd
        } else {
            Head::MayGoFirst
        }
    }
}
