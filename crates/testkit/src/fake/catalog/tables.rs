//! The rows of a fake catalog, and what each change makes of them.

use std::collections::BTreeMap;

use forebay_store::{
    Assignment, Beat, CatalogChanges, CatalogError, CatalogNode, CatalogShard, CatalogShardState, Home,
    Joined, NodeReport, PolicyWish, PolicyWritten, Sighting, Versions,
};
use forebay_types::{
    ClusterId, Incarnation, NodeName, Policy, PolicyChanges, PolicyRow, ShardId, Side, TopicName,
};

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
    /// The policies, removed ones included.
    pub policies: BTreeMap<TopicName, PolicyRow>,
    /// The highest version of a removed policy that is deleted.
    pub policies_floor: u64,
    /// The highest number that a shard has had.
    pub last_shard: u32,
}

impl CatalogTables {
    /// A new catalog. Versions begin at 1: whoever knows nothing has 0.
    pub fn new(cluster: ClusterId) -> Self {
        let versions = Versions { shards: 1, nodes: 1, assignment: 1, policies: 1 };
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
            policies: self.changed_policies(known.policies),
        }
    }

    fn changed_policies(&self, known: u64) -> PolicyChanges {
        let version = self.versions.policies;
        if version == known {
            return PolicyChanges::default();
        }
        let whole = known == 0 || self.policies_floor > known || version < known;
        let rows = self.policies.values().filter(|row| whole || row.version > known);
        let mut rows: Vec<PolicyRow> = rows.cloned().collect();
        rows.sort_by_key(|row| row.version);
        PolicyChanges { whole, rows }
    }

    /// See [`Catalog::policy`](forebay_store::Catalog::policy).
    pub fn policy(&self, name: &TopicName) -> PolicyRow {
        let none = || PolicyRow { name: name.clone(), version: 0, policy: Policy::default() };
        self.policies.get(name).cloned().unwrap_or_else(none)
    }

    /// See [`Catalog::put_policy`](forebay_store::Catalog::put_policy).
    pub fn put_policy(&mut self, wish: &PolicyWish) -> PolicyWritten {
        let PolicyWish { name, from_version, policy, ended_before, bounds } = wish;
        let found = self.policy(name);
        if found.version != *from_version {
            return PolicyWritten::Stale;
        }
        let version = self.versions.policies + 1;
        let mut rows = self.policies.clone();
        let has_ended = |row: &PolicyRow| {
            let is_over = |side| {
                row.policy.pause(side).is_none_or(|pause| pause.until.is_some_and(|end| end < *ended_before))
            };
            !row.policy.is_nothing() && row.name != *name && Side::BOTH.into_iter().all(is_over)
        };
        for row in rows.values_mut().filter(|row| has_ended(row)) {
            (row.policy, row.version) = (Policy::default(), version);
        }
        let there = rows.values().filter(|row| !row.policy.is_nothing());
        let (mut all, mut of_namespace) = (0, 0);
        for row in there {
            all += 1;
            of_namespace += u64::from(row.name.namespace == name.namespace);
        }
        if found.policy.is_nothing() && !policy.is_nothing() {
            if of_namespace >= bounds.per_namespace {
                return PolicyWritten::NamespaceFull;
            }
            if all >= bounds.in_all {
                return PolicyWritten::Full;
            }
        }
        rows.insert(name.clone(), PolicyRow { name: name.clone(), version, policy: policy.clone() });
        let removed = rows.values().filter(|row| row.policy.is_nothing());
        let mut removed: Vec<u64> = removed.map(|row| row.version).collect();
        removed.sort_unstable_by(|one, other| other.cmp(one));
        if let Some(floor) = usize::try_from(bounds.removed).ok().and_then(|most| removed.get(most)) {
            rows.retain(|_, row| !row.policy.is_nothing() || row.version > *floor);
            self.policies_floor = *floor;
        }
        (self.policies, self.versions.policies) = (rows, version);
        PolicyWritten::Yes(version)
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
