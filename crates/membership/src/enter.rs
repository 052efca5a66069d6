//! The entry of a node into its cluster: at its start, or once the catalog answers, if that was away then.

use std::time::Duration;

use crate::{
    join::{JoinError, NAME_FREE_AFTER, check_address, join},
    member::{ANSWER_TIMEOUT, Member, no_answer},
};

/// How long an entry may take during which the node does nothing else: twice it may have to see that another
/// process is dead.
const ENTRY_TIMEOUT: Duration =
    Duration::from_secs(2 * (NAME_FREE_AFTER.as_secs() + ANSWER_TIMEOUT.as_secs()));

impl Member {
    /// Takes the node's name in the catalog, unless another node lives that excludes this one. Waits while
    /// the catalog does not answer.
    pub(crate) async fn enter(&mut self) -> Result<(), JoinError> {
        let (catalog, known) = (self.setup.catalog.clone(), self.copy.known());
        check_address(&*catalog, &self.setup.node, known).await?;
        let nodes = self.copy.view().map(|view| view.nodes.as_slice()).unwrap_or_default();
        let before = nodes.iter().find(|node| node.name == self.own);
        join(&*catalog, &self.setup.node, before).await?;
        // Another node may have joined at the same moment.
        if let Err(error) = check_address(&*catalog, &self.setup.node, known).await {
            self.remove_row().await;
            return Err(error);
        }
        self.has_joined = true;
        tracing::info!("joined the cluster as {}", self.own);
        Ok(())
    }

    /// Joins after a start without the catalog. Returns whether the node has joined. One that is excluded
    /// gives up the shards that it has taken, and tries again: the other node may go.
    pub(crate) async fn enter_late(&mut self) -> bool {
        match tokio::time::timeout(ENTRY_TIMEOUT, self.enter()).await {
            Ok(Ok(())) => {
                self.said.join.clear();
                return true;
            }
            Ok(Err(JoinError::Catalog(error))) => self.catalog_fails(&error),
            Ok(Err(error)) => {
                let error = error.to_string();
                if self.said.join != error {
                    tracing::error!("{error}; this node gives up the shards that it has taken");
                }
                self.said.join.clone_from(&error);
                self.said.catalog = error;
                self.give_all_up();
            }
            Err(_) => self.catalog_fails(&no_answer(ENTRY_TIMEOUT)),
        }
        false
    }
}
