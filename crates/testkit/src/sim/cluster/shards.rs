//! The shards that a catalog lists, as one process reaches them.

use std::sync::Arc;

use forebay_membership::OpenShards;
use forebay_store::{CatalogShard, Shard};

use crate::fake::{Db, FakeShard, Process};

/// Opens fake shards by their URLs.
pub struct SimShards {
    /// The process.
    pub process: Process,
    /// The shards' databases.
    pub dbs: Vec<Db>,
}

/// Where a shard is, as the catalog lists it.
pub fn url(db: &Db) -> String {
    format!("mysql://forebay@{}/shard{}", db.lock().server, db.id)
}

impl OpenShards for SimShards {
    fn open(&self, row: &CatalogShard) -> Result<Arc<dyn Shard>, String> {
        let db = self.dbs.iter().find(|db| url(db) == row.url).ok_or("nothing is there")?;
        Ok(Arc::new(FakeShard::new(db.clone(), self.process.clone()).configured_as(row.id)))
    }

    fn changed(&self, _rows: &[CatalogShard]) {}
}
