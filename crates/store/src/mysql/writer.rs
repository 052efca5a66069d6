//! Writes batches on the only connection that may.

use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use super::{
    connect::Role,
    lock::{self, LockNames},
    server::Server,
    session::MySqlSession,
};
use crate::{
    batch::Batch,
    error::{CommitError, ErrorClass, StoreError},
    rows::Fence,
    shard::{Outcome, Writer},
    sql::{Dialect, Session as _, Statement, commit, fence},
};

/// The server closes a writer's connection that is idle for 15 s. One that was idle for longer than this is
/// checked before its next use.
const CHECK_AFTER_IDLE: Duration = Duration::from_secs(5);
/// How often to ask for the fence row while another transaction holds it. Each attempt waits 3 s.
const FENCE_ATTEMPTS_MAX: u32 = 3;

/// The connection that writes batches.
pub(super) struct MySqlWriter {
    /// The server that holds the shard.
    pub(super) server: Server,
    /// The owner whose batches it writes.
    pub(super) owner: fence::Owner,
    /// The connection.
    pub(super) session: MySqlSession,
    /// The lock names of this owner's writers.
    pub(super) names: LockNames,
    /// The lock names of this writer's connections that may still be alive, the current one's last.
    pub(super) held: Vec<String>,
    /// When the connection was last used.
    pub(super) used: Instant,
    /// The most bytes that one statement may carry.
    pub(super) statement_bytes: usize,
}

impl MySqlWriter {
    /// Kills what is left of earlier connections and opens a new one. The new one is usable only after its
    /// lock name is in the heartbeat row.
    async fn reconnect(&mut self) -> Result<(), StoreError> {
        let mut session = self.server.connect(Role::Writer).await?;
        for name in &self.held {
            lock::kill_holder(&mut session, name).await?;
        }
        let name = self.names.next();
        self.held.push(name.clone());
        lock::acquire(&mut session, &name).await?;
        session
            .execute(Statement::new(
                "UPDATE heartbeat SET writer_lock = ? WHERE id = 1 AND epoch = ? AND incarnation = ?",
                vec![
                    name.as_str().into(),
                    self.owner.epoch.into(),
                    self.owner.incarnation.0.as_slice().into(),
                ],
            ))
            .await?;
        // It does not matter whether the row matched: the fence decides who owns the shard.
        session.commit().await?;
        self.held = vec![name];
        (self.session, self.used) = (session, Instant::now());
        Ok(())
    }

    async fn ensure_usable(&mut self) -> Result<(), StoreError> {
        if self.session.is_usable() && self.used.elapsed() > CHECK_AFTER_IDLE {
            // Nothing of a batch was sent yet, so a lost connection only costs a new one.
            if let Err(error) = self.session.ping().await {
                tracing::debug!(%error, "the writer's connection was closed while idle; connecting again");
            }
        }
        if self.session.is_usable() { Ok(()) } else { self.reconnect().await }
    }

    /// Waits for the transaction that holds the fence row, then reads the committed fence.
    async fn read_fence(&mut self) -> Result<Fence, StoreError> {
        let mut attempts = 1;
        loop {
            match self.session.fetch(fence::read_locked()).await {
                Ok(rows) => {
                    self.session.rollback().await?;
                    return fence::decode(rows);
                }
                Err(error) if error.class == ErrorClass::Replay && attempts < FENCE_ATTEMPTS_MAX => {
                    attempts += 1;
                    self.session.rollback().await?;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

#[async_trait]
impl Writer for MySqlWriter {
    async fn commit(&mut self, batch: &Batch) -> Result<(), CommitError> {
        self.ensure_usable().await.map_err(CommitError::RolledBack)?;
        let bytes = self.statement_bytes;
        let done = commit::commit(&mut self.session, batch, self.owner, Dialect::MySql, bytes).await;
        self.used = Instant::now();
        done
    }

    async fn resolve(&mut self, number: u64) -> Result<Outcome, StoreError> {
        // Always on a new connection: the old one may still be executing something.
        self.reconnect().await?;
        let fence = self.read_fence().await?;
        Ok(Outcome::of(&fence, self.owner.epoch, self.owner.incarnation, number))
    }

    async fn release(&mut self, successor: &str) -> Result<(), StoreError> {
        self.ensure_usable().await?;
        self.session.execute(fence::release(self.owner, successor)).await?;
        self.session.commit().await
    }
}
