//! The rates of a topic, over the last seconds. They take 44 bytes a topic, so there is no list of events:
//! only the last two slots. The older one counts by the part of it that the window still covers.

use forebay_types::Monotonic;

use crate::api::Rates;

/// Counts of events: items enqueued, deliveries begun, acked, failed, items that became dead letters.
pub(crate) type Flow = [u32; 5];

/// The flow of late, over a window of so many seconds.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RecentFlow<const SECONDS: u64 = { Rates::WINDOW.as_secs() }> {
    /// The number of the present slot. Slots are as long as the window.
    slot: u32,
    /// The flow in it.
    now: Flow,
    /// The flow in the slot before it.
    before: Flow,
}

impl<const SECONDS: u64> RecentFlow<SECONDS> {
    /// Something happened.
    pub fn add(&mut self, flow: Flow, at: Monotonic) {
        self.turn(at);
        for (sum, count) in self.now.iter_mut().zip(flow) {
            *sum = sum.saturating_add(count);
        }
    }

    /// How often each happened a second, over the window that ends now.
    pub fn per_second(mut self, at: Monotonic) -> [f64; 5] {
        let passed = self.turn(at);
        let mut rates = [0.0; 5];
        for (rate, (now, before)) in rates.iter_mut().zip(self.now.into_iter().zip(self.before)) {
            *rate = (f64::from(before) * (1.0 - passed) + f64::from(now)) / SECONDS as f64;
        }
        rates
    }

    /// Goes on to the slot of a time. Returns which part of it has passed.
    fn turn(&mut self, at: Monotonic) -> f64 {
        let slots = at.since(Monotonic::default()).as_secs_f64() / SECONDS as f64;
        // Slots of ten seconds are counted for a thousand years.
        let slot = slots as u32;
        if slot > self.slot {
            self.before = if slot == self.slot + 1 { self.now } else { Flow::default() };
            (self.slot, self.now) = (slot, Flow::default());
        }
        slots.fract()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(seconds: f64) -> Monotonic {
        Monotonic::default().plus(Duration::from_secs_f64(seconds))
    }

    #[test]
    fn a_steady_flow_has_its_rate_at_any_time() {
        let mut recent: RecentFlow = RecentFlow::default();
        for tenth in 0..400 {
            recent.add([2, 1, 0, 0, 0], at(f64::from(tenth) / 10.0));
            if tenth > 200 {
                let rates = recent.per_second(at(f64::from(tenth) / 10.0));
                assert!((rates[0] - 20.0).abs() < 0.3 && (rates[1] - 10.0).abs() < 0.2, "{tenth}: {rates:?}");
            }
        }
    }

    #[test]
    fn what_is_older_than_two_windows_is_forgotten() {
        let mut recent: RecentFlow = RecentFlow::default();
        recent.add([10, 0, 0, 0, 0], at(3.0));
        assert_eq!(recent.per_second(at(4.0))[0], 1.0);
        assert_eq!(recent.per_second(at(15.0))[0], 0.5);
        assert_eq!(recent.per_second(at(20.0))[0], 0.0);
        recent.add([10, 0, 0, 0, 0], at(45.0));
        assert_eq!(recent.per_second(at(45.0))[0], 1.0);
    }
}
