//! Writes batches.

use std::{path::PathBuf, sync::Arc};

use async_trait::async_trait;
use sqlx::Connection as _;

use super::{STATEMENT_BYTES, lock::OwnerLock, open, session::SqliteSession};
use crate::{
    Batch, CommitError, ErrorClass, Outcome, StoreError, Writer,
    sql::{Dialect, Session, commit, fence},
};

pub(super) struct SqliteWriter {
    pub(super) path: PathBuf,
    pub(super) owner: fence::Owner,
    /// Absent after a failure that may have left a transaction open.
    pub(super) session: Option<SqliteSession>,
    pub(super) _lock: Arc<OwnerLock>,
}

#[async_trait]
impl Writer for SqliteWriter {
    async fn commit(&mut self, batch: &Batch) -> Result<(), CommitError> {
        let Some(mut session) = self.session.take() else {
            let error = StoreError::new(ErrorClass::Disconnected, "the file is to be opened anew");
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
            // Ends a COMMIT under way before the fence is read; what closing says makes no difference.
            drop(session.0.close().await);
        }
        let mut session = SqliteSession(open::open(&self.path).await?);
        // A transaction that takes the write lock waits for whatever the old connection still does.
        session.begin().await?;
        let fence = fence::decode(session.fetch(fence::read()).await?)?;
        session.rollback().await?;
        self.session = Some(session);
        Ok(fence::outcome(&fence, self.owner, number))
    }

    async fn release(&mut self) -> Result<(), StoreError> {
        let mut session = match self.session.take() {
            Some(session) => session,
            None => SqliteSession(open::open(&self.path).await?),
        };
        session.execute(fence::release(self.owner)).await?;
        self.session = Some(session);
        Ok(())
    }
}

/// Whether nothing of the batch can be open on the connection any more.
fn keeps_session(done: &Result<(), CommitError>) -> bool {
    match done {
        Ok(()) | Err(CommitError::FenceMoved) => true,
        Err(CommitError::RolledBack(error)) => {
            matches!(error.class, ErrorClass::Replay | ErrorClass::Poison | ErrorClass::DiskFull)
        }
        Err(CommitError::Unknown(_)) => false,
    }
}
