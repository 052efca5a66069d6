//! Where time comes from: an argument, so that a simulation can supply its own.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::{Monotonic, Timestamp};

/// A machine's two clocks.
pub trait Clock: Send + Sync + 'static {
    /// Civil time. It may step, forwards or back.
    fn wall(&self) -> Timestamp;
    /// Time that never steps.
    fn monotonic(&self) -> Monotonic;
}

/// The clocks of the operating system.
#[derive(Debug)]
pub struct SystemClock {
    /// When the monotonic clock began.
    start: Instant,
}

#[expect(clippy::disallowed_methods, reason = "the place that time as an argument comes from")]
impl Default for SystemClock {
    fn default() -> Self {
        Self { start: Instant::now() }
    }
}

#[expect(clippy::disallowed_methods, reason = "the place that time as an argument comes from")]
impl Clock for SystemClock {
    fn wall(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
    }

    fn monotonic(&self) -> Monotonic {
        Monotonic::from_start(self.start.elapsed())
    }
}
