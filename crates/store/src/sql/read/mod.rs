//! The questions of a reader, asked of any source of rows.

mod bodies;
mod dedupe;
mod due;
mod load;
mod locate;
mod ready;

use async_trait::async_trait;
use forebay_types::{Body, Key, Seq, Timestamp, TopicId};

use super::{Attributes, ReadConnection, Row, Statement, Value, pack};
use crate::{DedupeHit, DueRow, Reader, ReadyRow, ShardSnapshot, StoreError, Sweep};

/// Reads a shard of either kind.
pub(crate) struct SqlReader<S>(pub(crate) S);

#[async_trait]
impl<S: ReadConnection> Reader for SqlReader<S> {
    async fn load(&self) -> Result<ShardSnapshot, StoreError> {
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

    async fn locate(&self, seq: Seq) -> Result<Option<bool>, StoreError> {
        locate::locate(&self.0, seq).await
    }
}

/// The columns of a [`ReadyRow`], of the table `item` under the name `i`.
const ITEM: &str = "i.priority, i.rank_us, i.seq, i.deliveries, i.failures, i.attributes, LENGTH(i.metadata)";
/// How many they are.
const ITEM_COLUMNS: usize = 7;

/// An item from the columns of [`ITEM`] and, if they come behind them, those of its body: payload and metadata.
fn item(row: &Row, with_body: bool) -> Result<ReadyRow, StoreError> {
    let attributes = Attributes::unpack(&row.bytes(5)?)?;
    let body = match with_body {
        true => {
            let (payload, metadata) = (row.bytes(ITEM_COLUMNS)?, row.bytes(ITEM_COLUMNS + 1)?);
            Some(Body { payload, metadata, headers: attributes.headers })
        }
        false => None,
    };
    Ok(ReadyRow {
        key: Key { priority: row.i32(0)?, rank: row.int(1)?, seq: row.seq(2)? },
        enqueued_at: attributes.enqueued_at,
        expires_at: attributes.expires_at,
        lease_ms: attributes.lease_ms,
        max_attempts: attributes.max_attempts,
        policy: attributes.policy,
        deliveries: row.u32(3)?,
        failures: row.u32(4)?,
        bytes: attributes.bytes.saturating_add(row.u32(6)?),
        body,
    })
}
