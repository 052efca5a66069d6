//! The last good copy of the catalog. It never goes back: a catalog with lower versions was restored from a
//! backup or is a replica that lags, and following it would undo what others already act on.

use std::fmt;

use forebay_store::{CatalogChanges, CatalogView, Versions};
use forebay_types::{ClusterId, PolicyChanges};

/// A node's copy of the catalog.
#[derive(Debug, Clone, Default)]
pub struct CatalogCopy {
    /// The catalog. `None`: it was never read.
    view: Option<CatalogView>,
    /// Policies that have changed and were not taken yet.
    policies: PolicyChanges,
    /// Why the last changes were refused, if they were.
    refused: Option<CopyRefusal>,
}

/// Why changes were refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CopyRefusal {
    /// A version is lower than the known one.
    WentBack {
        /// The versions that are known.
        known: Versions,
        /// The versions that were read.
        found: Versions,
    },
    /// It is the catalog of another cluster.
    OtherCluster {
        /// The cluster of the copy.
        known: ClusterId,
        /// The cluster that was read.
        found: ClusterId,
    },
    /// It was read with other known versions than those of this copy, and rows are missing.
    Incomplete,
}

impl fmt::Display for CopyRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WentBack { known, found } => {
                let list = |Versions { shards, nodes, assignment, policies }: &Versions| {
                    format!("shards {shards}, nodes {nodes}, assignment {assignment}, policies {policies}")
                };
                let (known, found) = (list(known), list(found));
                write!(f, "it went back from the versions {known} to {found}, as a restored backup does")
            }
            Self::OtherCluster { known, found } => {
                write!(f, "it is the catalog of cluster {found}, and this node is of cluster {known}")
            }
            Self::Incomplete => f.write_str("rows that have changed are missing in what was read"),
        }
    }
}

/// The result of applying changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApplyOutcome {
    /// The copy is as the catalog was when it was read.
    Updated,
    /// The copy stays as it was.
    Refused {
        /// Why.
        why: CopyRefusal,
        /// The reason is another one than before: it should be reported.
        is_new: bool,
    },
}

impl CatalogCopy {
    /// The catalog as it was last read.
    pub fn view(&self) -> Option<&CatalogView> {
        self.view.as_ref()
    }

    /// The versions to read from.
    pub fn known(&self) -> Versions {
        self.view.as_ref().map(|view| view.versions).unwrap_or_default()
    }

    /// Takes the policies that have changed since the last time. The engine keeps them, not this copy.
    pub fn take_policies(&mut self) -> PolicyChanges {
        std::mem::take(&mut self.policies)
    }

    /// Takes over what was read, unless that would go back.
    pub fn apply(&mut self, changes: CatalogChanges) -> ApplyOutcome {
        let Some(why) = self.refusal(&changes) else {
            self.refused = None;
            self.update(changes);
            return ApplyOutcome::Updated;
        };
        // A catalog that went back goes on changing from there, and none of that is news.
        let is_new = self.refused.as_ref().map(std::mem::discriminant) != Some(std::mem::discriminant(&why));
        self.refused = Some(why.clone());
        ApplyOutcome::Refused { why, is_new }
    }

    fn refusal(&self, changes: &CatalogChanges) -> Option<CopyRefusal> {
        let known = self.known();
        let found = changes.versions;
        if let Some(view) = &self.view
            && view.cluster != changes.cluster
        {
            return Some(CopyRefusal::OtherCluster { known: view.cluster, found: changes.cluster });
        }
        let lower = [
            found.shards < known.shards,
            found.nodes < known.nodes,
            found.assignment < known.assignment,
            found.policies < known.policies,
        ];
        if lower.contains(&true) {
            return Some(CopyRefusal::WentBack { known, found });
        }
        let lacks_shards = changes.shards.is_none() && found.shards != known.shards;
        let lacks_homes = changes.assignment.is_none() && found.assignment != known.assignment;
        (lacks_shards || lacks_homes).then_some(CopyRefusal::Incomplete)
    }

    fn update(&mut self, changes: CatalogChanges) {
        let CatalogChanges { cluster, versions, nodes, shards, assignment, policies } = changes;
        self.policies.extend(policies);
        let (old_shards, old_assignment) =
            self.view.take().map(|view| (view.shards, view.assignment)).unwrap_or_default();
        self.view = Some(CatalogView {
            cluster,
            versions,
            nodes,
            shards: shards.unwrap_or(old_shards),
            assignment: assignment.unwrap_or(old_assignment),
        });
    }
}

#[cfg(test)]
mod tests {
    use forebay_store::{Assignment, CatalogShard, CatalogShardState};
    use forebay_types::{Policy, PolicyRow, ShardId, TopicName};

    use super::*;

    fn changes(shards: u64, nodes: u64, assignment: u64) -> CatalogChanges {
        CatalogChanges {
            cluster: ClusterId([1; 16]),
            versions: Versions { shards, nodes, assignment, policies: 1 },
            nodes: vec![],
            shards: Some(vec![CatalogShard {
                id: ShardId(shards as u32),
                url: String::new(),
                state: CatalogShardState::Active,
            }]),
            assignment: Some(Assignment { version: assignment, homes: Default::default() }),
            policies: PolicyChanges::default(),
        }
    }

    #[test]
    fn what_did_not_change_is_kept() {
        let mut copy = CatalogCopy::default();
        assert_eq!(copy.known(), Versions::default());
        assert_eq!(copy.apply(changes(2, 2, 2)), ApplyOutcome::Updated);
        let next = CatalogChanges { shards: None, ..changes(2, 3, 3) };
        assert_eq!(copy.apply(next), ApplyOutcome::Updated);
        let view = copy.view().unwrap();
        assert_eq!((view.shards[0].id, view.assignment.version), (ShardId(2), 3));
        assert_eq!(copy.known(), Versions { shards: 2, nodes: 3, assignment: 3, policies: 1 });
    }

    #[test]
    fn policies_are_kept_until_they_are_taken_and_never_go_back() {
        let row = |topic: &str, version| PolicyRow {
            name: TopicName::new("ns", topic),
            version,
            policy: Policy::default(),
        };
        let with = |version, rows: Vec<PolicyRow>| CatalogChanges {
            versions: Versions { policies: version, ..changes(1, 1, 1).versions },
            policies: PolicyChanges { whole: version == 3, rows, settings: Vec::new() },
            ..changes(1, 1, 1)
        };
        let mut copy = CatalogCopy::default();
        copy.apply(with(3, vec![row("a", 3)]));
        copy.apply(with(4, vec![row("b", 4)]));
        let taken = copy.take_policies();
        assert_eq!((taken.whole, taken.rows.len(), copy.known().policies), (true, 2, 4));
        assert!(copy.take_policies().is_nothing());
        let refused = copy.apply(with(3, vec![row("c", 3)]));
        assert!(matches!(refused, ApplyOutcome::Refused { why: CopyRefusal::WentBack { .. }, is_new: true }));
        assert!(copy.take_policies().is_nothing());
    }

    #[test]
    fn it_never_goes_back_and_says_so_once() {
        for lower in [changes(4, 5, 5), changes(5, 4, 5), changes(5, 5, 4), changes(9, 9, 4)] {
            let mut copy = CatalogCopy::default();
            copy.apply(changes(5, 5, 5));
            let before = copy.view().cloned();
            let (known, found) = (copy.known(), lower.versions);
            let refused =
                |is_new| ApplyOutcome::Refused { why: CopyRefusal::WentBack { known, found }, is_new };
            assert_eq!(copy.apply(lower.clone()), refused(true));
            assert_eq!(copy.apply(lower.clone()), refused(false));
            assert_eq!(copy.view().cloned(), before);
            // Once it was well in between, the next time is news.
            assert_eq!(copy.apply(changes(5, 5, 5)), ApplyOutcome::Updated);
            assert_eq!(copy.apply(lower), refused(true));
        }
    }

    #[test]
    fn another_cluster_is_refused() {
        let mut copy = CatalogCopy::default();
        copy.apply(changes(1, 1, 1));
        let other = CatalogChanges { cluster: ClusterId([2; 16]), ..changes(9, 9, 9) };
        let refused = copy.apply(other);
        assert!(matches!(
            refused,
            ApplyOutcome::Refused { why: CopyRefusal::OtherCluster { .. }, is_new: true }
        ));
        let partial = CatalogChanges { assignment: None, ..changes(2, 2, 2) };
        assert_eq!(copy.apply(partial), ApplyOutcome::Refused { why: CopyRefusal::Incomplete, is_new: true });
        assert_eq!(copy.known().shards, 1);
    }
}
