//! Creates or upgrades the catalog of a cluster, and adds the shards that the configuration lists.

use forebay_store::{Catalog, CatalogError, MigrateError, StoreError, Versions};

use forebay_types::ClusterId;

use super::catalog::{open_catalog, shard_config};
use crate::{
    config::{Config, ShardConfig, ShardUrl},
    shards::{self, UnfitShard},
};

/// Why a catalog could not be brought up to date.
#[derive(Debug, thiserror::Error)]
pub enum CatalogMigrateError {
    /// The catalog failed.
    #[error("the catalog: {0}")]
    Store(#[from] StoreError),
    /// Its schema could not be made.
    #[error("the catalog: {0}")]
    Migrate(#[from] MigrateError),
    /// A listed shard can't be added.
    #[error("shard {0}: {1}")]
    Add(u32, CatalogError),
    /// The shards are not of one cluster.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Unfit(Vec<UnfitShard>),
}

/// Outcome of a migration.
pub struct CatalogMigrated {
    /// The cluster.
    pub cluster: ClusterId,
    /// The versions of the schema that were applied.
    pub applied: Vec<u32>,
    /// The shards that were added.
    pub added: Vec<ShardConfig>,
    /// All shards of the catalog.
    pub shards: Vec<ShardConfig>,
}

/// Brings the catalog at `url` up to date. The cluster of a new catalog is that of the listed shards, or a
/// new one.
pub async fn migrate(config: &Config, url: &ShardUrl) -> Result<CatalogMigrated, CatalogMigrateError> {
    let catalog = open_catalog(url, &shards::mysql_options(config))?;
    let (cluster, applied) = schema(config, &*catalog).await?;
    let known = catalog.read(Versions::default()).await?.shards.unwrap_or_default();
    let mut added = Vec::new();
    for listed in &config.shards {
        let url = match &listed.url {
            ShardUrl::Sqlite(path) => format!("sqlite://{}", path.display()),
            ShardUrl::MySql(url) => url.clone(),
        };
        if known.iter().any(|shard| shard.id == listed.id && shard.url == url) {
            continue;
        }
        match catalog.add_shard(&url, Some(listed.id)).await {
            Ok(_) => added.push(listed.clone()),
            // Another migration was faster.
            Err(CatalogError::UrlTaken(id)) if id == listed.id => {}
            Err(error) => return Err(CatalogMigrateError::Add(listed.id.0, error)),
        }
    }
    let all = catalog.read(Versions::default()).await?.shards.unwrap_or_default();
    Ok(CatalogMigrated { cluster, applied, added, shards: all.iter().map(shard_config).collect() })
}

/// Creates or upgrades the schema. Returns the cluster, and the versions that were applied.
async fn schema(
    config: &Config,
    catalog: &dyn Catalog,
) -> Result<(ClusterId, Vec<u32>), CatalogMigrateError> {
    if let Some(cluster) = catalog.cluster().await? {
        return Ok((cluster, catalog.migrate(cluster).await?));
    }
    let listed = shards::open(config).map_err(CatalogMigrateError::Unfit)?;
    let cluster = shards::cluster_of(&listed).await.map_err(CatalogMigrateError::Unfit)?;
    match catalog.migrate(cluster).await {
        Ok(applied) => Ok((cluster, applied)),
        Err(error) => match catalog.cluster().await? {
            // Another migration, for which this one has waited, has given it an id.
            Some(other) if other != cluster => Ok((other, catalog.migrate(other).await?)),
            _ => Err(error.into()),
        },
    }
}
