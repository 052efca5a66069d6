//! The connection that renews the claim on a fake shard.

use async_trait::async_trait;
use forebay_store::{Heartbeat, Renewal, StoreError};

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
            let tables = &mut self.db.lock().tables;
            let fence = tables.fence;
            let ours = (fence.epoch, fence.incarnation) == (self.author.epoch, self.author.incarnation);
            tables.renewals += u64::from(ours);
            ours
        };
        let renewal = || Renewal::Renewed { server_time: Some(self.db.server_clock()) };
        Ok(if renewed { renewal() } else { Renewal::Lost })
    }

    async fn create_generation(&mut self, number: u64) -> Result<(), StoreError> {
        self.db.operate(&self.process, "creation of a generation", |faults| faults.renewal_fails).await?;
        self.db.lock().tables.generations.entry(number).or_default();
        Ok(())
    }

    async fn drop_generation(&mut self, number: u64) -> Result<(), StoreError> {
        self.db
            .operate(&self.process, "drop of a generation", |faults| {
                faults.renewal_fails.max(faults.drop_fails)
            })
            .await?;
        self.db.lock().tables.generations.remove(&number);
        Ok(())
    }
}
