//! News of other nodes.

use forebay_types::ShardId;

use super::{PeerLink, TopicHead};

/// Load of a shard, as its owner tells other nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShardLoad {
    /// The shard.
    pub shard: ShardId,
    /// Rows of new items that wait there or are in flight.
    pub rows: usize,
    /// Bytes of the items that wait.
    pub bytes: usize,
    /// It takes new items: its breaker is closed, its disk has room, and it is not handed over.
    pub takes_items: bool,
}

/// News of other nodes. Each node is named by the address at which it answers others, `host:port`.
#[derive(Debug, Clone)]
pub enum PeerNews {
    /// The other nodes of the cluster, from now on: those that live.
    Nodes(Vec<String>),
    /// A node tells of its shards.
    Loads {
        /// The node.
        node: String,
        /// The shards that it owns.
        loads: Vec<ShardLoad>,
    },
    /// A node tells nothing of its shards: its program is of an earlier release.
    Older(String),
    /// Items of a node's shards can be had over this link from now on.
    Linked {
        /// The node.
        node: String,
        /// The link.
        link: PeerLink,
    },
    /// A node tells of its topics.
    Heads {
        /// The node.
        node: String,
        /// The topics.
        heads: Vec<TopicHead>,
    },
    /// The link to a node has ended.
    Unlinked(String),
}
