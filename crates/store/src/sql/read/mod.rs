//! A reader's queries, for any kind of connection.

mod bodies;
mod dedupe;
mod due;
mod item;
mod load;
mod locate;
mod ready;
pub(crate) mod remains;

use async_trait::async_trait;
use forebay_types::{Body, Key, Seq, Timestamp, TopicId};

use crate::{
    error::StoreError,
    rows::{DedupeHit, DueRow, ReadyRow, ShardSnapshot, Sweep},
    shard::{ItemLocation, Reader},
    sql::statement::ReadConnection,
};

/// Reads a shard through any kind of connection.
pub(crate) struct SqlReader<C>(pub(crate) C);

#[async_trait]
impl<C: ReadConnection> Reader for SqlReader<C> {
    async fn load(&self) -> Result<ShardSnapshot, StoreError> {
        load::load(&self.0).await
    }

    async fn ready(
        &self,
        topic: TopicId,
        after: Key,
        limit: usize,
        max_bytes: usize,
    ) -> Result<Vec<ReadyRow>, StoreError> {
        ready::ready(&self.0, topic, after, limit, max_bytes).await
    }

    async fn bodies(&self, seqs: &[Seq]) -> Result<Vec<(Seq, Body)>, StoreError> {
        bodies::bodies(&self.0, seqs).await
    }

    async fn due(
        &self,
        sweep: Sweep,
        from: Timestamp,
        to: Timestamp,
        limit: usize,
    ) -> Result<Vec<DueRow>, StoreError> {
        due::due(&self.0, sweep, from, to, limit).await
    }

    async fn next_due(&self, sweep: Sweep, from: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        due::next_due(&self.0, sweep, from).await
    }

    async fn dedupe(&self, generations: &[u64], hashes: &[[u8; 16]]) -> Result<Vec<DedupeHit>, StoreError> {
        dedupe::dedupe(&self.0, generations, hashes).await
    }

    async fn locate(&self, seqs: &[Seq]) -> Result<Vec<ItemLocation>, StoreError> {
        locate::locate(&self.0, seqs).await
    }
}
