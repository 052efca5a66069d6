//! Pauses between tries: doubled up to a limit, with jitter, so that tasks do not try in step.

use std::time::Duration;

use forebay_types::ShardId;
use rand::{RngExt, SeedableRng, rngs::StdRng};

/// The first pause.
const RETRY_MIN: Duration = Duration::from_millis(10);
/// The longest pause.
const RETRY_MAX: Duration = Duration::from_secs(1);

/// The pause before the next try.
pub(super) struct Backoff(Duration);

impl Backoff {
    pub fn new() -> Self {
        Self(RETRY_MIN)
    }

    /// Something went well: begin with short pauses again.
    pub fn reset(&mut self) {
        self.0 = RETRY_MIN;
    }

    /// Waits before the next try: between half of the pause and all of it.
    pub async fn pause(&mut self, rng: &mut StdRng) {
        let jittered = self.0.mul_f64(rng.random_range(0.5..1.0));
        tokio::time::sleep(jittered).await;
        self.0 = (self.0 * 2).min(RETRY_MAX);
    }
}

/// A random number generator for a shard's task.
pub(super) fn generator(seed: u64, shard: ShardId) -> StdRng {
    StdRng::seed_from_u64(seed ^ (u64::from(shard.0) << 32))
}
