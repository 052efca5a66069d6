//! A whole catalog, to be kept elsewhere.

use forebay_types::Timestamp;
use serde::{Deserialize, Serialize};

use super::{
    interface::Catalog,
    rows::{CatalogChanges, Versions},
    token_rows::Tokens,
};
use crate::error::StoreError;

/// All that a node has to know of a catalog before it serves, as it was at one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CatalogImage {
    /// When it was read, by the clock of the node that read it.
    pub read_at: Timestamp,
    /// Shards, nodes, assignment, policies and settings, without exception.
    pub changes: CatalogChanges,
    /// The tokens. Of their secrets there are hashes alone.
    pub tokens: Tokens,
}

impl CatalogImage {
    /// Reads a catalog, if it has changed since these versions: those of its rows, and that of its tokens.
    /// Beats of nodes are no change.
    pub async fn read(
        catalog: &dyn Catalog,
        known: (Versions, u64),
        now: Timestamp,
    ) -> Result<Option<Self>, StoreError> {
        let tokens = catalog.tokens(known.1).await?;
        if tokens.version == known.1 && catalog.read(known.0).await?.versions == known.0 {
            return Ok(None);
        }
        let changes = catalog.read(Versions::default()).await?;
        // Tokens and rows are not of one moment, and need not be: none of the one refers to the other.
        let tokens = catalog.tokens(0).await?;
        Ok(Some(Self { read_at: now, changes, tokens }))
    }

    /// The versions of its rows, and that of its tokens.
    pub const fn versions(&self) -> (Versions, u64) {
        (self.changes.versions, self.tokens.version)
    }
}
