//! Renews the claim on a shard, together with the others that the node has on the same server, and never
//! behind a batch.

use std::sync::Arc;

use async_trait::async_trait;

use super::{generation, renewals::Renew, server::Server, shared_server::SharedServer};
use crate::{
    error::StoreError,
    shard::{Heartbeat, Renewal},
};

/// Renews one claim.
pub(super) struct MySqlHeartbeat {
    /// The server that holds the shard.
    pub(super) server: Server,
    /// Renews the claims of all shards there.
    pub(super) shared: Arc<SharedServer>,
    /// The claim that it renews.
    pub(super) claim: Renew,
}

#[async_trait]
impl Heartbeat for MySqlHeartbeat {
    async fn renew(&mut self) -> Result<Renewal, StoreError> {
        self.shared.renewals.ask(self.claim.clone()).await
    }

    async fn create_generation(&mut self, number: u64) -> Result<(), StoreError> {
        generation::create(&self.server, number).await
    }

    async fn drop_generation(&mut self, number: u64) -> Result<(), StoreError> {
        generation::drop(&self.server, number).await
    }
}
