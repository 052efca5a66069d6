//! The servers of a process, so that the shards of one server find what they have in common.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use forebay_types::ShardId;

use super::{shard::MySqlShard, shared_server::SharedServer};
use crate::{
    error::StoreError,
    mysql_address::{MySqlOptions, options},
};

/// The servers that a process knows. Shards that it opens share connections for what is not theirs alone.
#[derive(Clone, Default)]
pub struct MySqlServers {
    /// By address, account and everything else that a connection depends on, but the schema.
    known: Arc<Mutex<HashMap<String, Arc<SharedServer>>>>,
}

impl fmt::Debug for MySqlServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the keys: they contain passwords.
        f.debug_struct("MySqlServers").finish_non_exhaustive()
    }
}

impl MySqlServers {
    /// A shard in the schema that `url` names, as in `mysql://forebay@db1:3306/forebay_0001`. The error
    /// explains what is wrong with the URL and never repeats a password.
    pub fn shard(&self, id: ShardId, url: &str, options: &MySqlOptions) -> Result<MySqlShard, StoreError> {
        let target = options::parse(url, "shard", options)?;
        let server = target.without_schema();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let shared = known.entry(server.key()).or_insert_with(|| Arc::new(SharedServer::new(server)));
        shared.shards().insert(id);
        Ok(MySqlShard::on(shared.clone(), id, target))
    }
}

impl MySqlShard {
    /// A shard that shares nothing with others, see [`MySqlServers::shard`].
    pub fn new(id: ShardId, url: &str, options: &MySqlOptions) -> Result<Self, StoreError> {
        MySqlServers::default().shard(id, url, options)
    }
}
