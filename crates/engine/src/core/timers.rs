//! Timers of polls, pages, topics, fetches and policies.

use std::collections::BTreeSet;

use forebay_types::{Monotonic, TopicName};
use rustc_hash::FxHashMap;

/// An event that is due at a time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Timer {
    /// A poll's wait is over, or the rest of its answer is late. A poll has one: it moves if it is set again.
    Poll(u64),
    /// A page of active topics has waited long enough. Each page that waits has one.
    Pages,
    /// A shard's head was waited for long enough. A topic has one: the earliest that was set.
    Topic(TopicName),
    /// A node that was asked for items is late. A fetch has one.
    Fetch(u64),
    /// News that found no room on the way to a node may be sent. There is one, the earliest that was set.
    Flush,
    /// A pause of a topic ends; with an empty topic, one of a namespace. A policy has one: it moves if it is
    /// set again.
    Policy(TopicName),
}

/// Timers, the earliest first.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    /// All of them.
    due: BTreeSet<(Monotonic, Timer)>,
    /// When those of polls, topics and policies are due.
    times: FxHashMap<Timer, Monotonic>,
}

impl Timers {
    pub fn set(&mut self, at: Monotonic, timer: Timer) {
        let set = self.times.get(&timer).copied();
        match (&timer, set) {
            (Timer::Topic(_) | Timer::Flush, Some(earlier)) if earlier <= at => return,
            (Timer::Poll(_) | Timer::Topic(_) | Timer::Fetch(_) | Timer::Flush | Timer::Policy(_), _) => {
                self.cancel(&timer);
                self.times.insert(timer.clone(), at);
            }
            (Timer::Pages, _) => {}
        }
        self.due.insert((at, timer));
    }

    /// The timer of a poll, a topic or a policy is pointless.
    pub fn cancel(&mut self, timer: &Timer) {
        if let Some((timer, at)) = self.times.remove_entry(timer) {
            self.due.remove(&(at, timer));
        }
    }

    /// The next timer that is due.
    pub fn pop_due(&mut self, now: Monotonic) -> Option<Timer> {
        let (_, timer) = self.next_wake().filter(|at| *at <= now).and_then(|_| self.due.pop_first())?;
        self.times.remove(&timer);
        Some(timer)
    }

    /// When the next timer is due.
    pub fn next_wake(&self) -> Option<Monotonic> {
        self.due.first().map(|(at, _)| *at)
    }

    /// The polls that have a timer. Checked in the simulation.
    #[cfg(feature = "planted-bugs")]
    pub fn polls(&self) -> impl Iterator<Item = u64> {
        self.times.keys().filter_map(|timer| match timer {
            Timer::Poll(id) => Some(*id),
            Timer::Pages | Timer::Topic(_) | Timer::Fetch(_) | Timer::Flush | Timer::Policy(_) => None,
        })
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

    #[test]
    fn a_poll_has_one_timer_and_a_topic_its_earliest() {
        let mut timers = Timers::default();
        let topic = || Timer::Topic(TopicName::new("ns", "t"));
        for ms in [30, 10, 20] {
            timers.set(at(ms), Timer::Poll(1));
            timers.set(at(ms), topic());
        }
        assert_eq!((timers.pop_due(at(19)), timers.pop_due(at(19))), (Some(topic()), None));
        assert_eq!((timers.pop_due(at(99)), timers.pop_due(at(99))), (Some(Timer::Poll(1)), None));
        timers.set(at(30), topic());
        assert_eq!(timers.next_wake(), Some(at(30)), "one that fired is set anew");
    }

    #[test]
    fn a_timer_that_is_cancelled_takes_no_memory() {
        let mut timers = Timers::default();
        (0..1_000).for_each(|poll| timers.set(at(20_000), Timer::Poll(poll)));
        (0..1_000).for_each(|poll| timers.cancel(&Timer::Poll(poll)));
        assert!(timers.due.is_empty() && timers.times.is_empty());
        timers.cancel(&Timer::Poll(7));
    }
}
