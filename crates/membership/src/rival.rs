//! The way in which a process gives way to another one that has its name.

use forebay_engine::Duty;
use forebay_store::{CatalogNode, JoinOutcome, NodeReport, StoreError};

use crate::{
    join::NAME_FREE_AFTER,
    member::{Member, Membership},
};

impl Member {
    /// Somebody took this node for dead, or removed it. If another process has its name by now, that one is
    /// this node, unless its counter stands still.
    pub(crate) async fn join_again(&mut self, report: &NodeReport) -> Result<(), StoreError> {
        let now = self.now();
        let Membership { catalog, node, .. } = &self.setup;
        let node = CatalogNode { report: report.clone(), ..node.clone() };
        let still = self.rival.filter(|(_, since)| now.since(*since) >= NAME_FREE_AFTER);
        match catalog.join(&node, still.map(|(rival, _)| rival)).await? {
            JoinOutcome::Yes => {
                self.rival = None;
                tracing::warn!("joined the cluster again as {}: its row was gone", node.name);
            }
            JoinOutcome::NameTaken(rival) => {
                if self.rival.is_none() {
                    tracing::error!(
                        "another process has the name {}; this one gives its shards up",
                        node.name
                    );
                }
                if self.rival.is_none_or(|(seen, _)| seen != rival) {
                    self.rival = Some((rival, now));
                }
            }
        }
        Ok(())
    }

    /// Another process is this node now.
    pub(crate) fn give_all_up(&self) {
        let Some(view) = self.copy.view() else { return };
        let leave = || Duty::Leave { successor: String::new() };
        self.setup.engine.set_duties(view.shards.iter().map(|shard| (shard.id, leave())).collect());
    }
}
