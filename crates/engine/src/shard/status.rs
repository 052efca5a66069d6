//! A shard's figures for operators and GetActiveTopics.

use std::ops::AddAssign;

use forebay_store::TopicCounts;
use forebay_types::{Key, Monotonic, Timestamp, TopicId, TopicName};

use super::{OwnedShard, topic_state::LastTimes};
use crate::api::{Counted, Rates, ShardStatus, SweepStatus};

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
    pub counted: Option<Counted>,
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

impl OwnedShard {
    /// How many items of a topic are where.
    pub fn totals(&self, id: TopicId) -> Option<TopicTotals> {
        let counts = self.topics.get(id)?.counts();
        Some(totals(counts, self.leases.of_topic(id)))
    }

    /// The flow of a topic.
    pub fn flow(&self, id: TopicId, at: Monotonic) -> Option<TopicFlow> {
        let topic = self.topics.get(id)?;
        let leased = self.leases.of_topic(id) as u64;
        // A delivery that was open at a take-over from a program that counts nothing was not counted when it
        // began.
        let counted = topic.tally().map(|tally| Counted::of(tally, leased));
        Some(TopicFlow { counted, rates: topic.recent().per_second(at).into(), last: topic.last() })
    }

    /// The name of a topic.
    pub fn topic_name(&self, id: TopicId) -> Option<&TopicName> {
        self.topics.get(id).map(|topic| &topic.name)
    }

    /// The number of a topic in this shard.
    pub fn topic_id(&self, name: &TopicName) -> Option<TopicId> {
        self.topics.id_of(name)
    }

    /// The item of a topic that is delivered next, as far as memory knows it.
    pub fn known_head(&self, id: TopicId) -> Option<Key> {
        self.topics.get(id)?.window().first().map(|(key, _)| key)
    }

    /// A demand waits for the first item of a topic to be read.
    pub fn has_unknown_head(&self, id: TopicId) -> bool {
        let of_topic = self.topics.get(id);
        of_topic.is_some_and(|topic| topic.outstanding_since.is_some() && topic.window().len() == 0)
    }

    /// Whether some topics have dead letters of which memory knows the number alone.
    pub fn has_dormant_topics(&self) -> bool {
        self.topics.dormant_dead != 0
    }

    /// Every topic that is in the node's directory.
    #[cfg(any(test, feature = "planted-bugs"))]
    pub fn topics(&self) -> impl Iterator<Item = (TopicId, &TopicName)> {
        self.topics.iter().filter(|(_, topic)| topic.listed).map(|(id, topic)| (id, &topic.name))
    }

    /// The part of the status that the shard itself knows. It costs the same however many topics there are.
    pub fn status(&self) -> ShardStatus {
        let totals = totals(&self.topics.sums(), self.leases.len());
        let mut status = ShardStatus {
            id: self.id.0,
            ready: totals.ready,
            leased: totals.leased,
            scheduled: totals.scheduled,
            dead: totals.dead,
            epoch: self.tenure.epoch,
            batch: self.tenure.batch,
            topics: self.topics.len(),
            index_bytes: self.topics.index_bytes(),
            commit_micros: u64::try_from(self.tenure.commit_took.as_micros()).unwrap_or(u64::MAX),
            ..ShardStatus::default()
        };
        status.sweeps = (self.sweeps.all())
            .map(|sweeper| SweepStatus {
                name: sweeper.sweep.name().to_owned(),
                moved: sweeper.moved,
                checkpoint_micros: sweeper.checkpoint.as_micros(),
                next_micros: sweeper.next().map(Timestamp::as_micros),
            })
            .into();
        status
    }
}

/// `leased`: how many of the ready items are leased.
fn totals(counts: &TopicCounts, leased: usize) -> TopicTotals {
    let count = |count: i64| u64::try_from(count).unwrap_or(0);
    let leased = leased as u64;
    TopicTotals {
        ready: count(counts.ready).saturating_sub(leased),
        leased,
        scheduled: count(counts.scheduled),
        dead: count(counts.dead),
    }
}
