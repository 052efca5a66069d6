//! A shard in one file.

use std::{path::PathBuf, sync::Arc};

use async_trait::async_trait;
use forebay_types::{ClusterId, ShardId};
use sqlx::Connection as _;

use super::{
    heartbeat::SqliteHeartbeat, lock::OwnerLock, migrate, open, reader::SqliteReadPool,
    session::SqliteSession, writer::SqliteWriter,
};
use crate::{
    error::{MigrateError, StoreError},
    read_ahead::ReadAhead,
    rows::{Observation, Remains, Settings, ShardIdentity},
    shard::{Claim, ProbeOutcome, Shard, ShardConnections},
    sql::{
        Dialect, Session as _, Statement, commit, fence, identity,
        read::{SqlReader, read_ahead, remains::remains},
        scalar, version,
    },
};

/// The most bytes that one batch may carry. Only memory bounds it.
const BATCH_BYTES: usize = 16 << 20;

/// A shard in a SQLite file. Its owner holds the lock of a file beside it. While it does, nobody else can
/// take the shard over.
#[derive(Debug, Clone)]
pub struct SqliteShard {
    /// The shard's number.
    id: ShardId,
    /// The database file.
    path: PathBuf,
}

impl SqliteShard {
    /// A shard in the file at `path`. [`Shard::migrate`] creates the file.
    pub fn new(id: ShardId, path: impl Into<PathBuf>) -> Self {
        Self { id, path: path.into() }
    }
}

impl SqliteShard {
    /// Counts the contents that are left in it, whoever owns it.
    pub async fn remains(&self) -> Result<Remains, StoreError> {
        let mut session = SqliteSession(open::open(&self.path).await?);
        let remains = remains(&mut session, Dialect::Sqlite).await;
        drop(session.0.close().await);
        remains
    }
}

#[async_trait]
impl Shard for SqliteShard {
    /// The folder: its files share a disk.
    fn server(&self) -> String {
        self.path.parent().unwrap_or(&self.path).display().to_string()
    }

    async fn identity(&self) -> Result<Option<ShardIdentity>, StoreError> {
        if !self.path.exists() {
            return Ok(None);
        }
        let mut session = SqliteSession(open::open(&self.path).await?);
        let identity = identity::read(&mut session).await;
        drop(session.0.close().await);
        identity
    }

    async fn migrate(&self, cluster: ClusterId) -> Result<Vec<u32>, MigrateError> {
        let ours = ShardIdentity { shard: self.id, cluster };
        let applied = migrate::migrate(&self.path, &migrate::SHARD, &ours).await?;
        tracing::info!(
            shard.id = self.id.0,
            ?applied,
            "shard {} ({}) migrated",
            self.id,
            self.path.display()
        );
        Ok(applied)
    }

    async fn check(&self) -> Result<Settings, StoreError> {
        let mut session = SqliteSession(open::open(&self.path).await?);
        version::check(&mut session, &migrate::SHARD).await?;
        let cluster = identity::check(&mut session, self.id).await?;
        let version = session.fetch(Statement::new("SELECT sqlite_version()", vec![])).await?;
        let server = format!("SQLite {}", scalar(version, "the version")?.str(0)?);
        drop(session.0.close().await);
        // A SQLite commit is durable if its connection is set up for it, and ours are.
        Ok(Settings { server, batch_bytes: BATCH_BYTES, cluster, ..Settings::default() })
    }

    async fn observe(&self) -> Result<Observation, StoreError> {
        let mut session = SqliteSession(open::open(&self.path).await?);
        let mut observation = fence::decode_observation(session.fetch(fence::observe()).await?)?;
        drop(session.0.close().await);
        observation.orphaned = OwnerLock::is_free(&self.path)?;
        Ok(observation)
    }

    async fn probe(&self) -> Result<ProbeOutcome, StoreError> {
        Ok(ProbeOutcome::Embedded)
    }

    async fn read_ahead(&self) -> Result<ReadAhead, StoreError> {
        read_ahead(&SqliteReadPool::new(&self.path)).await
    }

    async fn take_over(
        &self,
        claim: &Claim,
        seen: &Observation,
    ) -> Result<Option<ShardConnections>, StoreError> {
        // No connection of another process can be killed here, so a living owner keeps the shard.
        let Some(lock) = OwnerLock::acquire(&self.path).await? else { return Ok(None) };
        let lock = Arc::new(lock);
        let mut session = SqliteSession(open::open(&self.path).await?);
        let taken = commit::take_over(&mut session, claim, seen, |_| None).await?;
        let Some(commit::MovedFence { fence, behind }) = taken else { return Ok(None) };
        let owner = fence::Owner { epoch: fence.epoch, incarnation: fence.incarnation };
        let path = self.path.clone();
        let writer = SqliteWriter { path: path.clone(), owner, session: Some(session), _lock: lock.clone() };
        let heartbeat = SqliteHeartbeat { path, owner, session: None, _lock: lock };
        let reader = Arc::new(SqlReader::new(self.id, SqliteReadPool::new(&self.path)));
        let (writer, heartbeat) = (Box::new(writer), Box::new(heartbeat));
        Ok(Some(ShardConnections { fence, behind, writer, heartbeat, reader }))
    }
}
