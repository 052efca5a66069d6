//! Points in time.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A point in civil time: microseconds since the Unix epoch. All stored times are of this kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Before every other time.
    pub const MIN: Self = Self(i64::MIN);
    /// After every other time.
    pub const MAX: Self = Self(i64::MAX);

    /// From microseconds since the Unix epoch.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since the Unix epoch.
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// This time and `span` more; stops at [`Timestamp::MAX`].
    pub fn plus(self, span: Duration) -> Self {
        Self(self.0.saturating_add(micros(span)))
    }

    /// This time less `span`; stops at [`Timestamp::MIN`].
    pub fn minus(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(micros(span)))
    }

    /// How long it is from `earlier` to this time; zero if it lies before.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

/// A point on a clock that never steps: it compares only with others of the same process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Monotonic(Duration);

impl Monotonic {
    /// From the span since the clock's arbitrary start.
    pub const fn from_start(span: Duration) -> Self {
        Self(span)
    }

    /// This point and `span` more.
    pub fn plus(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span))
    }

    /// How long it is from `earlier` to this point; zero if it lies before.
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// How long it is since the last multiple of `every`, counted from the clock's start.
    pub fn into_interval(self, every: Duration) -> Duration {
        let nanos = self.0.as_nanos().checked_rem(every.as_nanos()).unwrap_or(0);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(0))
    }
}

fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_stop_at_the_ends() {
        assert_eq!(Timestamp::MAX.plus(Duration::from_secs(1)), Timestamp::MAX);
        assert_eq!(Timestamp::MIN.minus(Duration::MAX), Timestamp::MIN);
        assert_eq!(Timestamp::from_micros(5).since(Timestamp::from_micros(9)), Duration::ZERO);
    }
}
