//! The connection that renews the claim on a fake shard.

use async_trait::async_trait;
use forebay_store::{Heartbeat, Renewal, StoreError};
use forebay_types::Timestamp;

use super::{
    db::{Author, Db},
    process::Process,
};

/// Renews a claim.
pub(super) struct FakeHeartbeat {
    /// The shard.
    pub db: Db,
    /// The process that renews.
    pub process: Process,
    /// The owner whose claim it renews.
    pub author: Author,
}

#[async_trait]
impl Heartbeat for FakeHeartbeat {
    async fn renew(&mut self) -> Result<Renewal, StoreError> {
        self.db.operate(&self.process, "renewal", |faults| faults.renewal_fails).await?;
        let renewed = {
            let state = &mut *self.db.lock();
            let fence = state.tables.fence;
            let ours = (fence.epoch, fence.incarnation) == (self.author.epoch, self.author.incarnation);
            state.tables.renewals += u64::from(ours);
            state.flush();
            ours
        };
        let server_time = Some(self.db.server_clock());
        self.db.answer(&self.process).await;
        Ok(if renewed { Renewal::Renewed { server_time } } else { Renewal::Lost })
    }

    async fn create_generation(&mut self, number: u64) -> Result<(), StoreError> {
        self.db.operate(&self.process, "creation of a generation", |faults| faults.renewal_fails).await?;
        let state = &mut *self.db.lock();
        state.tables.generations.entry(number).or_default();
        state.flush();
        Ok(())
    }

    async fn drop_generation(&mut self, number: u64) -> Result<(), StoreError> {
        self.db
            .operate(&self.process, "drop of a generation", |faults| {
                faults.renewal_fails.max(faults.drop_fails)
            })
            .await?;
        let state = &mut *self.db.lock();
        let now = self.db.journal.now();
        let keys = state.tables.generations.remove(&number).unwrap_or_default();
        let reached = |at: &Timestamp| !state.dedupe_window.is_zero() && at.plus(state.dedupe_window) > now;
        let young = keys.values().filter(|(at, _)| reached(at)).count();
        if young > 0 {
            let what = format!("generation {number} was dropped with {young} keys whose window reaches it");
            state.violations.push(("IDEMPOTENT-ENQUEUE", what));
        }
        state.flush();
        Ok(())
    }
}
