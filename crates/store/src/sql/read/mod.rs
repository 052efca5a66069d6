//! The questions of a reader, asked of any source of rows.

mod bodies;
mod dedupe;
mod due;
mod fate;
mod load;
mod ready;

use std::time::Duration;

use async_trait::async_trait;
use forebay_types::{Body, Key, Seq, Timestamp, TopicId};

use super::{Row, Source, Statement, Value, pack, scalar};
use crate::{DedupeHit, DueRow, Image, Reader, ReadyRow, StoreError, Sweep};

/// Reads a shard of either kind.
pub(crate) struct SqlReader<S>(pub(crate) S);

#[async_trait]
impl<S: Source> Reader for SqlReader<S> {
    async fn load(&self) -> Result<Image, StoreError> {
        load::load(&self.0).await
    }

    async fn ready(
        &self,
        topic: TopicId,
        after: Key,
        limit: usize,
        bodies: bool,
    ) -> Result<Vec<ReadyRow>, StoreError> {
        ready::ready(&self.0, topic, after, limit, bodies).await
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

    async fn fate(&self, seq: Seq) -> Result<Option<bool>, StoreError> {
        fate::fate(&self.0, seq).await
    }

    async fn ping(&self) -> Result<Duration, StoreError> {
        let start = tokio::time::Instant::now();
        scalar(self.0.fetch(Statement::new("SELECT 1", vec![])).await?, "ping")?;
        Ok(start.elapsed())
    }
}

/// The columns of a [`ReadyRow`], of the table `item` under the name `i`.
const ITEM: &str = "i.priority, i.rank_us, i.seq, i.enqueued_at, i.expires_at, i.lease_ms, i.max_attempts, \
                    i.policy, i.deliveries, i.failures, i.body_bytes";
/// How many they are.
const ITEM_COLUMNS: usize = 11;
/// What [`pack::body`] reads.
const BODY: &str = "i.payload, i.metadata, i.headers";

/// An item from the columns of [`ITEM`]; its body is yet to come.
fn item(row: &Row) -> Result<ReadyRow, StoreError> {
    Ok(ReadyRow {
        key: Key { priority: row.i32(0)?, rank: row.int(1)?, seq: row.seq(2)? },
        enqueued_at: row.time(3)?,
        expires_at: row.optional_time(4)?,
        lease_ms: row.u32(5)?,
        max_attempts: row.u32(6)?,
        policy: row.policy(7)?,
        deliveries: row.u32(8)?,
        failures: row.u32(9)?,
        bytes: row.u32(10)?,
        body: None,
    })
}
