//! Reads of tallies that a shard asks its connections for.

use forebay_store::{NamespaceTally, TopicTally};
use forebay_types::{Namespace, TopicId};

/// A page of tallies that is to be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TalliesRequest {
    /// Behind which one.
    pub after: TalliesAfter,
    /// At most so many.
    pub limit: usize,
}

/// Where a read of tallies goes on: first those of topics, then those of namespaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TalliesAfter {
    /// Behind this topic.
    Topic(TopicId),
    /// Behind this namespace. Empty: from the first one on.
    Namespace(Namespace),
}

/// A page of tallies that was read.
#[derive(Debug)]
pub(crate) enum TallyRows {
    /// The tallies of topics.
    Topics(Vec<(TopicId, TopicTally)>),
    /// The tallies of forgotten topics, by namespace.
    Namespaces(Vec<NamespaceTally>),
}
