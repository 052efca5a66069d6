//! Writes batches.

use std::{path::PathBuf, sync::Arc};

use async_trait::async_trait;
use sqlx::Connection as _;

use super::{lock::OwnerLock, open, session::SqliteSession};
use crate::{
    batch::Batch,
    error::{CommitError, ErrorClass, StoreError},
    shard::{Outcome, Writer},
    sql::{Dialect, Session, commit, fence},
};

/// The most bytes of one statement. A statement is copied on its way to SQLite's thread.
const STATEMENT_BYTES: usize = 4 << 20;

/// The connection that writes batches.
pub(super) struct SqliteWriter {
    /// The database file.
    pub(super) path: PathBuf,
    /// The owner whose batches it writes.
    pub(super) owner: fence::Owner,
    /// The connection. Absent after a failure that may have left a transaction open.
    pub(super) session: Option<SqliteSession>,
    /// Held as long as the owner lives.
    pub(super) _lock: Arc<OwnerLock>,
}

#[async_trait]
impl Writer for SqliteWriter {
    async fn commit(&mut self, batch: &Batch) -> Result<(), CommitError> {
        let Some(mut session) = self.session.take() else {
            let error = StoreError::new(ErrorClass::Disconnected, "the connection to the file was dropped");
            return Err(CommitError::RolledBack(error));
        };
        let done = commit::commit(&mut session, batch, self.owner, Dialect::Sqlite, STATEMENT_BYTES).await;
        if keeps_session(&done) {
            self.session = Some(session);
        }
        done
    }

    async fn resolve(&mut self, number: u64) -> Result<Outcome, StoreError> {
        if let Some(session) = self.session.take() {
            // Waits for a COMMIT in progress before the fence is read. An error while closing is harmless.
            drop(session.0.close().await);
        }
        let mut session = SqliteSession(open::open(&self.path).await?);
        // The write lock makes this transaction wait for anything that the old connection still does.
        session.begin().await?;
        let fence = fence::decode(session.fetch(fence::read()).await?)?;
        session.rollback().await?;
        self.session = Some(session);
        Ok(Outcome::of(&fence, self.owner.epoch, self.owner.incarnation, number))
    }

    async fn release(&mut self, successor: &str) -> Result<(), StoreError> {
        let mut session = match self.session.take() {
            Some(session) => session,
            None => SqliteSession(open::open(&self.path).await?),
        };
        session.execute(fence::release(self.owner, successor)).await?;
        self.session = Some(session);
        Ok(())
    }
}

/// Whether the connection certainly has no open transaction.
fn keeps_session(done: &Result<(), CommitError>) -> bool {
    match done {
        Ok(()) | Err(CommitError::FenceMoved) => true,
        Err(CommitError::RolledBack(error)) => {
            use ErrorClass::{DiskFull, Duplicate, Poison, Replay};
            matches!(error.class, Replay | Poison | Duplicate | DiskFull)
        }
        Err(CommitError::Unknown(_)) => false,
    }
}
