//! The history of the catalog that a node keeps, and the view that it makes of it.

use std::{collections::BTreeMap, time::Duration};

use forebay_store::{CatalogNode, CatalogShard, CatalogView};
use forebay_types::{Monotonic, NodeName, ShardId};

use crate::{
    grey::GreyNodes,
    homes::HomeAges,
    liveness::Liveness,
    view::{ClusterView, NodeView, ShardView},
};

/// The part of the cluster that changes with time, as one node sees it.
#[derive(Debug, Clone)]
pub struct Observer {
    /// Which nodes live.
    pub liveness: Liveness,
    /// Which nodes most of the others do not reach.
    pub grey: GreyNodes,
    /// How long shards have had their homes.
    pub homes: HomeAges,
}

/// The facts that a plan needs and the catalog does not have.
pub struct Surroundings<'a> {
    /// The database server of a shard, as nodes report it.
    pub server: &'a dyn Fn(&CatalogShard) -> String,
    /// The owner of each shard, as far as it is known.
    pub owners: &'a BTreeMap<ShardId, NodeName>,
}

impl std::fmt::Debug for Surroundings<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Surroundings").field("owners", &self.owners).finish_non_exhaustive()
    }
}

impl Observer {
    /// Has seen nothing yet. `timeout`: see [`Liveness::new`].
    pub fn new(timeout: Duration) -> Self {
        Self { liveness: Liveness::new(timeout), grey: GreyNodes::default(), homes: HomeAges::default() }
    }

    /// Takes in what was read from the catalog just now.
    pub fn observe(&mut self, catalog: &CatalogView, now: Monotonic) {
        self.liveness.observe(&catalog.nodes, now);
        self.grey.observe(&catalog.nodes, |name| self.liveness.is_live(name), now);
        self.homes.observe(&catalog.assignment, now);
    }

    /// The cluster as of the last look at the catalog.
    pub fn view(
        &self,
        catalog: &CatalogView,
        surroundings: &Surroundings<'_>,
        now: Monotonic,
    ) -> ClusterView {
        let node = |node: &CatalogNode| NodeView {
            live: self.liveness.is_live(&node.name),
            late: self.liveness.is_late(&node.name),
            draining: node.draining,
            joined_since: self.liveness.joined_since(&node.name).unwrap_or(now),
            servers: node.report.servers.iter().cloned().collect(),
            grey_since: self.grey.since(&node.name),
        };
        let shard = |shard: &CatalogShard| ShardView {
            server: (surroundings.server)(shard),
            state: shard.state,
            home: catalog.assignment.homes.get(&shard.id).cloned(),
            home_since: self.homes.since(shard.id),
            owner: surroundings.owners.get(&shard.id).cloned(),
            silent: false,
            stuck: false,
            steady: true,
        };
        ClusterView {
            now,
            nodes: catalog.nodes.iter().map(|it| (it.name.clone(), node(it))).collect(),
            shards: catalog.shards.iter().map(|it| (it.id, shard(it))).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use forebay_store::{Assignment, CatalogShardState, Home, NodeReport, Versions};
    use forebay_types::ClusterId;

    use super::*;
    use crate::testing;

    #[test]
    fn a_view_joins_the_catalog_with_what_was_seen_of_it() {
        let at = |seconds| Monotonic::from_start(Duration::from_secs(seconds));
        let name = |name: &str| name.parse::<NodeName>().unwrap();
        let node = |node: &str, beats| CatalogNode {
            draining: node == "b",
            started_at: None,
            report: NodeReport { servers: vec!["db1".to_owned()], unreachable: vec![] },
            ..testing::node(node, 1, beats)
        };
        let catalog = |beats| CatalogView {
            cluster: ClusterId::default(),
            versions: Versions::default(),
            nodes: vec![node("a", beats), node("b", 1)],
            shards: vec![CatalogShard {
                id: ShardId(1),
                url: "mysql://db1/s".to_owned(),
                state: CatalogShardState::Active,
            }],
            assignment: Assignment {
                version: 1,
                homes: [(ShardId(1), Home { node: name("a"), pinned: true })].into(),
            },
        };
        let mut observer = Observer::new(Duration::from_secs(3));
        (0..6).for_each(|second| observer.observe(&catalog(second), at(second)));
        let owners = BTreeMap::from([(ShardId(1), name("b"))]);
        let surroundings = Surroundings { server: &|_| "db1".to_owned(), owners: &owners };
        let view = observer.view(&catalog(5), &surroundings, at(6));
        let (a, b) = (&view.nodes[&name("a")], &view.nodes[&name("b")]);
        assert_eq!((a.live, a.draining, b.live, b.draining), (true, false, false, true));
        assert!(a.servers.contains("db1") && a.joined_since == at(0) && a.grey_since.is_none());
        let shard = &view.shards[&ShardId(1)];
        assert_eq!((shard.server.as_str(), shard.home_since), ("db1", Some(at(0))));
        assert_eq!((shard.home.as_ref().unwrap().pinned, &shard.owner), (true, &Some(name("b"))));
    }
}
