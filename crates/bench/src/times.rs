//! Times that many tasks take down.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use hdrhistogram::Histogram;

/// They are told apart up to an hour; what takes longer counts as an hour.
const LONGEST_US: u64 = 3_600_000_000;

/// Times to the microsecond. The clones are one and the same.
#[derive(Debug, Clone)]
pub struct Times(Arc<Mutex<Histogram<u64>>>);

impl Times {
    /// None yet.
    pub fn new() -> anyhow::Result<Self> {
        Ok(Self(Arc::new(Mutex::new(Histogram::new_with_bounds(1, LONGEST_US, 3)?))))
    }

    /// One more.
    pub fn record(&self, time: Duration) {
        self.with(|times| times.saturating_record(time.as_micros() as u64));
    }

    /// Forgets all so far.
    pub fn reset(&self) {
        self.with(Histogram::reset);
    }

    /// Looks at all of them.
    pub fn with<R>(&self, look: impl FnOnce(&mut Histogram<u64>) -> R) -> R {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_time_counts_however_long_it_is() {
        let times = Times::new().unwrap();
        for time in [Duration::from_micros(3), Duration::from_secs(7), Duration::from_secs(7_200)] {
            times.clone().record(time);
        }
        times.with(|times| {
            assert_eq!((times.len(), times.min()), (3, 3));
            assert!((6_900_000..7_100_000).contains(&times.value_at_quantile(0.5)));
            assert!(times.max() >= LONGEST_US);
        });
        times.reset();
        assert!(times.with(|times| times.is_empty()));
    }
}
