//! A store that does nothing: every commit succeeds at once, and the shard holds what the measurement says.
//! So what is left is the engine.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use forebay_store::{
    Batch, Claim, CommitError, DedupeHit, DueRow, Fence, Heartbeat, HighWaterMarks, ItemLocation, LeaseEntry,
    LeaseRow, MigrateError, NamespaceTally, Observation, Outcome, ProbeOutcome, ReadAhead, Reader, ReadyRow,
    Renewal, Settings, Shard, ShardConnections, ShardIdentity, ShardSnapshot, StoreError, Sweep, TopicCounts,
    TopicRow, TopicTally, Writer,
};
use forebay_types::{
    Body, ClusterId, DeliveryPolicy, Incarnation, ItemAttributes, Key, Seq, ShardId, Timestamp, TopicId,
    TopicName,
};

/// Deliveries of one row of the lease log.
const LEASES_PER_ROW: u64 = 1_000;
/// The first number of new items: those before are leased or ready already.
const FIRST_NEW_SEQ: u64 = 1 << 40;

/// A shard that stores nothing.
#[derive(Debug, Clone)]
pub struct NullShard {
    /// Its number.
    pub id: ShardId,
    /// Topics that it holds, each with one ready item.
    pub topics: u32,
    /// Open deliveries that it holds, of its first topic.
    pub leases: u64,
    /// How long a commit takes.
    pub commit: Duration,
    /// Another node takes the shard before the next renewal, and leaves it at once.
    pub lost: Arc<AtomicBool>,
    /// How often the shard was taken over.
    pub taken_over: Arc<AtomicU32>,
}

/// The body of an item that it holds.
fn body() -> Body {
    Body { payload: Bytes::from_static(&[0; 200]), ..Body::default() }
}

fn attributes() -> ItemAttributes {
    ItemAttributes {
        enqueued_at: Timestamp::from_micros(1),
        expires_at: None,
        lease_ms: 43_200_000,
        max_attempts: 16,
        policy: DeliveryPolicy::AtLeastOnce,
        deliveries: 1,
        failures: 0,
        redrives: 0,
        updated_by: 0,
        waits: forebay_types::Waits::Unsaid,
    }
}

impl NullShard {
    /// The namespace of the topics that it holds.
    pub const NAMESPACE: &str = "held";

    /// The name of a topic that a shard holds.
    pub fn topic_name(shard: ShardId, number: u32) -> TopicName {
        TopicName::new(Self::NAMESPACE, format!("topic-{:03}-{number:07}", shard.0))
    }

    fn topic_rows(&self) -> Vec<TopicRow> {
        let rows = (1..=self.topics).map(|number| {
            let leased = if number == 1 { self.leases as i64 } else { 0 };
            TopicRow {
                id: TopicId(number),
                name: Self::topic_name(self.id, number),
                counts: TopicCounts { ready: 1 + leased, scheduled: 0, dead: 0 },
            }
        });
        rows.collect()
    }

    fn lease_rows(&self) -> Vec<LeaseRow> {
        let entry = |seq: u64| LeaseEntry {
            seq: Seq(FIRST_NEW_SEQ / 2 + seq),
            topic: TopicId(1),
            priority: 0,
            rank: 1,
            attributes: attributes(),
            bytes: 0,
            nonce: seq,
            leased_at: Timestamp::from_micros(1),
            deadline: Timestamp::from_micros(i64::MAX / 2),
            consumer: String::new(),
            began: 1,
        };
        let rows = (0..self.leases.div_ceil(LEASES_PER_ROW)).map(|row| {
            let first = row * LEASES_PER_ROW;
            let entries: Vec<_> = (first..self.leases.min(first + LEASES_PER_ROW)).map(entry).collect();
            LeaseRow { id: row + 1, open: vec![true; entries.len()], entries }
        });
        rows.collect()
    }
}

#[async_trait]
impl Shard for NullShard {
    fn server(&self) -> String {
        format!("server {}", self.id)
    }

    async fn identity(&self) -> Result<Option<ShardIdentity>, StoreError> {
        Ok(None)
    }

    async fn migrate(&self, _: ClusterId) -> Result<Vec<u32>, MigrateError> {
        Ok(Vec::new())
    }

    async fn check(&self) -> Result<Settings, StoreError> {
        Ok(Settings { server: "nothing".to_owned(), batch_bytes: 16 << 20, ..Settings::default() })
    }

    async fn observe(&self) -> Result<Observation, StoreError> {
        Ok(Observation { batch: LEASES_PER_ROW, orphaned: true, ..Observation::default() })
    }

    async fn probe(&self) -> Result<ProbeOutcome, StoreError> {
        Ok(ProbeOutcome::Embedded)
    }

    async fn read_ahead(&self) -> Result<ReadAhead, StoreError> {
        Ok(ReadAhead::default())
    }

    async fn take_over(
        &self,
        claim: &Claim,
        _seen: &Observation,
    ) -> Result<Option<ShardConnections>, StoreError> {
        let marks = HighWaterMarks {
            seq: Seq(FIRST_NEW_SEQ),
            topic: TopicId(self.topics),
            rank: 1,
            time: Timestamp::from_micros(1),
        };
        let Claim { incarnation, .. } = claim;
        let incarnation: Incarnation = *incarnation;
        self.taken_over.fetch_add(1, Ordering::Relaxed);
        Ok(Some(ShardConnections {
            fence: Fence { epoch: 1, incarnation, batch: 1 << 20, marks },
            behind: None,
            writer: Box::new(NullConnection(self.clone())),
            heartbeat: Box::new(NullConnection(self.clone())),
            reader: Arc::new(NullConnection(self.clone())),
        }))
    }
}

/// A connection to a shard that stores nothing.
struct NullConnection(NullShard);

#[async_trait]
impl Writer for NullConnection {
    async fn commit(&mut self, _batch: &Batch) -> Result<(), CommitError> {
        if self.0.commit.is_zero() {
            tokio::task::yield_now().await;
        } else {
            tokio::time::sleep(self.0.commit).await;
        }
        Ok(())
    }

    async fn resolve(&mut self, _number: u64) -> Result<Outcome, StoreError> {
        Ok(Outcome::Committed)
    }

    async fn release(&mut self, _successor: &str) -> Result<(), StoreError> {
        Ok(())
    }
}

#[async_trait]
impl Heartbeat for NullConnection {
    async fn renew(&mut self) -> Result<Renewal, StoreError> {
        match self.0.lost.swap(false, Ordering::Relaxed) {
            true => Ok(Renewal::Lost),
            false => Ok(Renewal::Renewed { server_time: None }),
        }
    }

    async fn create_generation(&mut self, _number: u64) -> Result<(), StoreError> {
        Ok(())
    }

    async fn drop_generation(&mut self, _number: u64) -> Result<(), StoreError> {
        Ok(())
    }
}

#[async_trait]
impl Reader for NullConnection {
    async fn load(&self, _ahead: ReadAhead) -> Result<ShardSnapshot, StoreError> {
        let (topics, leases) = (self.0.topic_rows(), self.0.lease_rows());
        Ok(ShardSnapshot { topics, leases, ..ShardSnapshot::default() })
    }

    async fn tallies(
        &self,
        _after: TopicId,
        _limit: usize,
    ) -> Result<Vec<(TopicId, TopicTally)>, StoreError> {
        Ok(Vec::new())
    }

    async fn namespace_tallies(&self, _: &str, _: usize) -> Result<Vec<NamespaceTally>, StoreError> {
        Ok(Vec::new())
    }

    async fn ready(
        &self,
        topic: TopicId,
        after: Key,
        _limit: usize,
        _max_bytes: usize,
    ) -> Result<Vec<ReadyRow>, StoreError> {
        let key = Key { priority: 0, rank: 1, seq: Seq(u64::from(topic.0)) };
        let (attributes, body) = (attributes(), Some(body()));
        let row = ReadyRow { key, attributes, bytes: 0, body, unreadable: false };
        Ok(if key > after { vec![row] } else { Vec::new() })
    }

    async fn bodies(&self, seqs: &[Seq]) -> Result<Vec<(Seq, Body)>, StoreError> {
        Ok(seqs.iter().map(|seq| (*seq, body())).collect())
    }

    async fn due(
        &self,
        _sweep: Sweep,
        _from: Timestamp,
        _to: Timestamp,
        _limit: usize,
    ) -> Result<Vec<DueRow>, StoreError> {
        Ok(Vec::new())
    }

    async fn next_due(&self, _sweep: Sweep, _from: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        Ok(None)
    }

    async fn dedupe(&self, _generations: &[u64], _hashes: &[[u8; 16]]) -> Result<Vec<DedupeHit>, StoreError> {
        Ok(Vec::new())
    }

    async fn locate(&self, seqs: &[Seq]) -> Result<Vec<ItemLocation>, StoreError> {
        Ok(vec![ItemLocation::Gone; seqs.len()])
    }
}
