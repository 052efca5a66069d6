//! A node with a list of its own shards, and with a catalog for policies alone: that of `forebay dev`.

use std::{path::Path, sync::Arc, time::Duration};

use forebay_engine::Engine;
use forebay_store::{Catalog, MigrateError, SqliteCatalog, StoreError, Versions};
use forebay_types::Clock;
use tokio::{
    sync::{Notify, watch},
    task::JoinHandle,
};

use super::{book::PolicyBook, turns::Turns};
use crate::shards::{self, NumberedShard, UnfitShard};

/// The pause before a catalog that failed is read again.
const RETRY_EVERY: Duration = Duration::from_secs(1);

/// Why the catalog can't be used.
#[derive(Debug, thiserror::Error)]
pub enum AloneError {
    /// It failed.
    #[error("the catalog: {0}")]
    Store(#[from] StoreError),
    /// Its schema can't be made.
    #[error("the catalog: {0}")]
    Migrate(#[from] MigrateError),
    /// The shards are not of one cluster.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Unfit(Vec<UnfitShard>),
}

/// Makes the catalog in a file, or brings it up to date. It is of the cluster of these shards.
pub async fn migrate(path: &Path, shards: &[NumberedShard]) -> Result<(), AloneError> {
    let cluster = shards::cluster_of(shards).await.map_err(AloneError::Unfit)?;
    SqliteCatalog::new(path).migrate(cluster).await?;
    Ok(())
}

/// Reads all policies, tells the engine of them, and follows them from then on.
pub async fn begin(
    path: &Path,
    engine: &Engine,
    clock: Arc<dyn Clock>,
) -> Result<(PolicyBook, JoinHandle<()>), AloneError> {
    let catalog: Arc<dyn Catalog> = Arc::new(SqliteCatalog::new(path));
    let mut follower =
        Follower { catalog: catalog.clone(), engine: engine.clone(), known: Versions::default() };
    let (sender, told) = watch::channel(follower.read().await?);
    let look = Arc::new(Notify::new());
    let task = tokio::spawn(follower.follow(look.clone(), sender));
    Ok((PolicyBook { catalog, look, told, others: None, clock, turns: Turns::default() }, task))
}

/// Tells the engine of policies that have changed. This process alone changes them.
struct Follower {
    catalog: Arc<dyn Catalog>,
    engine: Engine,
    known: Versions,
}

impl Follower {
    async fn read(&mut self) -> Result<u64, StoreError> {
        let changes = self.catalog.read(self.known).await?;
        self.known = changes.versions;
        if !changes.policies.is_nothing() {
            self.engine.set_policies(changes.policies);
        }
        Ok(self.known.policies)
    }

    async fn follow(mut self, look: Arc<Notify>, told: watch::Sender<u64>) {
        loop {
            look.notified().await;
            loop {
                match self.read().await {
                    Ok(version) => {
                        told.send_replace(version);
                        break;
                    }
                    Err(error) => tracing::warn!(%error, "the catalog can't be read; trying again"),
                }
                tokio::time::sleep(RETRY_EVERY).await;
            }
        }
    }
}
