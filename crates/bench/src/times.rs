//! The clock of the benchmark, and histograms of times that many tasks record.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use hdrhistogram::Histogram;

/// Longer times count as one hour.
const LONGEST_US: u64 = 3_600_000_000;

/// The monotonic clock.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
pub fn now() -> Instant {
    Instant::now()
}

/// A histogram of times in microseconds. All clones share one histogram.
#[derive(Debug, Clone)]
pub struct SharedHistogram(Arc<Mutex<Histogram<u64>>>);

impl SharedHistogram {
    /// An empty histogram.
    pub fn new() -> anyhow::Result<Self> {
        Ok(Self(Arc::new(Mutex::new(Histogram::new_with_bounds(1, LONGEST_US, 3)?))))
    }

    /// Records one time.
    pub fn record(&self, time: Duration) {
        self.with(|times| times.saturating_record(time.as_micros() as u64));
    }

    /// Removes all recorded times.
    pub fn reset(&self) {
        self.with(Histogram::reset);
    }

    /// Gives access to the histogram while it is locked.
    pub fn with<R>(&self, access: impl FnOnce(&mut Histogram<u64>) -> R) -> R {
        access(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_time_counts_however_long_it_is() {
        let times = SharedHistogram::new().unwrap();
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
