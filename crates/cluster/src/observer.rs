//! What a node remembers of the catalog's earlier states, and the view that it makes of them.

use std::{collections::BTreeMap, time::Duration};

use forebay_store::{CatalogNode, CatalogShard, CatalogView};
use forebay_types::{Monotonic, NodeName, ShardId};

use crate::{
    grey::GreyNodes,
    homes::HomeAges,
    liveness::Liveness,
    view::{ClusterView, NodeView, ShardView},
};

/// What changes with time, as one node sees it.
#[derive(Debug, Clone)]
pub struct Observer {
    /// Which nodes live.
    pub liveness: Liveness,
    /// Which nodes most of the others do not reach.
    pub grey: GreyNodes,
    /// How long shards have had their homes.
    pub homes: HomeAges,
}

/// What a plan needs and the catalog does not say.
pub struct Surroundings<'a> {
    /// The database server of a shard, as nodes report it.
    pub server: &'a dyn Fn(&CatalogShard) -> String,
    /// Who owns which shard, as far as is known.
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
        };
        ClusterView {
            now,
            nodes: catalog.nodes.iter().map(|it| (it.name.clone(), node(it))).collect(),
            shards: catalog.shards.iter().map(|it| (it.id, shard(it))).collect(),
        }
    }
}
