//! Renews the heartbeat, and makes and drops generations of the dedupe table.

use std::{path::PathBuf, sync::Arc};

use async_trait::async_trait;
use forebay_types::Timestamp;

use super::{lock::OwnerLock, open, session::SqliteSession};
use crate::{
    Heartbeat, StoreError,
    sql::{Session as _, Statement, fence},
};

pub(super) struct SqliteHeartbeat {
    pub(super) path: PathBuf,
    pub(super) owner: fence::Owner,
    pub(super) session: Option<SqliteSession>,
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
    async fn renew(&mut self) -> Result<Option<Option<Timestamp>>, StoreError> {
        // The file has no clock of its own.
        let renewed = self.execute(fence::renew(self.owner)).await? == 1;
        Ok(renewed.then_some(None))
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
