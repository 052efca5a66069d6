//! A whole catalog, to be kept elsewhere.

use forebay_types::ClusterId;
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
    /// Shards, nodes, assignment, policies and settings, without exception.
    pub changes: CatalogChanges,
    /// The tokens. Of their secrets there are hashes alone.
    pub tokens: Tokens,
}

/// Versions of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ImageVersions {
    /// The cluster.
    pub cluster: ClusterId,
    /// Versions of the rows.
    pub rows: Versions,
    /// The version of the tokens.
    pub tokens: u64,
}

impl ImageVersions {
    /// Whether an image is of the same catalog as an earlier one, and nothing in it is older.
    pub fn follows(&self, earlier: &Self) -> bool {
        let (now, before) = (self.rows, earlier.rows);
        self.cluster == earlier.cluster
            && now.shards >= before.shards
            && now.nodes >= before.nodes
            && now.assignment >= before.assignment
            && now.policies >= before.policies
            && self.tokens >= earlier.tokens
    }
}

impl CatalogImage {
    /// Reads a catalog, if it has changed since these versions. Beats of nodes are no change.
    pub async fn read(
        catalog: &dyn Catalog,
        known: Option<&ImageVersions>,
    ) -> Result<Option<Self>, StoreError> {
        let known = known.copied().unwrap_or_default();
        let changed = catalog.tokens(known.tokens).await?;
        if changed.version == known.tokens {
            let now = catalog.read(known.rows).await?;
            if (now.cluster, now.versions) == (known.cluster, known.rows) {
                return Ok(None);
            }
        }
        let changes = catalog.read(Versions::default()).await?;
        // Tokens and rows are not of one moment, and need not be: none of the one refers to the other.
        let tokens = if changed.rows.is_some() { changed } else { catalog.tokens(0).await? };
        Ok(Some(Self { changes, tokens }))
    }

    /// Its versions.
    pub const fn versions(&self) -> ImageVersions {
        let CatalogChanges { cluster, versions, .. } = &self.changes;
        ImageVersions { cluster: *cluster, rows: *versions, tokens: self.tokens.version }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_follows_unless_something_is_older_or_the_cluster_another() {
        let rows = Versions { shards: 5, nodes: 5, assignment: 5, policies: 5 };
        let kept = ImageVersions { cluster: ClusterId([1; 16]), rows, tokens: 5 };
        let later = Versions { policies: 6, ..rows };
        assert!(kept.follows(&kept) && ImageVersions { rows: later, tokens: 6, ..kept }.follows(&kept));
        let older = [
            Versions { shards: 4, ..rows },
            Versions { nodes: 4, ..rows },
            Versions { assignment: 4, ..rows },
            Versions { policies: 4, ..rows },
        ];
        assert!(older.iter().all(|older| !ImageVersions { rows: *older, ..kept }.follows(&kept)));
        assert!(!ImageVersions { tokens: 4, ..kept }.follows(&kept));
        assert!(!ImageVersions { cluster: ClusterId([2; 16]), ..kept }.follows(&kept));
    }
}
