//! A topic of the fake store.

use forebay_store::{TopicCounts, TopicTally};
use forebay_types::TopicName;

/// A row of `topic`.
#[derive(Debug, Clone)]
pub struct TopicEntry {
    /// Its name.
    pub name: TopicName,
    /// Its counts as of `folded`.
    pub counts: TopicCounts,
    /// The number of the batch that last wrote the counts.
    pub folded: u64,
    /// The counts of the actual rows, to compare with.
    pub actual: TopicCounts,
    /// Tally of its items as of `folded`.
    pub tally: Option<TopicTally>,
    /// Sum of all batches' tallies of them, to compare with.
    pub counted: Option<TopicTally>,
}

impl TopicEntry {
    /// Its row tells of dead letters and nothing else.
    pub fn looks_dormant(&self) -> bool {
        let TopicCounts { ready, scheduled, dead } = self.counts;
        (ready, scheduled) == (0, 0) && dead > 0 && self.tally.is_none()
    }
}
