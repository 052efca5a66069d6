//! Writes batches on the one connection that may.

use std::time::Duration;

use async_trait::async_trait;
use sqlx::mysql::MySqlConnectOptions;
use tokio::time::Instant;

use super::{
    connect::{Role, connect},
    lock::{self, LockNames},
    session::MySqlSession,
};
use crate::{
    Batch, CommitError, ErrorClass, Outcome, StoreError, Writer,
    sql::{Dialect, Session as _, Statement, commit, fence},
};

/// The server closes a writer's connection that is idle for 15 s, so one idle for longer than this is
/// looked at before it is used.
const IDLE: Duration = Duration::from_secs(5);
/// How often the fence row is asked for while something else holds it, each time for 3 s.
const TRIES: u32 = 3;

pub(super) struct MySqlWriter {
    pub(super) options: MySqlConnectOptions,
    pub(super) owner: fence::Owner,
    pub(super) session: MySqlSession,
    pub(super) names: LockNames,
    /// LockNames that connections of this writer hold or held, the present one's last.
    pub(super) held: Vec<String>,
    pub(super) used: Instant,
    /// What one statement may carry.
    pub(super) statement_bytes: usize,
}

impl MySqlWriter {
    /// Kills what is left of earlier connections and makes a new one, which is of use only once its name
    /// stands in the heartbeat.
    async fn connect_anew(&mut self) -> Result<(), StoreError> {
        let mut session = connect(&self.options, Role::Writer).await?;
        for name in &self.held {
            lock::kill_holder(&mut session, name).await?;
        }
        let name = self.names.next();
        self.held.push(name.clone());
        lock::take(&mut session, &name).await?;
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
        // Matched or not: whether the shard is still ours is for the fence to say.
        session.commit().await?;
        self.held = vec![name];
        (self.session, self.used) = (session, Instant::now());
        Ok(())
    }

    async fn ensure_live(&mut self) -> Result<(), StoreError> {
        if self.session.is_usable() && self.used.elapsed() > IDLE {
            // Nothing of a batch was sent yet, so that a lost connection costs nothing but a new one.
            if let Err(error) = self.session.ping().await {
                tracing::debug!(%error, "the writer's connection was closed while idle");
            }
        }
        if self.session.is_usable() { Ok(()) } else { self.connect_anew().await }
    }

    /// Waits for whoever holds the fence row, then reads what is committed.
    async fn read_fence(&mut self) -> Result<crate::Fence, StoreError> {
        let mut tries = 1;
        loop {
            match self.session.fetch(fence::read_locked()).await {
                Ok(rows) => {
                    self.session.rollback().await?;
                    return fence::decode(rows);
                }
                Err(error) if error.class == ErrorClass::Replay && tries < TRIES => {
                    tries += 1;
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
        self.ensure_live().await.map_err(CommitError::RolledBack)?;
        let bytes = self.statement_bytes;
        let done = commit::commit(&mut self.session, batch, self.owner, Dialect::MySql, bytes).await;
        self.used = Instant::now();
        done
    }

    async fn resolve(&mut self, number: u64) -> Result<Outcome, StoreError> {
        // A new connection in any case: of the old one nobody knows what it still does.
        self.connect_anew().await?;
        let fence = self.read_fence().await?;
        Ok(fence::outcome(&fence, self.owner, number))
    }

    async fn release(&mut self) -> Result<(), StoreError> {
        self.ensure_live().await?;
        self.session.execute(fence::release(self.owner)).await?;
        self.session.commit().await
    }
}
