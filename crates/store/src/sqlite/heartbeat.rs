//! Renews the claim, and creates and drops generations of the dedupe table.

use std::{path::PathBuf, sync::Arc};

use async_trait::async_trait;

use super::{lock::OwnerLock, open, session::SqliteSession};
use crate::{
    error::StoreError,
    shard::{Heartbeat, Renewal},
    sql::{Session as _, Statement, fence},
};

/// The connection that renews a claim.
pub(super) struct SqliteHeartbeat {
    /// The database file.
    pub(super) path: PathBuf,
    /// The owner whose claim it renews.
    pub(super) owner: fence::Owner,
    /// The connection. Absent before its first use and after a failure.
    pub(super) session: Option<SqliteSession>,
    /// Held as long as the owner lives.
    pub(super) _lock: Arc<OwnerLock>,
}

impl SqliteHeartbeat {
    async fn execute(&mut self, statement: Statement) -> Result<u64, StoreError> {
        let mut session = match self.session.take() {
            Some(session) => session,
            None => SqliteSession(open::open_for_renewals(&self.path).await?),
        };
        let done = session.execute(statement).await?;
        self.session = Some(session);
        Ok(done)
    }
}

#[async_trait]
impl Heartbeat for SqliteHeartbeat {
    async fn renew(&mut self) -> Result<Renewal, StoreError> {
        Ok(match self.execute(fence::renew(self.owner)).await? {
            1 => Renewal::Renewed { server_time: None },
            _ => Renewal::Lost,
        })
    }

    async fn create_generation(&mut self, number: u64) -> Result<(), StoreError> {
        let sql = format!(
            "CREATE TABLE IF NOT EXISTS dedupe_{number} (hash BLOB NOT NULL PRIMARY KEY, \
             at INTEGER NOT NULL, answer BLOB NOT NULL) WITHOUT ROWID"
        );
        self.execute(Statement::new(sql, vec![])).await.map(drop)
    }

    async fn drop_generation(&mut self, number: u64) -> Result<(), StoreError> {
        self.execute(Statement::new(format!("DROP TABLE IF EXISTS dedupe_{number}"), vec![])).await.map(drop)
    }
}
