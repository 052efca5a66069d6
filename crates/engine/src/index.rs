//! Positions of shards and servers in the node's configuration, and numbers of other nodes.

/// Position of a shard in the node's configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct ShardIndex(pub usize);

/// A database server, named by the position of the first shard that it keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ServerIndex(pub usize);

/// Another node, numbered anew each time it is linked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeIndex(pub usize);
