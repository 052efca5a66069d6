//! The start of a node of a cluster: it reads the catalog as it is now.

use std::sync::Arc;

use forebay_cluster::CatalogCopy;
use forebay_store::{Catalog, CatalogShard, StoreError};
use forebay_types::ClusterId;

use crate::until_answered::until_answered;

/// Why a node can't take part in its cluster.
#[derive(Debug, thiserror::Error)]
pub enum BeginError {
    /// The catalog's schema is missing or of another version, or its URL is malformed.
    #[error("the catalog: {0}")]
    Catalog(StoreError),
    /// It has no shards.
    #[error("the catalog has no shards: list them as [[shard]] and run `forebay migrate`")]
    NoShards,
}

/// The catalog as it is now.
pub struct Begun {
    /// The catalog.
    pub catalog: Arc<dyn Catalog>,
    /// The cluster.
    pub cluster: ClusterId,
    /// The copy that the node begins with.
    pub copy: CatalogCopy,
}

impl Begun {
    /// The shards. There is one at least.
    pub fn shards(&self) -> &[CatalogShard] {
        self.copy.view().map(|view| view.shards.as_slice()).unwrap_or_default()
    }
}

/// Reads the catalog. Waits until it answers.
pub async fn begin(catalog: Arc<dyn Catalog>) -> Result<Begun, BeginError> {
    let mut copy = CatalogCopy::default();
    until_answered(|| catalog.check()).await.map_err(BeginError::Catalog)?;
    let known = copy.known();
    let changes = until_answered(|| catalog.read(known)).await.map_err(BeginError::Catalog)?;
    copy.apply(changes);
    let cluster = copy.view().map(|view| view.cluster).unwrap_or_default();
    let begun = Begun { catalog, cluster, copy };
    if begun.shards().is_empty() {
        return Err(BeginError::NoShards);
    }
    Ok(begun)
}
