//! A shard's circuit breaker: it opens when commits fail or are slow. Later the shard commits an empty batch
//! as a probe, which no caller waits for. If that is committed, the breaker closes.

use std::{collections::VecDeque, time::Duration};

use forebay_types::Monotonic;

use crate::{api::BreakerPhase, messages::shard::SLOW_COMMIT};

/// Failures and slow commits are counted over this span.
const STRIKE_WINDOW: Duration = Duration::from_secs(10);
/// Strikes within the window that open the breaker.
const STRIKES_MAX: usize = 3;
/// How long an open breaker waits before the shard is probed.
const PROBE_AFTER: Duration = Duration::from_secs(1);

/// Counts failures and slow commits of one shard.
#[derive(Debug)]
pub(crate) struct Breaker {
    /// Its phase.
    phase: BreakerPhase,
    /// Since when.
    since: Monotonic,
    /// Failures and slow commits within the window.
    strikes: VecDeque<Monotonic>,
}

impl Breaker {
    pub fn new(at: Monotonic) -> Self {
        Self { phase: BreakerPhase::Closed, since: at, strikes: VecDeque::new() }
    }

    pub fn phase(&self) -> BreakerPhase {
        self.phase
    }

    /// A statement or commit failed, or a commit is in flight for longer than [`SLOW_COMMIT`].
    pub fn strike(&mut self, at: Monotonic) {
        self.strikes.push_back(at);
        while self.strikes.front().is_some_and(|first| at.since(*first) > STRIKE_WINDOW) {
            self.strikes.pop_front();
        }
        if self.strikes.len() >= STRIKES_MAX || self.phase == BreakerPhase::HalfOpen {
            self.open(at);
        }
    }

    /// Opens at once.
    pub fn open(&mut self, at: Monotonic) {
        self.phase = BreakerPhase::Open;
        self.since = at;
    }

    /// A batch was committed after `took`.
    pub fn committed(&mut self, at: Monotonic, took: Duration) {
        if took > SLOW_COMMIT {
            self.strike(at);
            return;
        }
        match self.phase {
            BreakerPhase::Closed => {}
            BreakerPhase::Open => {
                self.phase = BreakerPhase::HalfOpen;
                self.since = at;
            }
            BreakerPhase::HalfOpen => {
                self.phase = BreakerPhase::Closed;
                self.strikes.clear();
            }
        }
    }

    /// The probe, or another batch, was not committed.
    pub fn undone(&mut self, at: Monotonic) {
        if self.phase == BreakerPhase::HalfOpen {
            self.open(at);
        }
    }

    /// Time passes. `idle`: no batch is in flight.
    pub fn tick(&mut self, at: Monotonic, idle: bool) {
        if self.phase == BreakerPhase::Open && idle && at.since(self.since) >= PROBE_AFTER {
            self.phase = BreakerPhase::HalfOpen;
            self.since = at;
        }
    }

    /// When [`Breaker::tick`] has something to do.
    pub fn next_wake(&self) -> Option<Monotonic> {
        match self.phase {
            BreakerPhase::Open => Some(self.since.plus(PROBE_AFTER)),
            BreakerPhase::Closed | BreakerPhase::HalfOpen => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Monotonic {
        Monotonic::from_start(Duration::from_millis(millis))
    }

    #[test]
    fn three_strikes_open_it_and_two_good_commits_close_it() {
        let mut breaker = Breaker::new(at(0));
        breaker.strike(at(1));
        breaker.strike(at(2));
        assert_eq!(breaker.phase(), BreakerPhase::Closed);
        breaker.committed(at(3), Duration::from_secs(2));
        assert_eq!(breaker.phase(), BreakerPhase::Open);
        breaker.tick(at(500), true);
        assert_eq!(breaker.phase(), BreakerPhase::Open);
        breaker.tick(at(1_003), true);
        assert_eq!(breaker.phase(), BreakerPhase::HalfOpen);
        breaker.committed(at(1_010), Duration::from_millis(5));
        assert_eq!(breaker.phase(), BreakerPhase::Closed);
    }

    #[test]
    fn it_waits_for_its_probe_and_opens_again_without_one() {
        let mut breaker = Breaker::new(at(0));
        breaker.open(at(0));
        breaker.tick(at(1_000), true);
        breaker.tick(at(11_000), true);
        assert_eq!((breaker.phase(), breaker.next_wake()), (BreakerPhase::HalfOpen, None));
        breaker.undone(at(11_000));
        assert_eq!((breaker.phase(), breaker.next_wake()), (BreakerPhase::Open, Some(at(12_000))));
        breaker.tick(at(12_000), false);
        assert_eq!(breaker.phase(), BreakerPhase::Open, "a batch is in flight");
    }

    #[test]
    fn a_failed_probe_opens_it_again_and_old_strikes_are_forgotten() {
        let mut breaker = Breaker::new(at(0));
        breaker.strike(at(0));
        breaker.strike(at(1));
        breaker.strike(at(20_000));
        assert_eq!(breaker.phase(), BreakerPhase::Closed);
        breaker.open(at(20_000));
        breaker.tick(at(21_000), true);
        breaker.strike(at(21_001));
        assert_eq!(breaker.phase(), BreakerPhase::Open);
    }
}
