//! GetActiveTopics: topics that have something to deliver.

use forebay_types::{Namespace, ShardId, Timestamp, Topic};

/// A page of active topics is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ActiveTopicsCall {
    /// The tenant.
    pub namespace: Namespace,
    /// At most so many.
    pub limit: usize,
    /// Go on behind this position.
    pub after: Option<TopicPosition>,
    /// Only names that begin so; may be empty.
    pub prefix: String,
    /// These topics, in this order, in place of a page: of one that is not active nothing is ready.
    pub named: Vec<Topic>,
}

/// The position of a topic among the active ones.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicPosition {
    /// Priority of its first item.
    pub best_priority: i32,
    /// When its first item became ready.
    pub oldest_ready_at: Timestamp,
    /// Breaks ties.
    pub topic: Topic,
}

/// A topic that has something to deliver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActiveTopic {
    /// Its place, most urgent first.
    pub position: TopicPosition,
    /// Items that could be leased now.
    pub ready: u64,
    /// Items that are leased.
    pub leased: u64,
    /// Items that wait for their time.
    pub scheduled: u64,
}

/// A page of active topics.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ActiveTopics {
    /// The topics, most urgent first.
    pub topics: Vec<ActiveTopic>,
    /// There are more behind this position. `None`: there are none.
    pub next: Option<TopicPosition>,
    /// Shards whose items are left out: they do not answer, or another node serves them.
    pub missing: Vec<ShardId>,
    /// Other nodes that hand out their items here.
    pub nodes: Vec<String>,
}
