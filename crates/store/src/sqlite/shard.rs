//! One file, as anybody may reach it.

use std::{path::PathBuf, sync::Arc};

use async_trait::async_trait;
use forebay_types::ShardId;
use sqlx::Connection as _;

use super::{
    BATCH_BYTES, heartbeat::SqliteHeartbeat, lock::OwnerLock, migrate, open, reader::SqliteReadPool,
    session::SqliteSession, writer::SqliteWriter,
};
use crate::{
    Claim, MigrateError, Observation, Settings, Shard, ShardConnections, StoreError,
    sql::{Session as _, Statement, commit, fence, read::SqlReader, scalar, version},
};

/// A shard in a SQLite file. A lock file beside it tells whether an owner lives: as long as one does,
/// nobody else can take the shard over.
#[derive(Debug, Clone)]
pub struct SqliteShard {
    id: ShardId,
    path: PathBuf,
}

impl SqliteShard {
    /// A shard in the file at `path`, which need not be there before [`Shard::migrate`].
    pub fn new(id: ShardId, path: impl Into<PathBuf>) -> Self {
        Self { id, path: path.into() }
    }
}

#[async_trait]
impl Shard for SqliteShard {
    /// Files of one folder are on one disk.
    fn server(&self) -> String {
        self.path.parent().unwrap_or(&self.path).display().to_string()
    }

    async fn migrate(&self) -> Result<Vec<u32>, MigrateError> {
        let applied = migrate::migrate(&self.path).await?;
        tracing::info!(shard.id = self.id.0, ?applied, "schema is up to date");
        Ok(applied)
    }

    async fn check(&self) -> Result<Settings, StoreError> {
        let mut session = SqliteSession(open::open(&self.path).await?);
        version::check(&mut session, migrate::VERSION).await?;
        let version = session.fetch(Statement::new("SELECT sqlite_version()", vec![])).await?;
        let server = format!("SQLite {}", scalar(version, "the version")?.text(0)?);
        drop(session.0.close().await);
        // Durability is not the file's affair but every connection's, and ours are all opened with it.
        Ok(Settings { server, batch_bytes: BATCH_BYTES, ..Settings::default() })
    }

    async fn observe(&self) -> Result<Observation, StoreError> {
        let mut session = SqliteSession(open::open(&self.path).await?);
        let mut observation = fence::decode_observation(session.fetch(fence::observe()).await?)?;
        drop(session.0.close().await);
        observation.orphaned = OwnerLock::is_free(&self.path)?;
        Ok(observation)
    }

    async fn take_over(
        &self,
        claim: &Claim,
        seen: &Observation,
    ) -> Result<Option<ShardConnections>, StoreError> {
        // Nobody can kill another process's connection here: who holds the lock can't be pushed aside.
        let Some(lock) = OwnerLock::acquire(&self.path).await? else { return Ok(None) };
        let lock = Arc::new(lock);
        let mut session = SqliteSession(open::open(&self.path).await?);
        let taken = commit::take_over(&mut session, claim, seen, |_| None).await?;
        let Some(fence) = taken else { return Ok(None) };
        let owner = fence::Owner { epoch: fence.epoch, incarnation: fence.incarnation };
        let path = self.path.clone();
        let writer = SqliteWriter { path: path.clone(), owner, session: Some(session), _lock: lock.clone() };
        let heartbeat = SqliteHeartbeat { path, owner, session: None, _lock: lock };
        let reader = Arc::new(SqlReader(SqliteReadPool::new(&self.path)));
        Ok(Some(ShardConnections { fence, writer: Box::new(writer), heartbeat: Box::new(heartbeat), reader }))
    }
}
