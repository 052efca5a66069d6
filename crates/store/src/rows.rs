//! Rows of a shard's tables, as the engine sees them.

use std::{
    collections::BTreeMap,
    fmt,
    ops::{AddAssign, SubAssign},
    time::Duration,
};

use forebay_types::{
    Body, ClusterId, Headers, Incarnation, ItemAttributes, Key, Seq, ShardId, Timestamp, TopicId, TopicName,
};
use serde::{Deserialize, Serialize};

use crate::{
    operation::{OperationId, OperationRow},
    tally::TopicTally,
};

/// The row that every batch advances by compare-and-set. It records the owner and the last committed batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fence {
    /// Incremented at each change of owner.
    pub epoch: u64,
    /// The owner's random name.
    pub incarnation: Incarnation,
    /// The number of the last committed batch. A take-over does not reset it.
    pub batch: u64,
    /// The highest values given out so far.
    pub marks: HighWaterMarks,
}

/// The highest values that a shard has given out. None of them ever decreases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HighWaterMarks {
    /// The highest item number.
    pub seq: Seq,
    /// The highest topic number.
    pub topic: TopicId,
    /// The highest rank of an item that was ready when it was stored.
    pub rank: i64,
    /// The shard's time.
    pub time: Timestamp,
}

/// The sets of shards among which dedupe keys have, or had, their home shards, as one shard recorded them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ShardTopology {
    /// The present set, in order. Empty before the first owner's first batch.
    pub shards: Vec<ShardId>,
    /// When this shard recorded it first.
    pub since: Timestamp,
    /// Earlier sets, and when each ended at the latest.
    pub earlier: BTreeMap<Vec<ShardId>, Timestamp>,
}

/// Observation of a shard's owner, which any process can make. If two observations are equal, the owner did
/// nothing visible between them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Observation {
    /// The fence's epoch.
    pub epoch: u64,
    /// The owner's random name.
    pub incarnation: Incarnation,
    /// The number of the last committed batch.
    pub batch: u64,
    /// How often owners have renewed their claims.
    pub renewals: u64,
    /// The owner's `host:port`. Empty before the first owner and after a release.
    pub address: String,
    /// How long the owner may be silent before it counts as gone. Zero before the first owner.
    pub lease: Duration,
    /// The `host:port` of the node that the last owner handed the shard to. Empty: it named none.
    pub successor: String,
    /// The topologies that this shard has recorded, oldest first.
    pub topology_history: ShardTopology,
    /// The store itself knows that no owner is alive, so nobody needs to wait for its lease to end. In SQLite
    /// this means that the file's lock is free.
    pub orphaned: bool,
}

/// The sweeps that keep a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Sweep {
    /// Promotes scheduled items.
    Due,
    /// Removes expired items.
    Expiry,
    /// Deletes dead letters that were kept for long enough.
    Retention,
}

impl Sweep {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Due, Self::Expiry, Self::Retention];

    /// The sweep's name in the `checkpoint` table, in metrics and on the status page.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Due => "due",
            Self::Expiry => "expiry",
            Self::Retention => "retention",
        }
    }
}

/// Where a sweep continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Checkpoint {
    /// The sweep.
    pub sweep: Sweep,
    /// The sweep's table has no live row before this time.
    pub at: Timestamp,
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

/// How many items a topic has in each state. A leased item counts as ready: only the lease log knows the
/// difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TopicCounts {
    /// Item rows in state ready, leased ones included.
    pub ready: i64,
    /// Item rows in state scheduled.
    pub scheduled: i64,
    /// Dead letters.
    pub dead: i64,
}

impl AddAssign for TopicCounts {
    fn add_assign(&mut self, other: Self) {
        self.ready += other.ready;
        self.scheduled += other.scheduled;
        self.dead += other.dead;
    }
}

impl SubAssign for TopicCounts {
    fn sub_assign(&mut self, other: Self) {
        self.ready -= other.ready;
        self.scheduled -= other.scheduled;
        self.dead -= other.dead;
    }
}

/// One delivery in progress. A new owner restores the lease from this entry without reading the item.
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
    /// Its attributes. The deliveries include this one.
    pub attributes: ItemAttributes,
    /// Bytes of its body.
    pub bytes: u32,
    /// Part of the receipt.
    pub nonce: u64,
    /// When the lease ends.
    pub deadline: Timestamp,
    /// The consumer's name, for operators. May be empty.
    pub consumer: String,
    /// The number of the batch that began it. It stays when the delivery is extended or moves. 0: an older
    /// program stored the entry.
    #[serde(skip)]
    pub began: u64,
    /// When the delivery began.
    #[serde(skip)]
    pub leased_at: Timestamp,
}

impl LeaseEntry {
    /// The number of this delivery, from 1.
    pub const fn delivery(&self) -> u32 {
        self.attributes.deliveries
    }
}

/// One row of the lease log, with its row in `lease_open` if it has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseRow {
    /// The number of the batch that wrote it.
    pub id: u64,
    /// The deliveries that began in this batch, in the order of the bitmap's bits.
    pub entries: Vec<LeaseEntry>,
    /// Which of them are still open. As long as `entries`.
    pub open: Vec<bool>,
}

/// The new state of a lease row some of whose deliveries ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseChange {
    /// The row.
    pub id: u64,
    /// Some of its deliveries ended in an earlier batch, so it has a row in `lease_open`.
    pub partly: bool,
    /// Which of its deliveries are still open. If none is, the row is deleted.
    pub open: Vec<bool>,
}

/// An item in the delivery order, as a prefetch reads it. It may be leased: only the engine knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadyRow {
    /// Its position in the delivery order.
    pub key: Key,
    /// Its attributes.
    pub attributes: ItemAttributes,
    /// Bytes of its body, as [`Body::bytes`] counts them.
    pub bytes: u32,
    /// The body, if there was room for it in what the caller asked for.
    pub body: Option<Body>,
    /// Its stored attributes can't be read: they are unknown.
    pub unreadable: bool,
}

/// An item that waits, as an operation reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WalkedRow {
    /// The item, without its body.
    pub item: ReadyRow,
    /// Its headers.
    pub headers: Headers,
    /// Bytes of its metadata.
    pub metadata_bytes: u32,
}

/// A dead letter as an operation reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadRow {
    /// Its topic, which may be dormant.
    pub topic: TopicId,
    /// When it died.
    pub died_at: Timestamp,
    /// The former item. Its rank is the time of the death.
    pub item: ReadyRow,
    /// `nacked`, `lease ended`, `dead-lettered` or `expired while failing`.
    pub cause: String,
    /// The text of the last nack. May be empty.
    pub last_error: String,
    /// Stored form of its attributes.
    pub packed: Vec<u8>,
}

/// Find of a sweep: a row of `schedule` or `expiry` with its item, or a dead letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueRow {
    /// The row's time.
    pub at: Timestamp,
    /// The item.
    pub seq: Seq,
    /// The item's topic.
    pub topic: TopicId,
    /// The item, or the dead letter.
    pub item: DueItem,
}

/// The item or the dead letter of a sweep's row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DueItem {
    /// An item in state ready, without its body.
    Ready(ReadyRow),
    /// An item in state scheduled, without its body.
    Scheduled(ReadyRow),
    /// A dead letter.
    DeadLetter {
        /// The topic. Nobody else may know: it may be dormant.
        name: TopicName,
        /// When it became one.
        died_at: Timestamp,
    },
}

impl DueItem {
    /// Tells whether the stored form of the item can't be read.
    pub const fn is_unreadable(&self) -> bool {
        match self {
            Self::Ready(item) | Self::Scheduled(item) => item.unreadable,
            Self::DeadLetter { .. } => false,
        }
    }
}

/// The stored answer to a dedupe key or request id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DedupeHit {
    /// The hash that was asked for.
    pub hash: [u8; 16],
    /// When it was stored.
    pub at: Timestamp,
    /// The first answer, opaque to the store.
    pub answer: Vec<u8>,
}

/// Contents that are left in a shard that is to be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Remains {
    /// Items that are not delivered for good.
    pub items: u64,
    /// Dead letters.
    pub dead_letters: u64,
    /// When the last of them is deleted. The greatest time: never.
    pub dead_letters_until: Option<Timestamp>,
    /// When the last scheduled item is due.
    pub last_due: Option<Timestamp>,
    /// When the last dedupe key or request id was stored, of those that are still there.
    pub last_key: Option<Timestamp>,
}

/// State that a new owner loads before it serves.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShardSnapshot {
    /// Every topic that is not dormant, with its counts as of the last batch. A dormant topic has dead
    /// letters, no items, and no deltas.
    pub topics: Vec<TopicRow>,
    /// Dead letters of all dormant topics.
    pub dormant_dead: i64,
    /// Tallies of their items that [`Reader::tallies`] does not read. In the order of the topics.
    ///
    /// [`Reader::tallies`]: crate::Reader::tallies
    pub tallies: Vec<(TopicId, TopicTally)>,
    /// Topics that have deltas beyond the counts of their own rows.
    pub unfolded: Vec<TopicId>,
    /// No batch before this one has a row of `count_delta`.
    pub deltas_from: u64,
    /// Every lease row with open deliveries.
    pub leases: Vec<LeaseRow>,
    /// Where each sweep continues. A sweep without a checkpoint starts at [`Timestamp::MIN`].
    pub checkpoints: Vec<Checkpoint>,
    /// The generations of the dedupe table, oldest first. A generation's number is the second, since the Unix
    /// epoch, from which on it stores keys.
    pub generations: Vec<u64>,
    /// The shard's parts of operations, those that have ended included.
    pub operations: Vec<OperationRow>,
    /// Operations that this program can't read: a later one wrote them.
    pub unreadable_operations: Vec<OperationId>,
}

/// Which shard a schema is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShardIdentity {
    /// Its number in the configuration.
    pub shard: ShardId,
    /// The queue that it is a part of.
    pub cluster: ClusterId,
}

impl fmt::Display for ShardIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "shard {} of cluster {}", self.shard, self.cluster)
    }
}

/// Effects of a server's settings on its commits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// Product and version, as in `MariaDB 10.11.14`.
    pub server: String,
    /// Settings that may lose an acknowledged commit, one sentence each. Empty if commits are durable.
    pub not_durable: Vec<String>,
    /// Settings that make commits slower, or replicas less safe, one sentence each.
    pub warnings: Vec<String>,
    /// The most bytes that one batch may carry.
    pub batch_bytes: usize,
    /// The queue that the shard is a part of.
    pub cluster: ClusterId,
}

impl Settings {
    /// Returns the facts that operators should know: what may lose a commit, then the warnings.
    pub fn concerns(&self) -> Vec<String> {
        self.not_durable.iter().chain(&self.warnings).cloned().collect()
    }
}
