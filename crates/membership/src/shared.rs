//! The cluster's state, for the rest of the node.

use forebay_types::{NodeName, ShardId};

/// The cluster, as this node saw it last.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct ClusterState {
    /// This node's name.
    pub own: String,
    /// The nodes, by name.
    pub nodes: Vec<NodeState>,
    /// The shards, by number.
    pub shards: Vec<ShardHome>,
    /// Why the catalog is not followed, if it is not: it does not answer, or another node excludes this one.
    /// The node goes on with what it knew.
    pub catalog_trouble: String,
}

/// A node of the cluster.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct NodeState {
    /// Its name.
    pub name: String,
    /// Where other nodes reach it, `host:port`.
    pub peer_address: String,
    /// Where clients reach it, `host:port`.
    pub clients_address: String,
    /// Where its pages are, `host:port`.
    pub http_address: String,
    /// Its program's version.
    pub release: String,
    /// Its counter moves.
    pub live: bool,
    /// It lives, but not for long enough yet to be given shards.
    pub joining: bool,
    /// It answers this node, or is not asked.
    pub reached: bool,
    /// An operator wants it to own nothing.
    pub draining: bool,
    /// How many shards it owns, as far as is known.
    pub shards: usize,
    /// When its process was started, by its clock, in microseconds since the Unix epoch. `None`: it is not
    /// known.
    pub started_micros: Option<i64>,
}

/// How a node is, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It may own shards.
    Live,
    /// It lives, but not for long enough yet to be given shards.
    Joining,
    /// It lives, and an operator wants it to own nothing.
    Draining,
    /// Its counter stands still.
    Silent,
}

impl Presence {
    /// Its name on the page.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Joining => "joining",
            Self::Draining => "draining",
            Self::Silent => "silent",
        }
    }
}

impl NodeState {
    /// How it is.
    pub const fn presence(&self) -> Presence {
        match self {
            Self { live: false, .. } => Presence::Silent,
            Self { draining: true, .. } => Presence::Draining,
            Self { joining: true, .. } => Presence::Joining,
            _ => Presence::Live,
        }
    }
}

/// A shard of the cluster.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ShardHome {
    /// Its number.
    pub id: ShardId,
    /// `active`, `draining` or `offline`.
    pub state: String,
    /// The node that should own it.
    pub home: Option<NodeName>,
    /// An operator chose that node.
    pub pinned: bool,
    /// The node that owns it, as far as is known.
    pub owner: Option<NodeName>,
}
