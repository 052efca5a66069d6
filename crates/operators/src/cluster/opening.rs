//! Opens the shards that the catalog lists, and tells the rest of the node which there are.

use std::sync::Arc;

use forebay_config::ShardConfig;
use forebay_membership::OpenShards;
use forebay_store::{CatalogShard, Shard};
use tokio::sync::watch;

use super::catalog::shard_config;
use crate::shards::{Checks, Opener};

/// The way to the shards of the catalog.
pub struct CatalogShards {
    /// Opens shards.
    opener: Opener,
    /// Looks at each of them before it is used.
    checks: Checks,
    /// Receives the shards whenever they change.
    listed: watch::Sender<Vec<ShardConfig>>,
}

impl CatalogShards {
    /// Opens shards with this, and checks each of them.
    pub fn new(opener: Opener, checks: Checks) -> Self {
        Self { opener, checks, listed: watch::Sender::default() }
    }

    /// Receives the shards whenever they change.
    pub fn listed(&self) -> watch::Receiver<Vec<ShardConfig>> {
        self.listed.subscribe()
    }
}

impl OpenShards for CatalogShards {
    fn open(&self, row: &CatalogShard) -> Result<Arc<dyn Shard>, String> {
        let opened = self.opener.open(&shard_config(row)).map_err(|error| error.to_string())?;
        Ok(self.checks.on(opened).1)
    }

    fn changed(&self, rows: &[CatalogShard]) {
        self.listed.send_replace(rows.iter().map(shard_config).collect());
    }
}
