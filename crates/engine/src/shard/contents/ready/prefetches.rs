//! The reads of a shard's windows: which are under way, which wait to be used.

use std::collections::{BTreeMap, VecDeque};

use forebay_store::{ReadyRow, TopicRow};
use forebay_types::TopicId;

/// Reads of one shard's windows.
#[derive(Debug, Default)]
pub(in crate::shard) struct Prefetches {
    /// Reads that are under way, or wait to be applied, and the bytes that each of them may bring.
    under_way: BTreeMap<u64, usize>,
    /// Bytes that all of them may bring.
    reserved_bytes: usize,
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
    /// A read begins that may bring so many bytes.
    pub fn begin(&mut self, read: u64, bytes: usize) {
        self.reserved_bytes += bytes;
        self.under_way.insert(read, bytes);
    }

    /// A read's result is used, or thrown away.
    pub fn end(&mut self, read: u64) {
        self.reserved_bytes -= self.under_way.remove(&read).unwrap_or(0);
    }

    /// Reads that are under way, or wait to be applied.
    pub fn under_way(&self) -> usize {
        self.under_way.len()
    }

    /// Bytes that they may bring.
    pub fn reserved_bytes(&self) -> usize {
        self.reserved_bytes
    }

    /// A topic that the store had when the shard was taken over.
    pub fn add_head(&mut self, topic: &TopicRow) {
        if topic.counts.ready > 0 {
            self.heads.push_back(topic.id);
        }
    }
}
