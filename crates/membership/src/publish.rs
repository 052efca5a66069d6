//! Tells the rest of the node what the cluster looks like.

use std::sync::Arc;

use forebay_cluster::JOINER_WAITS;
use forebay_engine::ShardSight;
use forebay_store::CatalogNode;
use forebay_types::{NodeName, Timestamp};

use crate::{
    duties,
    member::Member,
    shared::{ClusterState, NodeState, ShardHome},
};

impl Member {
    /// Publishes the cluster as this node sees it, if that has changed.
    pub(crate) fn publish(&self, sights: &[ShardSight]) {
        let Some(view) = self.copy.view() else { return };
        let now = self.now();
        let unreached = self.peers.unreached();
        let owners =
            duties::living_owners(view, &self.own, sights, |name| self.observer.liveness.is_live(name));
        let has_just_joined = |name: &NodeName| {
            let since = self.observer.liveness.joined_since(name);
            since.is_none_or(|at| now.since(at) < JOINER_WAITS)
        };
        let node = |node: &CatalogNode| NodeState {
            name: node.name.to_string(),
            peer_address: node.peer_address.clone(),
            clients_address: node.clients_address.clone(),
            http_address: node.http_address.clone(),
            release: node.release.clone(),
            live: self.observer.liveness.is_live(&node.name),
            joining: !node.is_alone() && has_just_joined(&node.name),
            reached: !unreached.contains(&node.name),
            draining: node.draining,
            started_micros: node.started_at.map(Timestamp::as_micros),
            shards: owners.values().filter(|owner| **owner == node.name).count(),
        };
        let shards = view.shards.iter().map(|shard| {
            let home = view.assignment.homes.get(&shard.id);
            ShardHome {
                id: shard.id,
                state: shard.state.to_string(),
                home: home.map(|home| home.node.clone()),
                pinned: home.is_some_and(|home| home.pinned),
                owner: owners.get(&shard.id).cloned(),
            }
        });
        let state = ClusterState {
            own: self.own.to_string(),
            nodes: view.nodes.iter().map(node).collect(),
            shards: shards.collect(),
            catalog_trouble: self.said.catalog.clone(),
        };
        self.setup.state.send_if_modified(|told| {
            **told != state && {
                *told = Arc::new(state);
                true
            }
        });
    }
}
