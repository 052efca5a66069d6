//! A shard, as a page knows it.

use forebay_engine::{ShardState, ShardStatus};
use forebay_proto::v1::Shard;

/// A shard, and what this node's engine knows of it.
pub(crate) struct ShardWithStatus<'a> {
    /// The shard as every node knows it.
    pub shard: &'a Shard,
    /// Status from the engine. `None`: the engine has stopped, or does not know the shard yet.
    pub status: Option<&'a ShardStatus>,
}

impl<'a> ShardWithStatus<'a> {
    /// The status that only the owner knows, if that is this node.
    pub fn owned(&self) -> Option<&'a ShardStatus> {
        self.status.filter(|status| status.state == ShardState::Owned)
    }
}
