//! How a node leaves its cluster: others get its shards, unless all nodes leave.

use forebay_store::CatalogNode;

use crate::{
    cluster_task::{LEAVE_TIMEOUT, LeaveMode},
    member::{ANSWER_TIMEOUT, HURRIED_TURN_EVERY, Member, Membership},
};

impl Member {
    /// Leaves the cluster. `None`: nobody has said how, as the process ends.
    pub(crate) async fn leave(&mut self, how: Option<LeaveMode>) {
        match how.unwrap_or(LeaveMode::HandingOver(LEAVE_TIMEOUT)) {
            LeaveMode::HandingOver(limit) => {
                let hand_over = async {
                    if self.remove_row().await {
                        self.give_all().await;
                        tracing::info!("left the cluster");
                    }
                };
                if tokio::time::timeout(limit, hand_over).await.is_err() {
                    tracing::warn!("not every shard has been handed over in {limit:?}; the rest is released");
                }
            }
            LeaveMode::WithAll => {
                if tokio::time::timeout(ANSWER_TIMEOUT, self.remove_row()).await.is_ok_and(|left| left) {
                    tracing::info!("left the cluster with all other nodes");
                }
            }
        }
    }

    /// Returns whether the catalog has this node no more.
    pub(crate) async fn remove_row(&self) -> bool {
        let Membership { catalog, node, .. } = &self.setup;
        let left = catalog.leave(&node.name, node.incarnation).await;
        if let Err(error) = &left {
            tracing::warn!(%error, "cannot leave the cluster; others will see that this node is gone");
        }
        left.is_ok()
    }

    /// Gives the shards away, and waits until others have them.
    async fn give_all(&mut self) {
        loop {
            let Some(sights) = self.sights().await else { return };
            if sights.iter().all(|sight| !sight.owned) {
                break;
            }
            if self.read().await.is_err() {
                return;
            }
            let live = |node: &CatalogNode| self.observer.liveness.is_live(&node.name);
            if !self.copy.view().is_some_and(|view| view.nodes.iter().any(live)) {
                break;
            }
            self.assign(&sights).await;
            self.take_up_duties(&sights).await;
            tokio::time::sleep(HURRIED_TURN_EVERY / 2).await;
        }
    }
}
