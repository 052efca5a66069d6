//! The catalog at a URL, and where its shards are.

use std::sync::Arc;

use forebay_config::{ShardConfig, ShardUrl};
use forebay_store::{Catalog, CatalogShard, MySqlCatalog, MySqlOptions, SqliteCatalog, StoreError};

/// The catalog at a URL.
pub fn open_catalog(url: &ShardUrl, options: &MySqlOptions) -> Result<Arc<dyn Catalog>, StoreError> {
    Ok(match url {
        ShardUrl::Sqlite(path) => SqliteCatalog::new(path).shared(),
        ShardUrl::MySql(url) => MySqlCatalog::new(url, options)?.shared(),
    })
}

/// A shard of the catalog, which has checked its URL.
pub fn shard_config(shard: &CatalogShard) -> ShardConfig {
    let url = match shard.url.strip_prefix("sqlite://") {
        Some(path) => ShardUrl::Sqlite(path.into()),
        None => ShardUrl::MySql(shard.url.clone()),
    };
    ShardConfig { id: shard.id, url }
}
