//! Parts of a cluster beside its nodes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use forebay_membership::ClusterTask;
use forebay_types::NodeName;
use tokio::sync::Notify;

use super::{
    network::Network,
    trouble::{Trouble, Troubles},
};
use crate::fake::{AssignmentRecord, CatalogDb};

/// A node's part in its cluster.
#[derive(Clone)]
pub struct MemberOf {
    /// The node's name.
    pub name: NodeName,
    /// Notified when another node has changed the catalog.
    pub changed: Arc<Notify>,
    /// How far it has come.
    pub part: Arc<Mutex<Part>>,
}

/// How far a node has come.
#[derive(Default)]
pub enum Part {
    /// It joins.
    #[default]
    Joins,
    /// It takes part.
    Member(ClusterTask),
    /// It has begun to leave.
    Leaves,
}

impl MemberOf {
    /// It has joined.
    pub fn joined(&self, task: ClusterTask) {
        *self.part() = Part::Member(task);
    }

    /// It begins to leave. Returns its membership task, if it has joined and does not leave yet.
    pub fn leave(&self) -> Option<ClusterTask> {
        match std::mem::replace(&mut *self.part(), Part::Leaves) {
            Part::Member(task) => Some(task),
            _ => None,
        }
    }

    /// Whether the node has joined and does not leave.
    pub fn has_joined(&self) -> bool {
        matches!(*self.part(), Part::Member(_))
    }

    /// Whether it has begun to leave.
    pub fn leaves(&self) -> bool {
        matches!(*self.part(), Part::Leaves)
    }

    fn part(&self) -> MutexGuard<'_, Part> {
        self.part.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Parts of a cluster beside its nodes.
pub struct Cluster {
    /// The catalog.
    pub catalog: CatalogDb,
    /// The way between nodes.
    pub network: Arc<Network>,
    /// Its disturbances.
    pub troubles: Troubles,
    /// The names of all processes that were started, in order.
    names: Mutex<Vec<NodeName>>,
    /// Which situations it met.
    coverage: Mutex<ClusterCoverage>,
}

impl Cluster {
    /// A healthy one.
    pub fn new(catalog: CatalogDb, network: Network) -> Self {
        Self {
            catalog,
            network: Arc::new(network),
            troubles: Troubles::default(),
            names: Mutex::default(),
            coverage: Mutex::default(),
        }
    }

    /// Which situations it met.
    pub fn coverage(&self) -> MutexGuard<'_, ClusterCoverage> {
        self.coverage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A process is started. Returns its number.
    pub fn launched(&self, name: NodeName) -> usize {
        let names = &mut *self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.push(name);
        self.coverage().launched += 1;
        names.len()
    }

    /// Takes the log that the checks after the run read.
    pub fn log(&self) -> ClusterLog {
        ClusterLog {
            assigned: std::mem::take(&mut self.catalog.lock().assigned),
            troubles: self.troubles.all(),
            names: self.names.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }
}

/// Log of a cluster that the checks after the run read.
#[derive(Debug, Clone, Default)]
pub struct ClusterLog {
    /// Every change of the assignment.
    pub assigned: Vec<AssignmentRecord>,
    /// Disturbances of the cluster.
    pub troubles: Vec<Trouble>,
    /// The names of all processes, in the order of their numbers.
    pub names: Vec<NodeName>,
}

/// How often runs met the situations of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClusterCoverage {
    /// Nodes that were started.
    pub launched: u64,
    /// Nodes that failed while all else was well, and whose shards were looked at 3 s later.
    pub failures: u64,
    /// Such shards.
    pub shards_failed: u64,
    /// Nodes that left.
    pub left: u64,
    /// Processes that did not start, because another one had their name.
    pub names_taken: u64,
    /// Processes that listened where a dead one had.
    pub addresses_taken: u64,
    /// Processes that started with an image of the catalog, as it was away.
    pub starts_without_catalog: u64,
    /// Clocks that stepped, of nodes and of servers.
    pub clocks_stepped: u64,
    /// Servers that were down while all else was well.
    pub servers_down: u64,
    /// Servers that lost COMMITs, or their answers.
    pub commits_lost: u64,
    /// Nodes that failed while the catalog was out of reach.
    pub without_catalog: u64,
    /// Times that the catalog went back.
    pub gone_back: u64,
    /// Ways between nodes that were cut.
    pub cuts: u64,
    /// Nodes that were cut off from a server.
    pub cut_servers: u64,
    /// Nodes that were cut off from the catalog while all else was well.
    pub cut_from_catalog: u64,
    /// Shards that operators pinned.
    pub pinned: u64,
    /// Nodes that operators drained.
    pub drained: u64,
    /// Shards that operators added, drained or removed.
    pub shards_changed: u64,
    /// Moves of shards from living owners.
    pub moves: u64,
    /// Moves of these that were checked, because nothing disturbed the cluster.
    pub moves_checked: u64,
    /// Moves of shards that had lost their owner.
    pub failovers: u64,
    /// Runs that became even in the end.
    pub settled: u64,
    /// Polls that waited while another node stored an item.
    pub wakes_across: u64,
}

impl ClusterCoverage {
    /// Adds the counts of another run.
    pub fn add(&mut self, other: &Self) {
        self.launched += other.launched;
        self.failures += other.failures;
        self.shards_failed += other.shards_failed;
        self.left += other.left;
        self.names_taken += other.names_taken;
        self.addresses_taken += other.addresses_taken;
        self.starts_without_catalog += other.starts_without_catalog;
        self.clocks_stepped += other.clocks_stepped;
        self.servers_down += other.servers_down;
        self.commits_lost += other.commits_lost;
        self.without_catalog += other.without_catalog;
        self.gone_back += other.gone_back;
        self.cuts += other.cuts;
        self.cut_servers += other.cut_servers;
        self.cut_from_catalog += other.cut_from_catalog;
        self.pinned += other.pinned;
        self.drained += other.drained;
        self.shards_changed += other.shards_changed;
        self.moves += other.moves;
        self.moves_checked += other.moves_checked;
        self.failovers += other.failovers;
        self.settled += other.settled;
        self.wakes_across += other.wakes_across;
    }

    /// The situations that `runs` runs must meet so often, and these did not.
    pub fn missing(&self, runs: u64) -> Vec<String> {
        let all = [
            ("a node that failed while all else was well", self.failures, 40),
            ("a shard of such a node", self.shards_failed, 60),
            ("a node that left", self.left, 20),
            ("a process whose name was taken", self.names_taken, 2),
            ("a process where a dead one had listened", self.addresses_taken, 30),
            ("a process that started without the catalog", self.starts_without_catalog, 5),
            ("a clock that stepped", self.clocks_stepped, 10),
            ("a server that was down while all else was well", self.servers_down, 4),
            ("a server that lost COMMITs", self.commits_lost, 10),
            ("a node that failed while the catalog was out of reach", self.without_catalog, 10),
            ("a catalog that went back", self.gone_back, 10),
            ("a way between nodes that was cut", self.cuts, 30),
            ("a node that was cut off from a server", self.cut_servers, 20),
            ("a node that was cut off from the catalog alone", self.cut_from_catalog, 2),
            ("a pinned shard", self.pinned, 30),
            ("a drained node", self.drained, 20),
            ("a shard that was added, drained or removed", self.shards_changed, 30),
            ("a move from a living owner", self.moves, 100),
            ("such a move while all was well", self.moves_checked, 40),
            ("a failover", self.failovers, 100),
            ("a run that became even", self.settled, 95),
            ("a poll that waited while another node stored an item", self.wakes_across, 100),
        ];
        let missing = all.into_iter().filter(|(_, count, of_100)| *count * 100 < of_100 * runs);
        missing.map(|(name, count, of_100)| format!("{name}: {count}, of {of_100} in 100 runs")).collect()
    }
}
