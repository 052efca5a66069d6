//! Renews the heartbeat on a connection of its own, so that a renewal never waits for a batch.

use async_trait::async_trait;
use forebay_types::Timestamp;
use sqlx::mysql::MySqlConnectOptions;

use super::{
    connect::{Role, connect},
    generation,
    lock::{self, LockNames},
    session::MySqlSession,
};
use crate::{
    Heartbeat, StoreError,
    sql::{Session as _, Statement, fence, int_of},
};

pub(super) struct MySqlHeartbeat {
    pub(super) options: MySqlConnectOptions,
    pub(super) owner: fence::Owner,
    pub(super) session: MySqlSession,
    pub(super) names: LockNames,
    /// The name that the connection holds.
    pub(super) name: String,
}

const CLOCK: &str = "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))";

impl MySqlHeartbeat {
    /// Replaces a lost connection. The new one is of use only once its name stands in the heartbeat.
    /// `false`: the shard has another owner.
    async fn connect_anew(&mut self) -> Result<bool, StoreError> {
        let mut session = connect(&self.options, Role::Single).await?;
        lock::kill_holder(&mut session, &self.name).await?;
        let name = self.names.next();
        lock::take(&mut session, &name).await?;
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
    async fn renew(&mut self) -> Result<Option<Option<Timestamp>>, StoreError> {
        if !self.session.is_usable() && !self.connect_anew().await? {
            return Ok(None);
        }
        let (ours, clock) = match self.session.execute_and_fetch(fence::renew(self.owner), CLOCK).await {
            // The server closes what is idle for 15 s. A beat may be counted twice, so it may be repeated.
            Err(_) if !self.session.is_usable() => {
                if !self.connect_anew().await? {
                    return Ok(None);
                }
                self.session.execute_and_fetch(fence::renew(self.owner), CLOCK).await?
            }
            beat => beat?,
        };
        if ours != 1 {
            return Ok(None);
        }
        Ok(Some(int_of(&clock)?.map(Timestamp::from_micros)))
    }

    async fn create_generation(&mut self, number: u64) -> Result<(), StoreError> {
        generation::create(&self.options, number).await
    }

    async fn drop_generation(&mut self, number: u64) -> Result<(), StoreError> {
        generation::drop(&self.options, number).await
    }
}
