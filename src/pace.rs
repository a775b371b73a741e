//! How often and how long: every interval, as pure functions.

use std::time::Duration;

/// How much of a lease its holder counts on, from just before it asked for it: a tenth is left
/// for the difference between two clocks' rates, and for the way of a settlement.
pub(crate) fn usable(lease: Duration) -> Duration {
    lease / 10 * 9
}

/// How often a lease is renewed: two renewals may fail before it lapses.
pub(crate) fn renew_every(lease: Duration) -> Duration {
    lease / 3
}

/// How long to wait before looking at another process's run again, for the n-th time: 5 ms at
/// first, doubled up to 200 ms. `jitter` from 0 to 1 spreads the waiters over half of it.
pub(crate) fn look_again_after(n: u32, jitter: f64) -> Duration {
    let full = Duration::from_millis(5)
        .saturating_mul(1 << n.min(6))
        .min(Duration::from_millis(200));
    full.mul_f64(1.0 - jitter.clamp(0.0, 1.0) / 2.0)
}

/// How long to wait before a settlement that failed is sent again, for the n-th time.
pub(crate) fn settle_again_after(n: u32, jitter: f64) -> Duration {
    let full = Duration::from_millis(50)
        .saturating_mul(1 << n.min(7))
        .min(Duration::from_secs(5));
    full.mul_f64(1.0 - jitter.clamp(0.0, 1.0) / 2.0)
}

/// How often a settlement is sent while its caller waits. What follows happens behind its back.
pub(crate) const SETTLE_TRIES: u32 = 2;

/// How long an unconfirmed settlement is tried again: many leases, so that a store may be
/// repaired meanwhile, and not for ever.
pub(crate) fn give_up_settling_after(lease: Duration) -> Duration {
    lease.saturating_mul(20)
}

/// `Retry-After` for a message that is running: when its lease ends at the latest.
pub(crate) fn retry_after_running(remaining: Duration) -> Duration {
    remaining.clamp(RETRY_SOON, Duration::from_mins(1))
}

/// `Retry-After` where nothing says how long it takes.
pub(crate) const RETRY_SOON: Duration = Duration::from_secs(1);

/// How long a gRPC call may be silent where only a streaming one is, before it is taken for one.
/// Clients of this world send the end of a call right behind its one message.
pub(crate) const PATIENCE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_grow_to_a_bound() {
        assert_eq!(look_again_after(0, 0.0), Duration::from_millis(5));
        assert_eq!(look_again_after(40, 0.0), Duration::from_millis(200));
        assert_eq!(look_again_after(40, 1.0), Duration::from_millis(100));
        assert_eq!(settle_again_after(40, 0.0), Duration::from_secs(5));
        let long = Duration::from_hours(1);
        assert_eq!(retry_after_running(long), Duration::from_mins(1));
        assert_eq!(retry_after_running(Duration::ZERO), RETRY_SOON);
    }
}
