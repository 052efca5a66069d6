//! GetActiveTopics: topics that have something to deliver.

use forebay_types::{Namespace, Timestamp, Topic};

/// A page of active topics is asked for.
#[derive(Debug, Clone)]
pub struct ActiveTopicsCall {
    /// The tenant.
    pub namespace: Namespace,
    /// At most so many.
    pub limit: usize,
    /// Go on behind this position.
    pub after: Option<TopicPosition>,
    /// Only names that begin so; may be empty.
    pub prefix: String,
}

/// The position of a topic among the active ones.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
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
    /// There are more behind the last one.
    pub more: bool,
    /// Some shards are not served by this node, or do not answer: what they have is left out.
    pub incomplete: bool,
}
