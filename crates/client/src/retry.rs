//! Whether and when a failed call is retried.

use std::{sync::Mutex, time::Duration};

use rand::{Rng as _, RngExt as _, SeedableRng as _, rngs::StdRng};
use tokio::time::Instant;

use crate::{config::RetryPolicy, error::Error};

/// The random numbers of retry pauses and request ids, shared by a client's clones.
#[derive(Debug)]
pub(crate) struct SharedRng(Mutex<StdRng>);

impl SharedRng {
    /// Seeded, or from the system's random numbers.
    pub(crate) fn new(seed: Option<u64>) -> Self {
        Self(Mutex::new(seed.map_or_else(rand::make_rng, StdRng::seed_from_u64)))
    }

    /// A random id of 32 hexadecimal digits.
    pub(crate) fn request_id(&self) -> String {
        let (high, low) = self.with(|rng| (rng.next_u64(), rng.next_u64()));
        format!("{high:016x}{low:016x}")
    }

    fn up_to(&self, max: Duration) -> Duration {
        max.mul_f64(self.with(|rng| rng.random::<f64>()))
    }

    fn with<T>(&self, f: impl FnOnce(&mut StdRng) -> T) -> T {
        // A panic while the lock is held leaves a valid generator.
        f(&mut self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }
}

/// The attempts of one call.
#[derive(Debug)]
pub(crate) struct Attempts {
    /// Limits pauses and attempts.
    policy: RetryPolicy,
    /// When the call must be over.
    until: Instant,
    /// Attempts so far; pauses grow with it.
    made: u32,
}

impl Attempts {
    /// For a call that must be over at `until`.
    pub(crate) fn new(policy: RetryPolicy, until: Instant) -> Self {
        Self { policy, until, made: 0 }
    }

    /// When the call gives up.
    pub(crate) fn until(&self) -> Instant {
        self.until
    }

    /// Waits until the next attempt. `false`: there is none, and the error is final.
    pub(crate) async fn wait_for_retry(&mut self, after: &Error, rng: &SharedRng) -> bool {
        self.made += 1;
        if !after.is_transient() || self.made >= self.policy.attempts {
            return false;
        }
        let pause = self.pause(after.retry_after(), rng);
        if Instant::now() + pause >= self.until {
            return false;
        }
        tokio::time::sleep(pause).await;
        true
    }

    fn pause(&self, retry_after: Option<Duration>, rng: &SharedRng) -> Duration {
        let factor = 1u32.checked_shl(self.made - 1).unwrap_or(u32::MAX);
        let bound = self.policy.initial.saturating_mul(factor).min(self.policy.max);
        rng.up_to(bound).saturating_add(retry_after.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_maximum_and_respect_the_server() {
        let rng = SharedRng::new(Some(1));
        let policy = RetryPolicy::default();
        let mut longest = Duration::ZERO;
        for made in 1..40 {
            let attempts = Attempts { policy, until: Instant::now(), made };
            let pause = attempts.pause(None, &rng);
            assert!(pause <= policy.max.min(policy.initial * 2u32.saturating_pow(made - 1)));
            longest = longest.max(pause);
            assert!(attempts.pause(Some(Duration::from_secs(7)), &rng) >= Duration::from_secs(7));
        }
        assert!(longest > policy.max / 2, "{longest:?}");
    }

    #[test]
    fn request_ids_differ() {
        let rng = SharedRng::new(None);
        assert_ne!(rng.request_id(), rng.request_id());
        assert_eq!(SharedRng::new(Some(3)).request_id(), SharedRng::new(Some(3)).request_id());
    }
}
