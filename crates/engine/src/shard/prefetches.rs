//! The reads of a shard's windows: which are under way, which wait to be used.

use std::collections::VecDeque;

use forebay_store::{ReadyRow, TopicRow};
use forebay_types::TopicId;

/// Reads of one shard's windows.
#[derive(Debug, Default)]
pub(super) struct Prefetches {
    /// Reads that are under way, or wait to be applied.
    pub(super) under_way: usize,
    /// Results that wait for the batch in flight: it was in flight while they were read.
    pub(super) completed: Vec<CompletedRead>,
    /// Topics that the shard had when it was taken over, whose heads are to be read in the background.
    pub(super) heads: VecDeque<TopicId>,
}

/// The result of a read.
#[derive(Debug)]
pub(super) struct CompletedRead {
    /// The topic.
    pub topic: TopicId,
    /// Names the read.
    pub read: u64,
    /// `None`: it failed.
    pub rows: Option<Vec<ReadyRow>>,
}

impl Prefetches {
    /// A topic that the store had when the shard was taken over.
    pub fn add_head(&mut self, topic: &TopicRow) {
        if topic.counts.ready > 0 {
            self.heads.push_back(topic.id);
        }
    }
}
