//! The rows of a fake catalog, and what each change makes of them.

use std::collections::BTreeMap;

use forebay_store::{
    Assignment, Beat, CatalogChanges, CatalogError, CatalogNode, CatalogShard, CatalogShardState, Home,
    Joined, NodeReport, Sighting, Versions,
};
use forebay_types::{ClusterId, Incarnation, NodeName, ShardId};

/// Everything that a catalog stores.
#[derive(Debug, Clone, Default)]
pub(super) struct CatalogTables {
    /// The cluster.
    pub cluster: ClusterId,
    /// The versions.
    pub versions: Versions,
    /// The nodes.
    pub nodes: BTreeMap<NodeName, CatalogNode>,
    /// The shards.
    pub shards: BTreeMap<ShardId, CatalogShard>,
    /// The homes.
    pub homes: BTreeMap<ShardId, Home>,
    /// The highest number that a shard has had.
    pub last_shard: u32,
}

impl CatalogTables {
    /// A new catalog. Versions begin at 1: whoever knows nothing has 0.
    pub fn new(cluster: ClusterId) -> Self {
        let versions = Versions { shards: 1, nodes: 1, assignment: 1 };
        Self { cluster, versions, ..Self::default() }
    }

    /// See [`Catalog::read`](forebay_store::Catalog::read).
    pub fn read(&self, known: Versions) -> CatalogChanges {
        let Versions { shards, assignment, .. } = self.versions;
        let homes = || Assignment { version: assignment, homes: self.homes.clone() };
        CatalogChanges {
            cluster: self.cluster,
            versions: self.versions,
            nodes: self.nodes.values().cloned().collect(),
            shards: (shards != known.shards).then(|| self.shards.values().cloned().collect()),
            assignment: (assignment != known.assignment).then(homes),
        }
    }

    /// See [`Catalog::join`](forebay_store::Catalog::join).
    pub fn join(&mut self, node: &CatalogNode, expected: Option<Sighting>) -> Joined {
        let mut row = CatalogNode { beats: 1, ..node.clone() };
        if let Some(found) = self.nodes.get(&node.name) {
            let seen = Sighting { incarnation: found.incarnation, beats: found.beats };
            if found.incarnation != node.incarnation && expected != Some(seen) {
                return Joined::NameTaken(seen);
            }
            (row.beats, row.draining) = (found.beats + 1, found.draining);
        }
        self.nodes.insert(node.name.clone(), row);
        self.versions.nodes += 1;
        Joined::Yes
    }

    /// See [`Catalog::beat`](forebay_store::Catalog::beat).
    pub fn beat(&mut self, name: &NodeName, incarnation: Incarnation, report: NodeReport) -> Beat {
        match self.nodes.get_mut(name).filter(|node| node.incarnation == incarnation) {
            Some(node) => {
                node.beats += 1;
                node.report = report;
                Beat::Ok
            }
            None => Beat::Replaced,
        }
    }

    /// See [`Catalog::leave`](forebay_store::Catalog::leave).
    pub fn leave(&mut self, name: &NodeName, incarnation: Incarnation) -> bool {
        let had = self.nodes.get(name).is_some_and(|node| node.incarnation == incarnation);
        if had {
            self.nodes.remove(name);
            self.versions.nodes += 1;
        }
        had
    }

    /// See [`Catalog::set_draining`](forebay_store::Catalog::set_draining).
    pub fn set_draining(&mut self, name: &NodeName, draining: bool) -> bool {
        let Some(node) = self.nodes.get_mut(name) else { return false };
        node.draining = draining;
        self.versions.nodes += 1;
        true
    }

    /// See [`Catalog::assign`](forebay_store::Catalog::assign).
    pub fn assign(&mut self, from_version: u64, changes: &BTreeMap<ShardId, Option<Home>>) -> bool {
        if self.versions.assignment != from_version {
            return false;
        }
        self.versions.assignment += 1;
        for (id, home) in changes {
            match home {
                Some(home) => drop(self.homes.insert(*id, home.clone())),
                None => drop(self.homes.remove(id)),
            }
        }
        true
    }

    /// See [`Catalog::add_shard`](forebay_store::Catalog::add_shard).
    pub fn add_shard(&mut self, url: &str, id: Option<ShardId>) -> Result<ShardId, CatalogError> {
        // After the last number of all, the shard that has it is in the way.
        let id = id.unwrap_or(ShardId(self.last_shard.saturating_add(1)));
        if let Some(taken) = self.shards.values().find(|shard| shard.url == url) {
            return Err(CatalogError::UrlTaken(taken.id));
        }
        if self.shards.contains_key(&id) {
            return Err(CatalogError::NumberTaken(id));
        }
        let state = CatalogShardState::Active;
        self.shards.insert(id, CatalogShard { id, url: url.to_owned(), state });
        self.last_shard = self.last_shard.max(id.0);
        self.versions.shards += 1;
        Ok(id)
    }

    /// See [`Catalog::set_shard_state`](forebay_store::Catalog::set_shard_state).
    pub fn set_shard_state(&mut self, id: ShardId, state: CatalogShardState) -> Result<(), CatalogError> {
        self.shards.get_mut(&id).ok_or(CatalogError::NoShard(id))?.state = state;
        self.versions.shards += 1;
        Ok(())
    }

    /// See [`Catalog::remove_shard`](forebay_store::Catalog::remove_shard).
    pub fn remove_shard(&mut self, id: ShardId) -> Result<(), CatalogError> {
        self.shards.remove(&id).ok_or(CatalogError::NoShard(id))?;
        self.versions.shards += 1;
        if self.homes.remove(&id).is_some() {
            self.versions.assignment += 1;
        }
        Ok(())
    }
}
