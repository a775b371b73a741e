//! Chance that can be repeated.

use std::cell::RefCell;

use rand::distr::{Distribution, StandardUniform};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

thread_local! {
    static SEEDED: RefCell<Option<Xoshiro256PlusPlus>> = const { RefCell::new(None) };
}

/// From here on, nonces and waiting times of this thread are drawn from `seed`: a test of what
/// happens by chance can be repeated. `None` gives real chance back.
///
/// For one thread's own runtime under paused time; never outside of tests, since nonces can be
/// guessed then.
pub fn seed(seed: Option<u64>) {
    SEEDED.set(seed.map(Xoshiro256PlusPlus::seed_from_u64));
}

pub(crate) fn random<T>() -> T
where
    StandardUniform: Distribution<T>,
{
    SEEDED.with_borrow_mut(|seeded| match seeded {
        Some(seeded) => seeded.random(),
        None => rand::random(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_and_none_does_not() {
        let draw = |from| {
            seed(from);
            [random::<u64>(), random()]
        };
        assert_eq!(draw(Some(1)), draw(Some(1)));
        assert_ne!(draw(Some(1)), draw(Some(2)));
        assert_ne!(draw(None), draw(None));
    }
}
