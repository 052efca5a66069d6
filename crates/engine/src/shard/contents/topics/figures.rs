//! A topic's figures in one shard, for operators and GetActiveTopics.

use std::ops::AddAssign;

use forebay_store::TopicCounts;

use super::state::LastTimes;
use crate::api::{LifetimeCounts, Rates};

/// How many items of a topic are where. Leased ones do not count as ready here.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TopicTotals {
    /// Items that could be leased.
    pub ready: u64,
    /// Items that are leased.
    pub leased: u64,
    /// Items that wait for their time.
    pub scheduled: u64,
    /// Dead letters.
    pub dead: u64,
}

/// The flow of a topic.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TopicFlow {
    /// The counts of its items so far.
    pub counted: Option<LifetimeCounts>,
    /// How much happens in it.
    pub rates: Rates,
    /// When something was delivered last, and acked.
    pub last: LastTimes,
}

impl AddAssign for TopicTotals {
    fn add_assign(&mut self, other: Self) {
        self.ready += other.ready;
        self.leased += other.leased;
        self.scheduled += other.scheduled;
        self.dead += other.dead;
    }
}

impl TopicTotals {
    /// Of these counts. `leased`: how many of the ready items are leased.
    pub fn of(counts: &TopicCounts, leased: usize) -> Self {
        let count = |count: i64| u64::try_from(count).unwrap_or(0);
        let leased = leased as u64;
        Self {
            ready: count(counts.ready).saturating_sub(leased),
            leased,
            scheduled: count(counts.scheduled),
            dead: count(counts.dead),
        }
    }
}
