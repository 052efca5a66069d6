//! Creates or upgrades the catalog of a cluster, and adds the shards that the configuration lists.

use forebay_config::{Config, ShardConfig, ShardUrl};
use forebay_store::{
    Catalog, CatalogChanges, CatalogError, CatalogShard, MigrateError, StoreError, Versions,
};
use forebay_types::{ClusterId, ShardId};
use futures_util::future::join_all;

use super::catalog::{open_catalog, shard_config};
use crate::shards::{self, Opener, UnfitShard};

/// Why a catalog could not be brought up to date.
#[derive(Debug, thiserror::Error)]
pub enum CatalogMigrateError {
    /// The catalog failed.
    #[error("the catalog: {0}")]
    Store(#[from] StoreError),
    /// Its schema could not be made.
    #[error("the catalog: {0}")]
    Migrate(#[from] MigrateError),
    /// A listed shard can't be added, or is elsewhere.
    #[error("shard {0}: {1}")]
    Shard(ShardId, CatalogError),
    /// The shards are not of one cluster.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Unfit(Vec<UnfitShard>),
}

/// Outcome of a migration.
pub struct CatalogMigration {
    /// The cluster.
    pub cluster: ClusterId,
    /// The versions of the schema that were applied.
    pub applied: Vec<u32>,
    /// The shards that were added.
    pub added: Vec<ShardId>,
    /// The shards whose address was changed to the one that is listed.
    pub moved: Vec<ShardId>,
    /// All shards of the catalog.
    pub shards: Vec<ShardConfig>,
}

/// Brings the catalog up to date. The cluster of a new catalog is that of the listed shards, or a new one.
/// The only node of a cluster finds a shard where its configuration lists it; of several nodes, one with an
/// old list must not change what the others use.
pub async fn migrate(config: &Config) -> Result<CatalogMigration, CatalogMigrateError> {
    let catalog = open_catalog(&config.catalog, &shards::mysql_options(config))?;
    let (cluster, applied) = schema(config, &*catalog).await?;
    let CatalogChanges { shards: known, versions, .. } = catalog.read(Versions::default()).await?;
    let known = known.unwrap_or_default();
    check_places(config, &known, cluster).await?;
    let (mut added, mut moved) = (Vec::new(), Vec::new());
    for listed in &config.shards {
        let (id, url) = (listed.id, url_of(listed));
        let failed = |error| CatalogMigrateError::Shard(id, error);
        match known.iter().find(|shard| shard.id == id) {
            Some(shard) if shard.url == url => {}
            Some(_) if config.is_alone() => {
                // A change before this one has moved the version.
                let version = catalog.read(versions).await?.versions.shards;
                catalog.set_shard_url(id, &url, version).await.map_err(failed)?;
                moved.push(id);
            }
            _ => match catalog.add_shard(&url, Some(id)).await {
                Ok(_) => added.push(id),
                // Another migration was faster.
                Err(CatalogError::UrlTaken(other)) if other == id => {}
                Err(error) => return Err(failed(error)),
            },
        }
    }
    let all = catalog.read(Versions::default()).await?.shards.unwrap_or_default();
    let shards = all.iter().map(shard_config).collect();
    Ok(CatalogMigration { cluster, applied, added, moved, shards })
}

/// Checks the schemas of shards that are listed at other addresses than those of the catalog.
async fn check_places(
    config: &Config,
    known: &[CatalogShard],
    cluster: ClusterId,
) -> Result<(), CatalogMigrateError> {
    let opener = Opener::new(config);
    let check = async |listed: &ShardConfig| {
        let row = known.iter().find(|row| row.id == listed.id);
        match row.is_some_and(|row| row.url == url_of(listed)) {
            true => Ok(()),
            false => {
                let (id, shard) = opener.open(listed)?;
                shards::check_place(id, &*shard, cluster, row.is_some()).await
            }
        }
    };
    let checked = join_all(config.shards.iter().map(check)).await;
    let unfit: Vec<UnfitShard> = checked.into_iter().filter_map(Result::err).collect();
    if unfit.is_empty() { Ok(()) } else { Err(CatalogMigrateError::Unfit(unfit)) }
}

/// A shard that is not where the configuration of the only node lists it.
#[derive(Debug, thiserror::Error)]
#[error(
    "shard {shard} is listed at {listed}, and the catalog has it {}: run `forebay migrate`",
    found(known)
)]
pub struct ShardMismatch {
    /// The shard.
    pub(super) shard: ShardId,
    /// Where it is listed.
    listed: String,
    /// Where the catalog has it, if it does.
    known: Option<String>,
}

fn found(known: &Option<String>) -> String {
    known.as_ref().map_or_else(|| "nowhere".to_owned(), |url| format!("at {url}"))
}

/// Finds shards that are not where the only node of a cluster has them listed: nobody would notice that a new
/// list is of no effect. Nodes of several need not list shards.
pub fn misplaced(config: &Config, known: &[CatalogShard]) -> Vec<ShardMismatch> {
    let listed = config.shards.iter().filter(|_| config.is_alone());
    let is_elsewhere = |listed: &ShardConfig| {
        let known = known.iter().find(|row| row.id == listed.id).map(|row| row.url.clone());
        let url = url_of(listed);
        (known.as_ref() != Some(&url)).then_some(ShardMismatch { shard: listed.id, listed: url, known })
    };
    listed.filter_map(is_elsewhere).collect()
}

/// Makes a catalog that is a file, if it is missing, for the only node of a cluster.
pub async fn make_missing(config: &Config) -> Result<(), CatalogMigrateError> {
    match &config.catalog {
        ShardUrl::Sqlite(path) if config.is_alone() && !path.exists() => migrate(config).await.map(drop),
        ShardUrl::Sqlite(_) | ShardUrl::MySql(_) => Ok(()),
    }
}

/// The address of a listed shard, as the catalog keeps it.
fn url_of(listed: &ShardConfig) -> String {
    match &listed.url {
        ShardUrl::Sqlite(path) => format!("sqlite://{}", path.display()),
        ShardUrl::MySql(url) => url.clone(),
    }
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
