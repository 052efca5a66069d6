//! Take-overs of shards without a living owner while the catalog does not answer.

use std::{collections::BTreeMap, time::Duration};

use forebay_engine::{Duty, ShardSight};
use forebay_store::CatalogNode;
use forebay_types::NodeName;

use crate::{
    duties,
    member::{Member, TURN_STEP},
    planted::{self, Bug},
};

impl Member {
    /// While the catalog does not answer, the living nodes take shards without a living owner in turn.
    /// Returns how long it is until this node's next turn, if there is one to come.
    pub(crate) fn take_unowned(&mut self, sights: &[ShardSight]) -> Option<Duration> {
        // While another process is this node, or excludes it, that one has its turn.
        let view = self.copy.view().filter(|_| self.rival.is_none() && self.said.join.is_empty())?;
        let now = self.now();
        let owners = duties::owners(view, &self.own, sights);
        let silent = duties::silent_nodes(&self.own, &owners, sights);
        let lives = |node: &&CatalogNode| {
            node.name == self.own
                || self.observer.liveness.is_live(&node.name) && !silent.contains(&node.name)
        };
        let mut living: Vec<NodeName> =
            view.nodes.iter().filter(lives).map(|node| node.name.clone()).collect();
        // One that was started without the catalog has not joined yet.
        if !living.contains(&self.own) {
            living.push(self.own.clone());
        }
        let mut taken = BTreeMap::new();
        let mut next: Option<Duration> = None;
        for sight in sights {
            let unowned = !sight.owned && sight.answers && (sight.silent || sight.owner.is_empty());
            if !unowned || sight.wanted || duties::is_offline(view, sight.id) {
                self.unowned_since.remove(&sight.id);
                continue;
            }
            self.hurries = true;
            let since = *self.unowned_since.entry(sight.id).or_insert(now);
            let Some(turn) = duties::turn(sight.id, &self.own, &living) else { continue };
            let turn = if planted::on(Bug::TakesOutOfTurn) { 0 } else { turn };
            let wait = TURN_STEP * u32::try_from(turn).unwrap_or(u32::MAX);
            let left = wait.saturating_sub(now.since(since));
            if left.is_zero() {
                tracing::warn!(
                    shard.id = sight.id.0,
                    "shard {} has no living owner, and the catalog does not answer: this node takes it",
                    sight.id
                );
                taken.insert(sight.id, Duty::Own);
            } else {
                next = Some(next.map_or(left, |next| next.min(left)));
            }
        }
        if !planted::on(Bug::TakesNothingUnowned) {
            self.setup.engine.set_duties(taken);
        }
        next
    }
}
