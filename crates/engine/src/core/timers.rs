//! What is to be done at a time.

use std::{cmp::Reverse, collections::BinaryHeap};

use forebay_types::{Monotonic, TopicName};

/// What is to be done.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// A poll's wait is over, or the rest of its answer is late.
    Poll(u64),
    /// A page of active topics has waited long enough.
    Pages,
    /// A shard's head was waited for long enough.
    Topic(TopicName),
}

/// Timers, the earliest first. One that has become pointless still fires, and does nothing.
#[derive(Debug, Default)]
pub(crate) struct Timers(BinaryHeap<Reverse<(Monotonic, Timer)>>);

impl Timers {
    pub fn set(&mut self, at: Monotonic, timer: Timer) {
        self.0.push(Reverse((at, timer)));
    }

    /// The next timer that is due.
    pub fn pop_due(&mut self, now: Monotonic) -> Option<Timer> {
        let due = self.next_wake().is_some_and(|at| at <= now);
        due.then(|| self.0.pop()).flatten().map(|Reverse((_, timer))| timer)
    }

    /// When the next timer is due.
    pub fn next_wake(&self) -> Option<Monotonic> {
        self.0.peek().map(|Reverse((at, _))| *at)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(ms: u64) -> Monotonic {
        Monotonic::from_start(Duration::from_millis(ms))
    }

    #[test]
    fn timers_fire_in_the_order_of_their_times_and_not_before() {
        let mut timers = Timers::default();
        assert_eq!(timers.next_wake(), None);
        timers.set(at(30), Timer::Poll(3));
        timers.set(at(10), Timer::Pages);
        timers.set(at(20), Timer::Topic(TopicName::new("ns", "t")));
        assert_eq!((timers.next_wake(), timers.pop_due(at(9))), (Some(at(10)), None));
        assert_eq!(timers.pop_due(at(10)), Some(Timer::Pages));
        assert_eq!(timers.pop_due(at(10)), None);
        assert_eq!(timers.pop_due(at(99)), Some(Timer::Topic(TopicName::new("ns", "t"))));
        assert_eq!(timers.pop_due(at(99)), Some(Timer::Poll(3)));
        assert_eq!((timers.pop_due(at(99)), timers.next_wake()), (None, None));
    }
}
