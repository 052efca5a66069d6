//! A batch: everything that one transaction changes in a shard.

use forebay_types::{Body, DeliveryPolicy, Key, Seq, State, Timestamp, TopicId};

use crate::{HighWaterMarks, LeaseChange, LeaseEntry, ShardTopology, Sweep, TopicCounts, TopicRow};

/// What one transaction changes. It is applied whole or not at all; its last statement moves the fence
/// from `number - 1` to `number`.
///
/// The fields are applied in the order in which they stand here.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Batch {
    /// One more than the last committed batch's.
    pub number: u64,
    /// The highest values given out, this batch included.
    pub marks: Option<HighWaterMarks>,
    /// Topics that have their first item in this batch.
    pub new_topics: Vec<TopicRow>,
    /// Items that are new, or come back after an at-most-once delivery that could not be handed over.
    pub inserts: Vec<ItemRow>,
    /// The deliveries that begin. They make up the row of the lease log that has this batch's number.
    pub leases: Vec<LeaseEntry>,
    /// Items that became due: state scheduled → ready, their `schedule` row goes.
    pub promotes: Vec<(Timestamp, Seq)>,
    /// Items that go back after a delivery.
    pub requeues: Vec<Requeue>,
    /// Items that go to the dead letters: copied there, then removed.
    pub dead_letters: Vec<DeadLetter>,
    /// Items that are removed.
    pub deletes: Vec<Seq>,
    /// `schedule` rows that go with items removed while they waited for their time.
    pub schedule_deletes: Vec<(Timestamp, Seq)>,
    /// `expiry` rows that go. One that is gone already is no error: the expiry sweep takes a leased item's row.
    pub expiry_deletes: Vec<(Timestamp, Seq)>,
    /// Lease rows some of whose deliveries ended; a row with nothing open any more goes whole.
    pub lease_changes: Vec<LeaseChange>,
    /// Dedupe keys: generation, hash, answer to repeat. Stored with the marks's time; one that is there already is
    /// replaced (its window was over).
    pub dedupes: Vec<(u64, [u8; 16], Vec<u8>)>,
    /// Topics that go: they hold nothing any more.
    pub drop_topics: Vec<TopicId>,
    /// How the counts change. Kept as one row of `count_delta`.
    pub count_deltas: Vec<(TopicId, TopicCounts)>,
    /// Counts, as of this batch, that are written into the topics' own rows.
    pub count_folds: Vec<(TopicId, TopicCounts)>,
    /// `count_delta` rows of batches before this one go: every topic they name was folded since.
    pub deltas_before: Option<u64>,
    /// The lists of shards, all that are to be remembered: they replace what was recorded.
    pub topology_history: Option<Vec<ShardTopology>>,
    /// Sweeps move on, or back.
    pub checkpoints: Vec<(Sweep, Timestamp)>,
}

/// A new item's row, with its rows in `schedule` and `expiry`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemRow {
    /// Its topic.
    pub topic: TopicId,
    /// Its place in the delivery order. The rank of a scheduled item is its due time, in microseconds.
    pub key: Key,
    /// Ready, or scheduled at the time that its rank tells.
    pub state: State,
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
    /// Deliveries so far: 0 but for an item that comes back.
    pub deliveries: u32,
    /// Failed deliveries so far.
    pub failures: u32,
    /// What it carries.
    pub body: Body,
}

/// An item goes back after a delivery: its row is updated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requeue {
    /// The item.
    pub seq: Seq,
    /// Ready, or scheduled at the time that its rank tells (a `schedule` row is added).
    pub state: State,
    /// Its new rank.
    pub rank: i64,
    /// Deliveries so far.
    pub deliveries: u32,
    /// Failed deliveries so far.
    pub failures: u32,
    /// New metadata, where a nack gave some.
    pub metadata: Option<Vec<u8>>,
}

/// An item goes to the dead letters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// The item.
    pub seq: Seq,
    /// Deliveries so far.
    pub deliveries: u32,
    /// Failed deliveries so far.
    pub failures: u32,
    /// `nacked`, `lease ended` or `dead-lettered`.
    pub reason: String,
    /// What the last nack said; may be empty.
    pub last_error: String,
    /// When it gave up.
    pub died_at: Timestamp,
    /// New metadata, where the nack gave some.
    pub metadata: Option<Vec<u8>>,
}
