//! Takes the node's name in the catalog.

use std::time::Duration;

use forebay_store::{Catalog, CatalogNode, Joined, StoreError};

use crate::until_answered::until_answered;

/// A process whose counter has stood still for so long has lost its name to whoever wants it.
pub(crate) const NAME_FREE_AFTER: Duration = Duration::from_secs(4);

/// Why a node could not join.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// The catalog failed.
    #[error("cannot join the cluster: {0}")]
    Catalog(#[from] StoreError),
    /// A living process has the name.
    #[error("another process that lives has the name {0} (node.name): give each node a name of its own")]
    NameTaken(String),
}

/// Takes the node's name. Where another process has it, its counter is watched: one that moves keeps the
/// name. Waits while the catalog does not answer: a call whose answer was lost is repeated, and if it took
/// effect, the name is ours already.
pub async fn join(catalog: &dyn Catalog, node: &CatalogNode) -> Result<(), JoinError> {
    let Joined::NameTaken(first) = until_answered(|| catalog.join(node, None)).await? else {
        return Ok(());
    };
    tracing::info!("another process had the name {}; waiting to see that it is dead", node.name);
    tokio::time::sleep(NAME_FREE_AFTER).await;
    match until_answered(|| catalog.join(node, Some(first))).await? {
        Joined::Yes => Ok(()),
        Joined::NameTaken(_) => Err(JoinError::NameTaken(node.name.to_string())),
    }
}
