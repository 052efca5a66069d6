//! Changes the assignment when shards should move.

use std::collections::BTreeMap;

use forebay_cluster::{JOINER_WAITS, Move, Reason, Surroundings, changes, plan};
use forebay_engine::{ShardSight, TaskName};
use forebay_store::{CatalogShard, Sighting};
use forebay_types::{NodeName, ShardId};
use futures_util::future::join_all;

use crate::{
    duties,
    member::{LIVES_AFTER, Member, SETTLED_AFTER},
    planted::{self, Bug},
};

impl Member {
    /// The moves that should begin now, and the version of the assignment that they change.
    fn moves(&mut self, sights: &[ShardSight]) -> Option<(u64, Vec<Move>)> {
        let (now, view) = (self.now(), self.copy.view()?);
        let server_of: BTreeMap<ShardId, &str> =
            sights.iter().map(|sight| (sight.id, sight.server.as_str())).collect();
        let owners = duties::owners(view, &self.own, sights);
        let server = |shard: &CatalogShard| server_of.get(&shard.id).copied().unwrap_or_default().to_owned();
        let surroundings = Surroundings { server: &server, owners: &owners };
        let mut cluster = self.observer.view(view, &surroundings, now);
        if self.setup.node.is_alone() {
            // Nobody joins whom shards should be kept for.
            cluster.now = now.plus(JOINER_WAITS);
        }
        for (name, node) in cluster.nodes.iter_mut().filter(|(_, node)| !node.live) {
            if self.serves(name, &owners, sights) && !planted::on(Bug::CutOffFromCatalogIsDead) {
                (node.live, node.late) = (true, true);
            }
        }
        for name in self.silent.keys() {
            if let Some(node) = cluster.nodes.get_mut(name) {
                node.live = false;
            }
        }
        for sight in sights {
            let Some(shard) = cluster.shards.get_mut(&sight.id) else { continue };
            shard.silent = sight.silent && !sight.owned;
            shard.stuck = sight.stuck && shard.home.as_ref().is_some_and(|home| home.node == self.own);
        }
        self.reach.excuse(&mut cluster);
        for shard in cluster.shards.values_mut() {
            if planted::on(Bug::MovesForgotten) {
                shard.home_since = None;
            }
            if planted::on(Bug::MovesUnderWayIgnored) {
                shard.owner = shard.home.as_ref().map(|home| home.node.clone());
            }
        }
        let mut moves = plan(&cluster);
        moves.retain(|it| it.reason != Reason::Balance || !planted::on(Bug::NeverBalances));
        Some((view.assignment.version, moves))
    }

    /// Whether a node whose counter stands still is cut off from the catalog alone: it answers this node, and
    /// it says in a shard that it lives. Nobody could take its shards.
    fn serves(&self, name: &NodeName, owners: &BTreeMap<ShardId, NodeName>, sights: &[ShardSight]) -> bool {
        let is_renewed = |sight: &ShardSight| {
            sight.answers && !sight.silent && owners.get(&sight.id).is_some_and(|owner| owner == name)
        };
        self.peers.is_answering(name) && sights.iter().any(is_renewed)
    }

    /// Notes the nodes all of whose shards are silent. Such a node gets no shard before its counter has moved
    /// again, twice: one beat may have been on its way. The counter alone would show its death only seconds
    /// later.
    fn note_silent_nodes(&mut self, sights: &[ShardSight]) {
        let Some(view) = self.copy.view() else { return };
        let beats_of = |name: &NodeName| {
            let node = view.nodes.iter().find(|node| node.name == *name)?;
            Some(Sighting { incarnation: node.incarnation, beats: node.beats })
        };
        self.silent.retain(|name, seen| {
            beats_of(name).is_some_and(|now| {
                now.incarnation == seen.incarnation && now.beats < seen.beats + LIVES_AFTER
            })
        });
        let now = self.now();
        // The shards of a process that has just joined were perhaps left by the one before it.
        let has_lived = |name: &NodeName| {
            self.observer.liveness.joined_since(name).is_some_and(|since| now.since(since) >= SETTLED_AFTER)
        };
        let silent = duties::silent_nodes(&self.own, &duties::owners(view, &self.own, sights), sights);
        let forgets = planted::on(Bug::SilentNodesForgotten);
        for name in silent.into_iter().filter(|name| has_lived(name) && !forgets) {
            if let Some(now) = beats_of(&name) {
                self.silent.insert(name, now);
            }
        }
    }

    /// Changes the assignment, if shards should move.
    pub(crate) async fn assign(&mut self, sights: &[ShardSight]) {
        self.note_silent_nodes(sights);
        let Some((version, moves)) = self.moves(sights).filter(|(_, moves)| !moves.is_empty()) else {
            return;
        };
        match self.setup.catalog.assign(version, &changes(&moves)).await {
            Ok(true) => {
                for Move { shard, from, to, reason } in &moves {
                    let name = |name: &Option<NodeName>| {
                        name.as_ref().map_or("nobody".to_owned(), NodeName::to_string)
                    };
                    let (from, to) = (name(from), name(to));
                    tracing::info!(
                        shard.id = shard.0,
                        "shard {shard} is to move from {from} to {to}: {reason}"
                    );
                }
                self.tell_others();
            }
            // Another node was faster.
            Ok(false) => {}
            Err(error) => return self.catalog_fails(&error),
        }
        if let Err(error) = self.read().await {
            self.catalog_fails(&error);
        }
    }

    /// Tells all other nodes to look at the catalog. Nobody waits for one that does not answer.
    fn tell_others(&self) {
        let Some(view) = self.copy.view() else { return };
        let others = view.nodes.iter().filter(|node| node.name != self.own);
        let addresses: Vec<String> = others.map(|node| node.peer_address.clone()).collect();
        let links = self.setup.links.clone();
        let tell = async move {
            join_all(addresses.iter().map(|address| links.catalog_changed(address))).await;
        };
        self.setup.tasks.start(TaskName::Notices, Box::pin(tell));
    }
}
