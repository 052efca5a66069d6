//! Shards whose topics come into the node's directory, or leave it.

use std::collections::{BTreeSet, VecDeque};

use crate::{index::ShardIndex, shard::LostTopics};

/// Shards whose topics come or go.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// Shards whose topics are being visited.
    pub(super) walking: BTreeSet<ShardIndex>,
    /// Lost shards whose topics leave.
    pub(super) leaving: VecDeque<(ShardIndex, LostTopics)>,
}

impl Listing {
    /// The directory, or the order of active topics, does not know everything yet.
    pub fn is_under_way(&self) -> bool {
        !self.walking.is_empty() || !self.leaving.is_empty()
    }

    /// Some topics of a shard may not be in the directory yet.
    pub fn is_walking(&self, shard: ShardIndex) -> bool {
        self.walking.contains(&shard)
    }

    /// Topics of a lost shard are still in the directory.
    #[cfg(feature = "planted-bugs")]
    pub fn is_leaving(&self, shard: ShardIndex) -> bool {
        self.leaving.iter().any(|(lost, _)| *lost == shard)
    }
}
