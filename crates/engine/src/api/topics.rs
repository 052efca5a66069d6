//! ListTopics and GetTopic: topics of the shards that this node owns, as operators look at them.

use std::{
    collections::BTreeMap,
    ops::{AddAssign, Bound},
    time::Duration,
};

use forebay_store::TopicTally;
use forebay_types::{Namespace, ShardId, Timestamp, TopicName};

use super::{Latencies, OwnMetrics};

/// A page of topics is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicsCall {
    /// The namespace and the prefix of the topics.
    pub scope: TopicScope,
    /// Go on behind this one.
    pub after: Option<TopicName>,
    /// At most so many.
    pub limit: usize,
    /// Also find out when their next items are due.
    pub due: bool,
    /// Also tell what topics counted that are forgotten: as a topic of each namespace without a name.
    pub forgotten: bool,
}

/// Which topics are looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicScope {
    /// The tenant. `None`: all of them.
    pub namespace: Option<Namespace>,
    /// Only names that begin so; may be empty.
    pub prefix: String,
}

impl TopicScope {
    /// Whether a topic belongs to it.
    pub fn contains(&self, name: &TopicName) -> bool {
        self.namespace.as_ref().is_none_or(|own| *own == name.namespace)
            && name.topic.starts_with(&self.prefix)
    }

    /// Where a walk through its topics by name begins that goes on behind `after`.
    pub fn begin(&self, after: Option<&TopicName>) -> Bound<TopicName> {
        let first = self.namespace.as_ref().map(|own| TopicName::new(own.clone(), self.prefix.as_str()));
        match (first, after) {
            (Some(first), Some(after)) if *after < first => Bound::Included(first),
            (_, Some(after)) => Bound::Excluded(after.clone()),
            (Some(first), None) => Bound::Included(first),
            (None, None) => Bound::Unbounded,
        }
    }

    /// A name behind all of its topics, if it has an end: no name has the byte 0x7f.
    pub fn end(&self) -> Option<TopicName> {
        let own = self.namespace.as_ref()?;
        Some(TopicName::new(own.clone(), format!("{}\x7f", self.prefix)))
    }
}

/// A page of topics.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TopicsPage {
    /// By namespace and name.
    pub topics: Vec<TopicFigures>,
    /// All up to this one are listed. `None`: there are no more.
    pub through: Option<TopicName>,
    /// The shards that were looked at.
    pub shards: Vec<ShardId>,
    /// The shards of these that told all that they have counted. Empty, if that was not asked for.
    pub counted: Vec<ShardId>,
    /// How many topics were looked at.
    pub scanned: usize,
}

/// A slice of the topics in memory.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MemorySlice {
    /// By namespace and name. Dead letters of topics that memory has forgotten are not in it.
    pub topics: Vec<TopicFigures>,
    /// The figures of these topics in each shard.
    pub shards: BTreeMap<ShardId, ShardFigures>,
    /// The last one that was looked at. `None`: there are no more.
    pub through: Option<TopicName>,
}

/// How topics are in one shard.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ShardFigures {
    /// Items that could be leased now.
    pub ready: u64,
    /// Items that are leased.
    pub leased: u64,
    /// Items that wait for their time.
    pub scheduled: u64,
    /// Dead letters.
    pub dead: u64,
    /// When the first item became ready, of the topic where that was longest ago, as far as it is known.
    pub oldest_ready_at: Option<Timestamp>,
    /// How much happens.
    pub rates: Rates,
}

impl AddAssign for ShardFigures {
    fn add_assign(&mut self, other: Self) {
        self.ready += other.ready;
        self.leased += other.leased;
        self.scheduled += other.scheduled;
        self.dead += other.dead;
        self.oldest_ready_at = self.oldest_ready_at.into_iter().chain(other.oldest_ready_at).min();
        self.rates += other.rates;
    }
}

/// How a topic is, over the shards of this node that were looked at.
#[derive(Debug, Clone, PartialEq)]
pub struct TopicFigures {
    /// Its name.
    pub name: TopicName,
    /// Items that could be leased now.
    pub ready: u64,
    /// Items that are leased.
    pub leased: u64,
    /// Items that wait for their time.
    pub scheduled: u64,
    /// Dead letters.
    pub dead: u64,
    /// When the first item became ready, of the shard where that was longest ago, as far as it is known.
    pub oldest_ready_at: Option<Timestamp>,
    /// When the next scheduled item is due, if that was looked at.
    pub next_due_at: Option<Timestamp>,
    /// Dequeue calls that wait for it.
    pub waiting: usize,
    /// The counts of its items. `None`: nothing was counted.
    pub counted: Option<LifetimeCounts>,
    /// How much happens in it.
    pub rates: Rates,
    /// How long items waited lately, and deliveries lasted. `None`: nothing was delivered or acked, or there
    /// is no room for it.
    pub latencies: Option<Box<Latencies>>,
    /// When a delivery began last, since its shards were taken over.
    pub last_delivery_at: Option<Timestamp>,
    /// When one was acked last, since its shards were taken over.
    pub last_ack_at: Option<Timestamp>,
    /// Whether a side of it is paused, or of its namespace: enqueue and dequeue. Only known of topics that
    /// have metrics of their own.
    pub paused: [bool; 2],
    /// Whether it has metrics of its own.
    pub reported: OwnMetrics,
}

/// The counts of a topic's items so far, by what became of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LifetimeCounts {
    /// Since when it is counted, in the shard where that is longest.
    pub since: Timestamp,
    /// Items enqueued.
    pub enqueued: u64,
    /// Deliveries that began.
    pub delivered: u64,
    /// Deliveries acked. An at-most-once delivery counts as acked.
    pub acked: u64,
    /// Deliveries that were nacked, or whose lease ran out.
    pub failed: u64,
    /// Items that became dead letters.
    pub dead_lettered: u64,
    /// Items whose time to live was over.
    pub expired: u64,
    /// Items and dead letters that were removed otherwise.
    pub removed: u64,
}

impl LifetimeCounts {
    /// The counts of a shard for a topic that has so many open deliveries.
    pub(crate) fn of(TopicTally { since, tally }: TopicTally, leased: u64) -> Self {
        let count = |count: i64| u64::try_from(count).unwrap_or(0);
        Self {
            since,
            enqueued: count(tally.enqueued),
            delivered: count(tally.ended()) + leased,
            acked: count(tally.acked + tally.consumed),
            failed: count(tally.failed),
            dead_lettered: count(tally.dead_lettered),
            expired: count(tally.expired),
            removed: count(tally.removed),
        }
    }
}

impl AddAssign for LifetimeCounts {
    fn add_assign(&mut self, other: Self) {
        self.since = self.since.min(other.since);
        self.enqueued += other.enqueued;
        self.delivered += other.delivered;
        self.acked += other.acked;
        self.failed += other.failed;
        self.dead_lettered += other.dead_lettered;
        self.expired += other.expired;
        self.removed += other.removed;
    }
}

/// How much happens a second, over the last [`Rates::WINDOW`].
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Rates {
    /// Items enqueued.
    pub enqueued: f64,
    /// Deliveries that began.
    pub delivered: f64,
    /// Deliveries acked. An at-most-once delivery counts as acked.
    pub acked: f64,
    /// Deliveries that were nacked, or whose lease ran out.
    pub failed: f64,
    /// Items that became dead letters.
    pub dead_lettered: f64,
}

impl Rates {
    /// The time over which they are counted.
    pub const WINDOW: Duration = Duration::from_secs(10);
}

impl From<[f64; 5]> for Rates {
    fn from([enqueued, delivered, acked, failed, dead_lettered]: [f64; 5]) -> Self {
        Self { enqueued, delivered, acked, failed, dead_lettered }
    }
}

impl AddAssign for Rates {
    fn add_assign(&mut self, other: Self) {
        self.enqueued += other.enqueued;
        self.delivered += other.delivered;
        self.acked += other.acked;
        self.failed += other.failed;
        self.dead_lettered += other.dead_lettered;
    }
}

/// One topic.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TopicDetails {
    /// How it is. `None`: it is in none of the shards.
    pub topic: Option<TopicFigures>,
    /// Its ready items by priority.
    pub priorities: Vec<PriorityCount>,
    /// There are more ready items than these.
    pub priorities_cut: bool,
    /// The shards that were looked at.
    pub shards: Vec<ShardId>,
}

/// The ready items of one priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PriorityCount {
    /// Smaller numbers are delivered first.
    pub priority: i32,
    /// Items that could be leased now.
    pub ready: u64,
    /// When the first of them became ready.
    pub oldest_ready_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(namespace: Option<&str>, prefix: &str) -> TopicScope {
        TopicScope { namespace: namespace.map(Into::into), prefix: prefix.into() }
    }

    #[test]
    fn a_walk_begins_where_the_scope_does_and_never_before_its_position() {
        let name = |topic: &str| TopicName::new("ns", topic);
        let begin = |prefix, after: Option<&str>| scope(Some("ns"), prefix).begin(after.map(name).as_ref());
        assert_eq!(begin("", None), Bound::Included(name("")));
        assert_eq!(begin("m", None), Bound::Included(name("m")));
        assert_eq!(begin("m", Some("a")), Bound::Included(name("m")));
        assert_eq!(begin("m", Some("mail")), Bound::Excluded(name("mail")));
        assert_eq!(scope(None, "m").begin(None), Bound::Unbounded);
        assert_eq!(scope(None, "m").begin(Some(&name("a"))), Bound::Excluded(name("a")));
    }

    #[test]
    fn the_end_is_behind_all_names_of_the_scope() {
        let end = scope(Some("ns"), "m").end().unwrap();
        assert!(end > TopicName::new("ns", "mzzz") && end < TopicName::new("ns", "n"));
        assert_eq!(scope(None, "m").end(), None);
    }
}
