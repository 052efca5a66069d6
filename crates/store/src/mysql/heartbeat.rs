//! Renews the claim on a connection of its own, so that a renewal never waits for a batch.

use async_trait::async_trait;
use forebay_types::Timestamp;

use super::{
    connect::Role,
    generation,
    lock::{self, LockNames},
    server::Server,
    session::MySqlSession,
};
use crate::{
    error::StoreError,
    shard::{Heartbeat, Renewal},
    sql::{Session as _, Statement, fence, int_of},
};

/// The connection that renews a claim.
pub(super) struct MySqlHeartbeat {
    /// The server that holds the shard.
    pub(super) server: Server,
    /// The owner whose claim it renews.
    pub(super) owner: fence::Owner,
    /// The connection.
    pub(super) session: MySqlSession,
    /// The lock names of this owner's heartbeats.
    pub(super) names: LockNames,
    /// The name of the lock that the connection holds.
    pub(super) name: String,
}

const CLOCK: &str = "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))";

impl MySqlHeartbeat {
    /// Replaces a lost connection. The new one is usable only after its lock name is in the heartbeat row.
    /// Returns `false` if the shard has another owner.
    async fn reconnect(&mut self) -> Result<bool, StoreError> {
        let mut session = self.server.connect(Role::Single).await?;
        lock::kill_holder(&mut session, &self.name).await?;
        let name = self.names.next();
        lock::acquire(&mut session, &name).await?;
        let ours = session
            .execute(Statement::new(
                "UPDATE heartbeat SET heartbeat_lock = ? WHERE id = 1 AND epoch = ? AND incarnation = ?",
                vec![
                    name.as_str().into(),
                    self.owner.epoch.into(),
                    self.owner.incarnation.0.as_slice().into(),
                ],
            ))
            .await?;
        (self.session, self.name) = (session, name);
        Ok(ours == 1)
    }
}

#[async_trait]
impl Heartbeat for MySqlHeartbeat {
    async fn renew(&mut self) -> Result<Renewal, StoreError> {
        if !self.session.is_usable() && !self.reconnect().await? {
            return Ok(Renewal::Lost);
        }
        let (ours, clock) = match self.session.execute_and_fetch(fence::renew(self.owner), CLOCK).await {
            // The server closes a connection that is idle for 15 s. Repeating a renewal that may have
            // succeeded is harmless.
            Err(_) if !self.session.is_usable() => {
                if !self.reconnect().await? {
                    return Ok(Renewal::Lost);
                }
                self.session.execute_and_fetch(fence::renew(self.owner), CLOCK).await?
            }
            renewed => renewed?,
        };
        if ours != 1 {
            return Ok(Renewal::Lost);
        }
        Ok(Renewal::Renewed { server_time: int_of(&clock)?.map(Timestamp::from_micros) })
    }

    async fn create_generation(&mut self, number: u64) -> Result<(), StoreError> {
        generation::create(&self.server, number).await
    }

    async fn drop_generation(&mut self, number: u64) -> Result<(), StoreError> {
        generation::drop(&self.server, number).await
    }
}
