//! What a node of a cluster knows before it starts: the catalog as it is now.

use std::sync::Arc;

use forebay_cluster::CatalogCopy;
use forebay_store::{Catalog, StoreError};
use forebay_types::ClusterId;

use super::{followed::shard_config, membership::open_catalog, until_answered::until_answered};
use crate::{
    config::{Config, ShardConfig},
    shards::mysql_options,
};

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
pub(crate) struct Begun {
    /// The catalog.
    pub catalog: Arc<dyn Catalog>,
    /// The cluster.
    pub cluster: ClusterId,
    /// The copy that the node begins with.
    pub copy: CatalogCopy,
    /// The shards.
    pub shards: Vec<ShardConfig>,
}

/// Reads the catalog, if one is configured. Waits until it answers.
pub(crate) async fn begin(config: &Config) -> Result<Option<Begun>, BeginError> {
    let Some(url) = &config.catalog else { return Ok(None) };
    let catalog = open_catalog(url, &mysql_options(config)).map_err(BeginError::Catalog)?;
    let mut copy = CatalogCopy::default();
    let changes = until_answered(async || {
        catalog.check().await?;
        catalog.read(copy.known()).await
    });
    let changes = changes.await.map_err(BeginError::Catalog)?;
    copy.apply(changes);
    let view = copy.view();
    let cluster = view.map(|view| view.cluster).unwrap_or_default();
    let listed = view.map(|view| view.shards.as_slice()).unwrap_or_default();
    let shards: Vec<ShardConfig> = listed.iter().map(shard_config).collect();
    if shards.is_empty() {
        return Err(BeginError::NoShards);
    }
    Ok(Some(Begun { catalog, cluster, copy, shards }))
}
