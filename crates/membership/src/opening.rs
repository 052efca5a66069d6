//! How a node reaches the shards that the catalog lists.

use std::sync::Arc;

use forebay_store::{CatalogShard, Shard};

/// Opens the shards of the catalog.
pub trait OpenShards: Send + Sync + 'static {
    /// The way to a shard. Connects to nothing yet. Fails with the reason why there is none.
    fn open(&self, row: &CatalogShard) -> Result<Arc<dyn Shard>, String>;
    /// These are the catalog's shards now.
    fn changed(&self, rows: &[CatalogShard]);
}
