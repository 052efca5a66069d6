//! Rows of a catalog's tables.

use std::{collections::BTreeMap, fmt};

use forebay_types::{
    ClusterId, Incarnation, Namespace, NodeName, Policy, PolicyChanges, SettingsRow, ShardId, Timestamp,
    Topic, TopicName, TopicSettings,
};
use serde::{Deserialize, Serialize};

use super::root_bounds::RootBounds;

/// A version of each set of rows. A version only grows. Nobody has seen anything yet: all are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Versions {
    /// Of the shards.
    pub shards: u64,
    /// Of the nodes: who joined, left or drains. Beats and reports change without it.
    pub nodes: u64,
    /// Of the assignment.
    pub assignment: u64,
    /// Of the policies and settings.
    pub policies: u64,
}

/// State of a shard that operators wish for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum CatalogShardState {
    /// It takes new items.
    Active,
    /// It has an owner and takes no new items.
    Draining,
    /// It has no owner.
    Offline,
}

impl fmt::Display for CatalogShardState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Active => "active",
            Self::Draining => "draining",
            Self::Offline => "offline",
        })
    }
}

/// A shard of the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CatalogShard {
    /// Its number, as in the shard's own schema.
    pub id: ShardId,
    /// Where it is, without a password.
    pub url: String,
    /// The state that operators wish for.
    pub state: CatalogShardState,
}

/// Report of a node on itself, with every beat.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NodeReport {
    /// The database servers that it reaches, as [`Shard::server`](crate::Shard::server) names them.
    pub servers: Vec<String>,
    /// The nodes that it does not reach.
    pub unreachable: Vec<NodeName>,
}

/// A node that has joined and not left. It may be dead: only a counter that moves shows life.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CatalogNode {
    /// Its name in its configuration.
    pub name: NodeName,
    /// The process: random, never used before.
    pub incarnation: Incarnation,
    /// `host:port` for other nodes.
    pub peer_address: String,
    /// `host:port` for clients.
    pub clients_address: String,
    /// `host:port` of health, metrics and status.
    pub http_address: String,
    /// The program's version.
    pub release: String,
    /// The newest stored format that its program can read.
    pub format: u32,
    /// It should own no shard. An operator's wish, which outlasts the process.
    pub draining: bool,
    /// When the process was started, by its clock. `None`: its program is of a release that does not say it.
    pub started_at: Option<Timestamp>,
    /// A counter that the node increments while it lives.
    pub beats: u64,
    /// Report with its last beat.
    pub report: NodeReport,
}

impl CatalogNode {
    /// Whether it takes no other nodes into its cluster: it has no address for them beside that for clients.
    pub fn is_alone(&self) -> bool {
        self.peer_address == self.clients_address
    }
}

/// The node that should own a shard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Home {
    /// Its name. The node may be gone.
    pub node: NodeName,
    /// An operator chose it.
    pub pinned: bool,
}

/// Which node should own which shard. The fence of a shard says which one does.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Assignment {
    /// Its version. A change names the one that it was made from.
    pub version: u64,
    /// The homes. A shard without a home has none yet, or is offline.
    pub homes: BTreeMap<ShardId, Home>,
}

/// Changes of a catalog, as of one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CatalogChanges {
    /// The cluster.
    pub cluster: ClusterId,
    /// The versions of that moment.
    pub versions: Versions,
    /// All nodes, by name.
    pub nodes: Vec<CatalogNode>,
    /// All shards, by number, if their version is another than the reader's.
    pub shards: Option<Vec<CatalogShard>>,
    /// The assignment, if its version is another than the reader's.
    pub assignment: Option<Assignment>,
    /// The policies and settings that have changed since the reader's version.
    pub policies: PolicyChanges,
}

/// A whole catalog, as of one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogView {
    /// The cluster.
    pub cluster: ClusterId,
    /// The versions of that moment.
    pub versions: Versions,
    /// All nodes, by name.
    pub nodes: Vec<CatalogNode>,
    /// All shards, by number.
    pub shards: Vec<CatalogShard>,
    /// Which node should own which shard.
    pub assignment: Assignment,
}

/// A process as another one saw it: which one, and how far its counter was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sighting {
    /// The process.
    pub incarnation: Incarnation,
    /// Its counter.
    pub beats: u64,
}

/// The result of joining.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinOutcome {
    /// The name is ours.
    Yes,
    /// Another process has the name, and it is not the one that was expected, or its counter has moved.
    NameTaken(Sighting),
}

/// The result of a beat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beat {
    /// It was counted.
    Ok,
    /// Another process has the name, or nobody has.
    Replaced,
}

/// A policy that is to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyWish {
    /// Of which topic. An empty topic: of the namespace itself.
    pub name: TopicName,
    /// The version of the row from which it was made. 0: there was none.
    pub from_version: u64,
    /// The policy to write. Nothing removes the policy.
    pub policy: Policy,
    /// Other policies of which nothing is left since then are removed.
    pub ended_before: Timestamp,
    /// From whom the rights of its maker descend. Empty: from nobody, it is an operator.
    pub root: String,
    /// Bounds of the table.
    pub bounds: PolicyBounds,
}

/// Settings that are to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsWish {
    /// Of which topic. An empty topic: of the namespace itself.
    pub name: TopicName,
    /// The version of the row from which they were made. 0: there was none.
    pub from_version: u64,
    /// The settings to write. Nothing removes the settings.
    pub settings: TopicSettings,
    /// From whom the rights of its maker descend. Empty: from nobody, it is an operator.
    pub root: String,
    /// Bounds of the table.
    pub bounds: PolicyBounds,
}

/// The settings of a namespace, or of all namespaces, at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsSnapshot {
    /// By name, without those that were removed.
    pub rows: Vec<SettingsRow>,
    /// It grows with each change of one of them. It may grow without one, when removed rows are deleted: they
    /// may have had the highest version.
    pub version: u64,
}

/// Settings of many names that are to be written in one change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsDocument {
    /// The namespace that they are all of. `None`: of any.
    pub namespace: Option<Namespace>,
    /// The version of the [`SettingsSnapshot`] from which they were made.
    pub from_version: u64,
    /// The settings of each name. Nothing removes its settings.
    pub wanted: BTreeMap<TopicName, TopicSettings>,
    /// From whom the rights of its maker descend. Empty: from nobody, it is an operator.
    pub root: String,
    /// Bounds of the table.
    pub bounds: PolicyBounds,
}

/// Policies and settings that are to be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyRemoval {
    /// Whose they are.
    pub namespace: Namespace,
    /// Of which topic. `None`: of the namespace, and of all of its topics.
    pub topic: Option<Topic>,
    /// Bounds of each table.
    pub bounds: PolicyBounds,
}

/// How many policies a catalog holds, and how many settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PolicyBounds {
    /// Of one namespace.
    pub per_namespace: u64,
    /// By root.
    pub by_root: RootBounds,
    /// Removed ones that are kept, so that nodes need not read all of the others.
    pub removed: u64,
}

impl PolicyBounds {
    /// Bounds of a catalog. A policy has 3 KiB at most and settings have 0.5 KiB, so that all of them have 35
    /// MiB.
    pub const DEFAULT: Self = Self { per_namespace: 1_000, by_root: RootBounds::DEFAULT, removed: 1_000 };
}

/// The result of writing a policy, or settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyOutcome {
    /// It has this version.
    Yes(u64),
    /// The row has another version by now, and nothing was changed.
    Stale,
    /// The namespace has as many of them as it may have.
    NamespaceFull,
    /// The root has as many of them as it may have.
    RootFull,
    /// The catalog has as many of them as it may have, or as this root may fill.
    Full,
}
