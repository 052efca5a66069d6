//! A shard that others may own, as a node sees it.

use forebay_types::ShardId;

/// A shard, as a node sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardSight {
    /// Its number.
    pub id: ShardId,
    /// Where the store keeps it, as the store names it.
    pub server: String,
    /// This node is to own it.
    pub wanted: bool,
    /// This node owns it.
    pub owned: bool,
    /// Where the owner answers other nodes, `host:port`, if it is another node. Empty: nobody owns it, or
    /// that is not known.
    pub owner: String,
    /// The owner has shown no sign of life for a whole shard lease.
    pub silent: bool,
    /// The shard has been looked at, or tried to.
    pub looked_at: bool,
    /// Nothing can be done any more before it is taken over, if it is another node's.
    pub prepared: bool,
    /// Its server answered when the shard was last looked at.
    pub answers: bool,
    /// This node cannot serve it, and another one may: its batch was stuck a short time ago, although its
    /// server committed for others, or its schema has been one that this node cannot use for ten seconds.
    pub stuck: bool,
}
