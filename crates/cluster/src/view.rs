//! The input of a plan: the cluster as one node sees it at one moment.

use std::collections::{BTreeMap, BTreeSet};

use forebay_store::{CatalogShardState, Home};
use forebay_types::{Monotonic, NodeName, ShardId};

/// The cluster as one node sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterView {
    /// The moment.
    pub now: Monotonic,
    /// All nodes of the catalog.
    pub nodes: BTreeMap<NodeName, NodeView>,
    /// All shards of the catalog.
    pub shards: BTreeMap<ShardId, ShardView>,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeView {
    /// Its counter moves.
    pub live: bool,
    /// Its counter has stood still for a while, though not long enough to call it dead: others may.
    pub late: bool,
    /// An operator wants it to own nothing.
    pub draining: bool,
    /// Since when its process has been seen to live without a break.
    pub joined_since: Monotonic,
    /// The database servers that it reaches, as it reports.
    pub servers: BTreeSet<String>,
    /// Since when most of the others report that they do not reach it.
    pub grey_since: Option<Monotonic>,
}

/// A shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardView {
    /// The database server that stores it.
    pub server: String,
    /// The state that operators set for it.
    pub state: CatalogShardState,
    /// The node that should own it.
    pub home: Option<Home>,
    /// Since when it has had that home. `None`: for longer than anybody remembers.
    pub home_since: Option<Monotonic>,
    /// The node that owns it, as far as is known. While it is not the home, a move is under way.
    pub owner: Option<NodeName>,
    /// That owner has shown no sign of life in the shard for a whole lease.
    pub silent: bool,
    /// Its home says that it cannot serve it, and its server answers there.
    pub stuck: bool,
    /// Its server has answered the planner for a while without a break.
    pub steady: bool,
}
