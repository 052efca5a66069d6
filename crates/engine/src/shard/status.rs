//! What operators and GetActiveTopics see of a shard.

use forebay_store::TopicCounts;
use forebay_types::{TopicId, TopicName};

use super::OwnedShard;
use crate::api::{ShardStatus, SweepStatus};

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

impl OwnedShard {
    /// How many items of a topic are where.
    pub fn totals(&self, id: TopicId) -> Option<TopicTotals> {
        self.topics.get(id).map(|topic| self.totals_of(id, &topic.counts))
    }

    /// Every topic.
    pub fn topics(&self) -> impl Iterator<Item = (TopicId, &TopicName)> {
        self.topics.iter().map(|(id, topic)| (id, &topic.name))
    }

    fn totals_of(&self, id: TopicId, counts: &TopicCounts) -> TopicTotals {
        let count = |count: i64| u64::try_from(count).unwrap_or(0);
        let leased = self.leases.of_topic(id) as u64;
        TopicTotals {
            ready: count(counts.ready).saturating_sub(leased),
            leased,
            scheduled: count(counts.scheduled),
            dead: count(counts.dead),
        }
    }

    /// What the shard itself knows of its status. `each` gets every topic, in the one walk over all of them.
    pub fn status<'a>(&'a self, mut each: impl FnMut(&'a TopicName, TopicTotals)) -> ShardStatus {
        let mut status = ShardStatus {
            id: self.id.0,
            epoch: self.tenure.epoch,
            batch: self.tenure.batch,
            topics: self.topics.len(),
            index_bytes: self.topics.index_bytes(),
            commit_micros: u64::try_from(self.tenure.commit_took.as_micros()).unwrap_or(u64::MAX),
            ..ShardStatus::default()
        };
        status.sweeps = [&self.sweeps.due, &self.sweeps.expiry]
            .map(|sweeper| SweepStatus {
                name: sweeper.sweep.name().to_owned(),
                moved: sweeper.moved,
                checkpoint_micros: sweeper.checkpoint.as_micros(),
            })
            .into();
        for (id, topic) in self.topics.iter() {
            let totals = self.totals_of(id, &topic.counts);
            each(&topic.name, totals);
            status.ready += totals.ready;
            status.leased += totals.leased;
            status.scheduled += totals.scheduled;
            status.dead += totals.dead;
        }
        status
    }
}
