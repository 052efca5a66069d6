//! A shard's circuit breaker: it opens when commits fail or are slow, and lets one probe through later.

use std::{collections::VecDeque, time::Duration};

use forebay_types::Monotonic;

/// Failures and slow commits are counted over this span.
const WINDOW: Duration = Duration::from_secs(10);
/// So many of them open the breaker.
const STRIKES: usize = 3;
/// A commit that takes longer is slow.
pub(crate) const SLOW: Duration = Duration::from_secs(1);
/// How long an open breaker waits before it lets a probe through.
const PAUSE: Duration = Duration::from_secs(1);

/// What the breaker lets through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Everything.
    Closed,
    /// Nothing new.
    Open,
    /// One batch, to see how the shard is.
    HalfOpen,
}

impl Phase {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half-open",
        }
    }
}

/// Counts what goes wrong at one shard.
#[derive(Debug)]
pub(crate) struct Breaker {
    phase: Phase,
    since: Monotonic,
    strikes: VecDeque<Monotonic>,
}

impl Breaker {
    pub fn new(at: Monotonic) -> Self {
        Self { phase: Phase::Closed, since: at, strikes: VecDeque::new() }
    }

    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// A statement or commit failed, or a commit is still out after [`SLOW`].
    pub fn strike(&mut self, at: Monotonic) {
        self.strikes.push_back(at);
        while self.strikes.front().is_some_and(|first| at.since(*first) > WINDOW) {
            self.strikes.pop_front();
        }
        if self.strikes.len() >= STRIKES || self.phase == Phase::HalfOpen {
            self.open(at);
        }
    }

    /// The shard is known not to answer.
    pub fn open(&mut self, at: Monotonic) {
        self.phase = Phase::Open;
        self.since = at;
    }

    /// A batch was committed after `took`.
    pub fn committed(&mut self, at: Monotonic, took: Duration) {
        if took > SLOW {
            self.strike(at);
            return;
        }
        match self.phase {
            Phase::Closed => {}
            Phase::Open => {
                self.phase = Phase::HalfOpen;
                self.since = at;
            }
            Phase::HalfOpen => {
                self.phase = Phase::Closed;
                self.strikes.clear();
            }
        }
    }

    /// Time passes. `idle`: no batch is under way that could tell how the shard is.
    pub fn tick(&mut self, at: Monotonic, idle: bool) {
        if self.phase == Phase::Open && idle && at.since(self.since) >= PAUSE {
            self.phase = Phase::HalfOpen;
            self.since = at;
        }
    }

    /// When [`Breaker::tick`] has something to do.
    pub fn wake(&self) -> Option<Monotonic> {
        (self.phase == Phase::Open).then(|| self.since.plus(PAUSE))
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
        assert_eq!(breaker.phase(), Phase::Closed);
        breaker.committed(at(3), Duration::from_secs(2));
        assert_eq!(breaker.phase(), Phase::Open);
        breaker.tick(at(500), true);
        assert_eq!(breaker.phase(), Phase::Open);
        breaker.tick(at(1_003), true);
        assert_eq!(breaker.phase(), Phase::HalfOpen);
        breaker.committed(at(1_010), Duration::from_millis(5));
        assert_eq!(breaker.phase(), Phase::Closed);
    }

    #[test]
    fn a_failed_probe_opens_it_again_and_old_strikes_are_forgotten() {
        let mut breaker = Breaker::new(at(0));
        breaker.strike(at(0));
        breaker.strike(at(1));
        breaker.strike(at(20_000));
        assert_eq!(breaker.phase(), Phase::Closed);
        breaker.open(at(20_000));
        breaker.tick(at(21_000), true);
        breaker.strike(at(21_001));
        assert_eq!(breaker.phase(), Phase::Open);
    }
}
