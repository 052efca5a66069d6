//! When to repeat, and how long to wait before.

use std::{sync::Mutex, time::Duration};

use rand::{Rng as _, RngExt as _, SeedableRng as _, rngs::StdRng};
use tokio::time::Instant;

use crate::{Error, RetryPolicy};

/// The source of pauses and request ids.
#[derive(Debug)]
pub(crate) struct Dice(Mutex<StdRng>);

impl Dice {
    /// From a seed, or from the system's randomness.
    pub(crate) fn new(seed: Option<u64>) -> Self {
        Self(Mutex::new(seed.map_or_else(rand::make_rng, StdRng::seed_from_u64)))
    }

    /// A random id of 32 hexadecimal digits.
    pub(crate) fn request_id(&self) -> String {
        let (high, low) = self.with(|rng| (rng.next_u64(), rng.next_u64()));
        format!("{high:016x}{low:016x}")
    }

    fn up_to(&self, span: Duration) -> Duration {
        span.mul_f64(self.with(|rng| rng.random::<f64>()))
    }

    fn with<T>(&self, f: impl FnOnce(&mut StdRng) -> T) -> T {
        // A poisoned generator is as random as any other.
        f(&mut self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }
}

/// The attempts of one call.
#[derive(Debug)]
pub(crate) struct Attempts {
    policy: RetryPolicy,
    until: Instant,
    made: u32,
}

impl Attempts {
    /// For a call that may take until `until`.
    pub(crate) fn new(policy: RetryPolicy, until: Instant) -> Self {
        Self { policy, until, made: 0 }
    }

    /// When the call gives up.
    pub(crate) fn until(&self) -> Instant {
        self.until
    }

    /// Waits before the next attempt; `false` if there is none.
    pub(crate) async fn again(&mut self, after: &Error, dice: &Dice) -> bool {
        self.made += 1;
        if !after.is_transient() || self.made >= self.policy.attempts {
            return false;
        }
        let pause = self.pause(after.retry_after(), dice);
        if Instant::now() + pause >= self.until {
            return false;
        }
        tokio::time::sleep(pause).await;
        true
    }

    fn pause(&self, asked: Option<Duration>, dice: &Dice) -> Duration {
        let factor = 1u32.checked_shl(self.made - 1).unwrap_or(u32::MAX);
        let bound = self.policy.initial.saturating_mul(factor).min(self.policy.max);
        dice.up_to(bound).saturating_add(asked.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_bound_and_honour_the_server() {
        let dice = Dice::new(Some(1));
        let policy = RetryPolicy::default();
        let mut longest = Duration::ZERO;
        for made in 1..40 {
            let attempts = Attempts { policy, until: Instant::now(), made };
            let pause = attempts.pause(None, &dice);
            assert!(pause <= policy.max.min(policy.initial * 2u32.saturating_pow(made - 1)));
            longest = longest.max(pause);
            assert!(attempts.pause(Some(Duration::from_secs(7)), &dice) >= Duration::from_secs(7));
        }
        assert!(longest > policy.max / 2, "{longest:?}");
    }

    #[test]
    fn request_ids_differ() {
        let dice = Dice::new(None);
        assert_ne!(dice.request_id(), dice.request_id());
        assert_eq!(Dice::new(Some(3)).request_id(), Dice::new(Some(3)).request_id());
    }
}
