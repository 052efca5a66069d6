//! Lookups of dedupe keys that are under way: which shards are still to be asked, and what was found.

use std::collections::{BTreeMap, VecDeque};

use forebay_types::ShardId;

use crate::{api::RememberedKey, index::ShardIndex, shard::work::KeyHash};

/// A shard that is asked for keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LookupTarget {
    /// This node owns it.
    Here {
        /// The shard.
        shard: ShardIndex,
        /// Its term: what it says counts in no other.
        term: u64,
    },
    /// Another node does.
    Elsewhere {
        /// The shard.
        shard: ShardId,
        /// Where its owner answers, `host:port`.
        address: String,
    },
}

/// The question to a shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Question {
    /// The shard.
    pub whom: LookupTarget,
    /// For these keys.
    pub keys: Vec<KeyHash>,
}

/// A lookup for one enqueue. The enqueue itself waits in its home shard.
#[derive(Debug)]
pub(crate) struct DedupeLookup {
    /// The home shard of its keys.
    pub home: ShardIndex,
    /// Shards still to be asked. The home shard is the last.
    pub to_ask: VecDeque<Question>,
    /// The shard that is asked now.
    pub asked: Option<LookupTarget>,
    /// The keys found so far.
    pub hits: Vec<FoundKey>,
}

/// A key that a shard remembers.
#[derive(Debug)]
pub(crate) struct FoundKey {
    /// The shard.
    pub shard: ShardId,
    /// The key, as the shard remembers it.
    pub key: RememberedKey,
}

/// All lookups that are under way, by read.
#[derive(Debug, Default)]
pub(crate) struct Lookups(BTreeMap<u64, DedupeLookup>);

impl Lookups {
    /// A shard is asked by the read `read`.
    pub fn begin(&mut self, read: u64, lookup: DedupeLookup) {
        self.0.insert(read, lookup);
    }

    /// The shard has answered.
    pub fn end(&mut self, read: u64) -> Option<DedupeLookup> {
        self.0.remove(&read)
    }

    /// The home shard is lost, and what waited in it is answered.
    pub fn drop_home(&mut self, home: ShardIndex) {
        self.0.retain(|_, lookup| lookup.home != home);
    }
}
