//! What a node does for shards without a living owner while the catalog does not answer.

use std::collections::BTreeMap;

use forebay_engine::{Duty, ShardSight};
use forebay_store::CatalogNode;
use forebay_types::NodeName;

use super::{
    duties,
    membership::{Member, TURN_STEP},
};

impl Member {
    /// While the catalog does not answer, the living nodes take shards without a living owner in turn.
    pub(super) fn take_unowned(&mut self, sights: &[ShardSight]) {
        let Some(view) = self.copy.view() else { return };
        let now = self.now();
        let owners = duties::owners(view, &self.own, sights);
        let silent = duties::silent_nodes(&self.own, &owners, sights);
        let lives = |node: &&CatalogNode| {
            node.name == self.own
                || self.observer.liveness.is_live(&node.name) && !silent.contains(&node.name)
        };
        let living: Vec<NodeName> = view.nodes.iter().filter(lives).map(|node| node.name.clone()).collect();
        let mut taken = BTreeMap::new();
        for sight in sights {
            let unowned = !sight.owned && sight.answers && (sight.silent || sight.owner.is_empty());
            if !unowned || sight.wanted || duties::is_offline(view, sight.id) {
                self.unowned_since.remove(&sight.id);
                continue;
            }
            self.hurries = true;
            let since = *self.unowned_since.entry(sight.id).or_insert(now);
            let Some(turn) = duties::turn(sight.id, &self.own, &living) else { continue };
            if now.since(since) >= TURN_STEP * u32::try_from(turn).unwrap_or(u32::MAX) {
                tracing::warn!(
                    shard.id = sight.id.0,
                    "shard {} has no living owner, and the catalog does not answer: this node takes it",
                    sight.id
                );
                taken.insert(sight.id, Duty::Own);
            }
        }
        self.setup.engine.set_duties(taken);
    }
}
