//! The rows of a fake catalog, and what each change makes of them.

use std::collections::BTreeMap;

use forebay_store::{
    Assignment, Beat, CatalogChanges, CatalogError, CatalogNode, CatalogShard, CatalogShardState, Home,
    JoinOutcome, NodeReport, PolicyBounds, PolicyOutcome, PolicyRemoval, PolicyWish, SettingsDocument,
    SettingsSnapshot, SettingsWish, Sighting, Versions,
};
use forebay_types::{
    ClusterId, Incarnation, Namespace, NodeName, Policy, PolicyChanges, PolicyRow, SettingsRow, ShardId,
    Side, TopicName, TopicSettings,
};

use super::records::Records;

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
    /// The settings, removed ones included.
    pub settings: BTreeMap<TopicName, SettingsRow>,
    /// From whom the rights of those descend who wrote the policies.
    policy_roots: BTreeMap<TopicName, String>,
    /// The same of the settings.
    setting_roots: BTreeMap<TopicName, String>,
    /// The highest version of a removed row of either that is deleted.
    pub policies_floor: u64,
    /// The highest number that a shard has had.
    pub last_shard: u32,
    /// Records of calls, and tokens.
    pub records: Records,
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
        let settings = self.settings.values().filter(|row| whole || row.version > known);
        let mut settings: Vec<SettingsRow> = settings.cloned().collect();
        settings.sort_by_key(|row| row.version);
        PolicyChanges { whole, rows, settings }
    }

    /// See [`Catalog::policy`](forebay_store::Catalog::policy).
    pub fn policy(&self, name: &TopicName) -> PolicyRow {
        let none = || PolicyRow { name: name.clone(), version: 0, policy: Policy::default() };
        self.policies.get(name).cloned().unwrap_or_else(none)
    }

    /// See [`Catalog::put_policy`](forebay_store::Catalog::put_policy).
    pub fn put_policy(&mut self, wish: &PolicyWish) -> PolicyOutcome {
        let PolicyWish { name, from_version, policy, ended_before, root, bounds } = wish;
        let found = self.policy(name);
        if found.version != *from_version {
            return PolicyOutcome::Stale;
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
        let there = rows.values().filter(|row| !row.policy.is_nothing()).map(|row| &row.name);
        if found.policy.is_nothing()
            && !policy.is_nothing()
            && let Some(full) = no_room(there, name, (&self.policy_roots, root), bounds)
        {
            return full;
        }
        self.policy_roots.insert(name.clone(), root.clone());
        rows.insert(name.clone(), PolicyRow { name: name.clone(), version, policy: policy.clone() });
        (self.policies, self.versions.policies) = (rows, version);
        self.forget_removed(bounds);
        PolicyOutcome::Yes(version)
    }

    /// See [`Catalog::settings`](forebay_store::Catalog::settings).
    pub fn settings(&self, name: &TopicName) -> SettingsRow {
        let none = || SettingsRow { name: name.clone(), version: 0, settings: TopicSettings::default() };
        self.settings.get(name).cloned().unwrap_or_else(none)
    }

    /// See [`Catalog::put_settings`](forebay_store::Catalog::put_settings).
    pub fn put_settings(&mut self, wish: &SettingsWish) -> PolicyOutcome {
        let SettingsWish { name, from_version, settings, root, bounds } = wish;
        let found = self.settings(name);
        if found.version != *from_version {
            return PolicyOutcome::Stale;
        }
        let there = self.settings.values().filter(|row| !row.settings.is_nothing()).map(|row| &row.name);
        if found.settings.is_nothing()
            && !settings.is_nothing()
            && let Some(full) = no_room(there, name, (&self.setting_roots, root), bounds)
        {
            return full;
        }
        self.setting_roots.insert(name.clone(), root.clone());
        self.versions.policies += 1;
        let version = self.versions.policies;
        self.settings.insert(name.clone(), SettingsRow { name: name.clone(), version, settings: *settings });
        self.forget_removed(bounds);
        PolicyOutcome::Yes(version)
    }

    /// See [`Catalog::all_settings`](forebay_store::Catalog::all_settings).
    pub fn all_settings(&self, namespace: Option<&Namespace>) -> SettingsSnapshot {
        let is_of = |row: &&SettingsRow| namespace.is_none_or(|namespace| row.name.namespace == *namespace);
        let found = self.settings.values().filter(is_of);
        let version = found.clone().map(|row| row.version).max().unwrap_or(0).max(self.policies_floor);
        let rows = found.filter(|row| !row.settings.is_nothing()).cloned().collect();
        SettingsSnapshot { rows, version }
    }

    /// See [`Catalog::put_all_settings`](forebay_store::Catalog::put_all_settings).
    pub fn put_all_settings(&mut self, document: &SettingsDocument) -> PolicyOutcome {
        let SettingsDocument { namespace, from_version, wanted, root, bounds } = document;
        if self.all_settings(namespace.as_ref()).version != *from_version {
            return PolicyOutcome::Stale;
        }
        let version = self.versions.policies + 1;
        let (mut settings, mut roots) = (self.settings.clone(), self.setting_roots.clone());
        let before = settings.values().filter(|row| !row.settings.is_nothing()).count() as u64;
        for (name, wanted) in wanted {
            let row = SettingsRow { name: name.clone(), version, settings: *wanted };
            settings.insert(name.clone(), row);
            roots.insert(name.clone(), root.clone());
        }
        let there = || settings.values().filter(|row| !row.settings.is_nothing());
        let of_root =
            there().filter(|row| !root.is_empty() && roots.get(&row.name) == Some(root)).count() as u64;
        if of_root > bounds.by_root.per_root {
            return PolicyOutcome::RootFull;
        }
        let most = bounds.by_root.in_all_for(root.is_empty(), of_root.saturating_sub(1));
        if there().count() as u64 > most.max(before) {
            return PolicyOutcome::Full;
        }
        for name in wanted.keys() {
            let of_one = there().filter(|row| row.name.namespace == name.namespace);
            if of_one.count() as u64 > bounds.per_namespace {
                return PolicyOutcome::NamespaceFull;
            }
        }
        (self.settings, self.setting_roots, self.versions.policies) = (settings, roots, version);
        self.forget_removed(bounds);
        PolicyOutcome::Yes(version)
    }

    /// See [`Catalog::remove_policies`](forebay_store::Catalog::remove_policies).
    pub fn remove_policies(&mut self, removal: &PolicyRemoval) -> Option<u64> {
        let PolicyRemoval { namespace, topic, bounds } = removal;
        let version = self.versions.policies + 1;
        let is_of = |name: &TopicName| {
            name.namespace == *namespace && topic.as_ref().is_none_or(|topic| name.topic == *topic)
        };
        let mut removed = 0;
        for row in self.policies.values_mut().filter(|row| is_of(&row.name) && !row.policy.is_nothing()) {
            (row.policy, row.version, removed) = (Policy::default(), version, removed + 1);
        }
        for row in self.settings.values_mut().filter(|row| is_of(&row.name) && !row.settings.is_nothing()) {
            (row.settings, row.version, removed) = (TopicSettings::default(), version, removed + 1);
        }
        if removed == 0 {
            return None;
        }
        self.versions.policies = version;
        self.forget_removed(bounds);
        Some(version)
    }

    /// Deletes the oldest removed rows of each table, if there are too many.
    fn forget_removed(&mut self, bounds: &PolicyBounds) {
        let floor = |mut removed: Vec<u64>| {
            removed.sort_unstable_by(|one, other| other.cmp(one));
            usize::try_from(bounds.removed).ok().and_then(|most| removed.get(most).copied()).unwrap_or(0)
        };
        let removed = self.policies.values().filter(|row| row.policy.is_nothing());
        let of_policies = floor(removed.map(|row| row.version).collect());
        self.policies.retain(|_, row| !row.policy.is_nothing() || row.version > of_policies);
        let removed = self.settings.values().filter(|row| row.settings.is_nothing());
        let of_settings = floor(removed.map(|row| row.version).collect());
        self.settings.retain(|_, row| !row.settings.is_nothing() || row.version > of_settings);
        self.policies_floor = self.policies_floor.max(of_policies).max(of_settings);
    }

    /// See [`Catalog::join`](forebay_store::Catalog::join).
    pub fn join(&mut self, node: &CatalogNode, expected: Option<Sighting>) -> JoinOutcome {
        let mut row = CatalogNode { beats: 1, ..node.clone() };
        if let Some(found) = self.nodes.get(&node.name) {
            let seen = Sighting { incarnation: found.incarnation, beats: found.beats };
            if found.incarnation != node.incarnation && expected != Some(seen) {
                return JoinOutcome::NameTaken(seen);
            }
            (row.beats, row.draining) = (found.beats + 1, found.draining);
        }
        self.nodes.insert(node.name.clone(), row);
        self.versions.nodes += 1;
        JoinOutcome::Yes
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

    fn check_version(&self, version: u64) -> Result<(), CatalogError> {
        if self.versions.shards == version { Ok(()) } else { Err(CatalogError::Stale) }
    }

    /// See [`Catalog::set_shard_url`](forebay_store::Catalog::set_shard_url).
    pub fn set_shard_url(&mut self, id: ShardId, url: &str, from_version: u64) -> Result<(), CatalogError> {
        self.check_version(from_version)?;
        if let Some(other) = self.shards.values().find(|other| other.url == url && other.id != id) {
            return Err(CatalogError::UrlTaken(other.id));
        }
        url.clone_into(&mut self.shards.get_mut(&id).ok_or(CatalogError::NoShard(id))?.url);
        self.versions.shards += 1;
        Ok(())
    }

    /// See [`Catalog::set_shard_state`](forebay_store::Catalog::set_shard_state).
    pub fn set_shard_state(
        &mut self,
        id: ShardId,
        state: CatalogShardState,
        from_version: u64,
    ) -> Result<(), CatalogError> {
        self.check_version(from_version)?;
        self.shards.get_mut(&id).ok_or(CatalogError::NoShard(id))?.state = state;
        self.versions.shards += 1;
        Ok(())
    }

    /// See [`Catalog::remove_shard`](forebay_store::Catalog::remove_shard).
    pub fn remove_shard(&mut self, id: ShardId, from_version: u64) -> Result<(), CatalogError> {
        self.check_version(from_version)?;
        self.shards.remove(&id).ok_or(CatalogError::NoShard(id))?;
        self.versions.shards += 1;
        if self.homes.remove(&id).is_some() {
            self.versions.assignment += 1;
        }
        Ok(())
    }
}

/// Why there is no room for one more beside these.
fn no_room<'a>(
    there: impl Iterator<Item = &'a TopicName>,
    name: &TopicName,
    (roots, root): (&BTreeMap<TopicName, String>, &String),
    bounds: &PolicyBounds,
) -> Option<PolicyOutcome> {
    let (mut all, mut of_namespace, mut of_root) = (0, 0, 0);
    for other in there {
        all += 1;
        of_namespace += u64::from(other.namespace == name.namespace);
        of_root += u64::from(!root.is_empty() && roots.get(other) == Some(root));
    }
    match () {
        () if of_namespace >= bounds.per_namespace => Some(PolicyOutcome::NamespaceFull),
        () if of_root >= bounds.by_root.per_root => Some(PolicyOutcome::RootFull),
        () if all >= bounds.by_root.in_all_for(root.is_empty(), of_root) => Some(PolicyOutcome::Full),
        () => None,
    }
}
