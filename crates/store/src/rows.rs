//! What stands in a shard's tables, in the words of the engine.

use forebay_types::{Body, DeliveryPolicy, Incarnation, Key, Seq, ShardId, Timestamp, TopicId, TopicName};
use serde::{Deserialize, Serialize};

/// The row that every batch moves on by compare-and-set: who owns the shard, and what was committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fence {
    /// Grows at each change of owner.
    pub epoch: u64,
    /// The owner's random name.
    pub incarnation: Incarnation,
    /// The number of the last committed batch. Never starts anew, not even at a take-over.
    pub batch: u64,
    /// The highest values given out so far.
    pub marks: HighWaterMarks,
}

/// The highest values that a shard has given out; none of them ever goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HighWaterMarks {
    /// The highest item number.
    pub seq: Seq,
    /// The highest topic number.
    pub topic: TopicId,
    /// The highest rank of an item that was ready at once.
    pub rank: i64,
    /// The shard's time.
    pub time: Timestamp,
}

/// Among which shards keys had their homes, and since when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardTopology {
    /// The first batch under this list.
    pub batch: u64,
    /// That batch's time.
    pub since: Timestamp,
    /// The shards, in order.
    pub shards: Vec<ShardId>,
}

/// What a bystander can see of a shard's owner. Two equal observations mean that nothing moved between.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// The fence's epoch.
    pub epoch: u64,
    /// The number of the last committed batch.
    pub batch: u64,
    /// Counts the owner's renewals.
    pub renewals: u64,
    /// Where the owner can be asked, `host:port`; empty after it gave the shard up, and before the first owner.
    pub address: String,
    /// The lists of shards that this shard has recorded, oldest first.
    pub topology_history: Vec<ShardTopology>,
    /// The store itself knows that no owner lives (SQLite: the file's lock is free), so there is no need
    /// to wait for a lease to lapse.
    pub orphaned: bool,
}

/// The sweeps that keep a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Sweep {
    /// Items that waited for their time.
    Due,
    /// Items whose time to live is over.
    Expiry,
}

impl Sweep {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Due, Self::Expiry];

    /// The sweep's name in the `checkpoint` table, in metrics and on the page.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Due => "due",
            Self::Expiry => "expiry",
        }
    }
}

/// One topic of one shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicRow {
    /// Its number in this shard.
    pub id: TopicId,
    /// Its name.
    pub name: TopicName,
    /// How many items it has, as of the load.
    pub counts: TopicCounts,
}

/// How many items of a topic are where. Leased ones count as ready here: the lease log tells them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TopicCounts {
    /// Item rows in state ready, leased ones included.
    pub ready: i64,
    /// Item rows in state scheduled.
    pub scheduled: i64,
    /// Dead letters.
    pub dead: i64,
}

/// One delivery in progress, as the lease log tells it to a new owner, which reads no item for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseEntry {
    /// The leased item.
    pub seq: Seq,
    /// Its topic.
    pub topic: TopicId,
    /// Its priority.
    pub priority: i32,
    /// Its rank in the item row.
    pub rank: i64,
    /// When it was enqueued.
    pub enqueued_at: Timestamp,
    /// When it expires.
    pub expires_at: Option<Timestamp>,
    /// Bytes of its body.
    pub bytes: u32,
    /// The number of this delivery, from 1.
    pub delivery: u32,
    /// Failed deliveries before this one.
    pub failures: u32,
    /// How many may fail.
    pub max_attempts: u32,
    /// The item's own lease duration, in milliseconds.
    pub lease_ms: u32,
    /// Part of the receipt.
    pub nonce: u64,
    /// When the lease ends.
    pub deadline: Timestamp,
    /// Who asked, for operators; may be empty.
    pub consumer: String,
}

/// One row of the lease log, with its row in `lease_open` if it has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseRow {
    /// The number of the batch that wrote it.
    pub id: u64,
    /// The deliveries it began, in the order of the bitmap's bits.
    pub entries: Vec<LeaseEntry>,
    /// Which of them are still open; as long as `entries`.
    pub open: Vec<bool>,
}

/// What becomes of a row of the lease log some of whose deliveries ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseChange {
    /// The row.
    pub id: u64,
    /// Some of its deliveries ended before: it has a row in `lease_open`.
    pub partly: bool,
    /// Which of its deliveries are still open. Without any the row goes whole.
    pub open: Vec<bool>,
}

/// An item in the delivery order, as a prefetch reads it. It may be leased: the engine knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadyRow {
    /// Its place.
    pub key: Key,
    /// When it was enqueued.
    pub enqueued_at: Timestamp,
    /// When it expires.
    pub expires_at: Option<Timestamp>,
    /// Its own lease duration, in milliseconds.
    pub lease_ms: u32,
    /// How many deliveries may fail.
    pub max_attempts: u32,
    /// Whether it needs an ack.
    pub policy: DeliveryPolicy,
    /// Deliveries so far.
    pub deliveries: u32,
    /// Failed deliveries so far.
    pub failures: u32,
    /// Bytes of its body, as [`Body::bytes`] counts them.
    pub bytes: u32,
    /// The body, where it was asked for.
    pub body: Option<Body>,
}

/// A row of `schedule` or `expiry`, joined with its item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueRow {
    /// The row's time.
    pub at: Timestamp,
    /// The item's topic.
    pub topic: TopicId,
    /// Whether the item row is in state scheduled.
    pub scheduled: bool,
    /// The item, without body.
    pub item: ReadyRow,
}

/// What a dedupe key or request id was answered the first time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DedupeHit {
    /// The hash that was asked for.
    pub hash: [u8; 16],
    /// When it was stored.
    pub at: Timestamp,
    /// What was stored with it: opaque to the store.
    pub answer: Vec<u8>,
}

/// All that a new owner has to know before it serves.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShardSnapshot {
    /// Every topic, with its counts as of the last batch.
    pub topics: Vec<TopicRow>,
    /// Every lease row that has something open.
    pub leases: Vec<LeaseRow>,
    /// Where each sweep goes on; a sweep without a row starts at [`Timestamp::MIN`].
    pub checkpoints: Vec<(Sweep, Timestamp)>,
    /// The generations of the dedupe table, oldest first; a generation's number is the second, since the
    /// Unix epoch, from which on it takes keys.
    pub generations: Vec<u64>,
}

/// What a server's settings mean for what it commits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// Product and version, as in `MariaDB 10.11.14`.
    pub server: String,
    /// Why an answered commit may be lost; empty is as it should be. One sentence each, naming the setting.
    pub not_durable: Vec<String>,
    /// What only makes commits slow.
    pub slow: Vec<String>,
    /// The most bytes that one batch may carry.
    pub batch_bytes: usize,
}
