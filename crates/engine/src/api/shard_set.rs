//! The shards that an engine has to do with. The set may change while it runs.

use std::sync::Arc;

use forebay_store::Shard;
use forebay_types::ShardId;

/// Whether a shard takes new items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Intake {
    /// It does, and dedupe keys may have their home there.
    #[default]
    Open,
    /// It takes none, and is the home of no key: it is drained. What it has is delivered as before.
    Closed,
}

/// The shards that take new items, and those that don't.
#[derive(Debug, Default)]
pub(crate) struct ByIntake {
    /// Shards that take new items.
    pub active: Vec<ShardId>,
    /// Shards that are drained.
    pub draining: Vec<ShardId>,
}

impl ByIntake {
    /// Sorts the shards of a set.
    pub fn of(listed: &[ListedShard]) -> Self {
        let mut sorted = Self::default();
        for shard in listed {
            match shard.intake {
                Intake::Open => sorted.active.push(shard.id),
                Intake::Closed => sorted.draining.push(shard.id),
            }
        }
        sorted
    }
}

/// A shard of the set.
#[derive(Clone)]
pub struct ListedShard {
    /// Its number.
    pub id: ShardId,
    /// The way to it. Of a shard that the engine has already, the first one stays in use.
    pub shard: Arc<dyn Shard>,
    /// Whether it takes new items.
    pub intake: Intake,
}

impl ListedShard {
    /// A shard that takes new items.
    pub fn open(id: ShardId, shard: Arc<dyn Shard>) -> Self {
        Self { id, shard, intake: Intake::Open }
    }
}
