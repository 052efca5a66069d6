//! What a shard asks its connections to read of what topics have counted.

use forebay_types::TopicId;

/// A page of tallies that is to be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TalliesRequest {
    /// Behind this topic.
    pub after: TopicId,
    /// At most so many.
    pub limit: usize,
}
