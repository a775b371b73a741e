//! What all schedules draw by chance.

use std::time::Duration;

use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus;

/// How long a lease lasts. Everything else is measured by it.
pub(crate) const LEASE: Duration = Duration::from_secs(1);

/// How long a message travels that does not arrive at once: short of, about, or beyond a lease.
pub(crate) fn way(rng: &mut Xoshiro256PlusPlus) -> Duration {
    let most = pick(rng, &[0.05, 0.3, 1.0, 3.0]);
    LEASE.mul_f64(rng.random_range(0.0..most))
}

pub(crate) fn pick<T: Copy>(rng: &mut Xoshiro256PlusPlus, from: &[T]) -> T {
    from[rng.random_range(0..from.len())]
}
