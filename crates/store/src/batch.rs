//! A batch: everything that one transaction changes in a shard.

use std::ops::Range;

use forebay_types::{Body, Failure, Headers, ItemAttributes, Key, Namespace, Seq, State, Timestamp, TopicId};

use crate::{
    operation::{OperationId, OperationProgress, OperationRow, Redrive},
    rows::{Checkpoint, HighWaterMarks, LeaseChange, LeaseEntry, ShardTopology, TopicCounts, TopicRow},
    tally::{NamespaceTally, Tally, TopicTally},
};

/// Changes of one transaction. They are applied all or not at all. The last statement moves the fence from
/// `number - 1` to `number`.
///
/// The changes are applied in the order of these fields.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Batch {
    /// The number of the last committed batch plus one.
    pub number: u64,
    /// The highest values given out, this batch included.
    pub marks: Option<HighWaterMarks>,
    /// Topics whose first item is in this batch.
    pub new_topics: Vec<TopicRow>,
    /// Items that are new, or that return after an at-most-once delivery nobody received.
    pub inserts: Vec<ItemRow>,
    /// The deliveries that begin. They form the row of the lease log with this batch's number.
    pub leases: Vec<LeaseEntry>,
    /// Scheduled items that become ready. Their `schedule` rows are deleted.
    pub promotes: Vec<DueKey>,
    /// Scheduled items that are due later than was said, because the time has stepped.
    pub put_offs: Vec<PutOff>,
    /// Items that return to their topics after a delivery.
    pub requeues: Vec<Requeue>,
    /// Items that become dead letters: copied to that table, then deleted.
    pub dead_letters: Vec<DeadLetter>,
    /// Dead letters to delete.
    pub dead_letter_deletes: Vec<Seq>,
    /// Dead letters that are kept for longer: their new `expires_at`.
    pub dead_letter_keeps: Vec<(Seq, Timestamp)>,
    /// Items to delete.
    pub deletes: Vec<Seq>,
    /// `schedule` rows of deleted items.
    pub schedule_deletes: Vec<DueKey>,
    /// `expiry` rows to delete. A row that is missing is no error: the expiry sweep deletes the row of a
    /// leased item early.
    pub expiry_deletes: Vec<DueKey>,
    /// Items that an operation deletes.
    pub purges: Vec<Seq>,
    /// Dead letters that an operation deletes.
    pub dead_letter_purges: Vec<Seq>,
    /// Items that a caller cancels, one by one.
    pub cancels: Vec<Seq>,
    /// Dead letters that a caller cancels.
    pub dead_letter_cancels: Vec<Seq>,
    /// Dead letters that an operation makes items again.
    pub redrives: Vec<Redrive>,
    /// Items that wait and get other values.
    pub updates: Vec<UpdatedRow>,
    /// Lease rows some of whose deliveries ended. A row without open deliveries is deleted.
    pub lease_changes: Vec<LeaseChange>,
    /// Dedupe keys and request ids, stored with the time in `marks`. An entry with the same hash is replaced:
    /// its window is over.
    pub dedupes: Vec<DedupeEntry>,
    /// Topics to delete, because they are empty.
    pub drop_topics: Vec<TopicId>,
    /// Topics without items that lose so many dead letters. Nobody counts those in memory, and no
    /// `count_delta` row names the topics: their own rows are changed, and deleted with the last dead letter.
    pub dormant_losses: Vec<(TopicId, i64)>,
    /// Tallies of topics that are forgotten with this batch or before. Replaces the namespaces' rows.
    pub namespace_tallies: Vec<NamespaceTally>,
    /// Namespaces whose forgotten topics count no more.
    pub namespace_tally_deletes: Vec<Namespace>,
    /// Changes of counts, stored as one row of `count_delta`.
    pub count_deltas: Vec<(TopicId, TopicCounts)>,
    /// Changes of the tallies of items and deliveries, stored in the same row, with the time in `marks`.
    pub tallies: Vec<(TopicId, Tally)>,
    /// Counts and tallies as of this batch, written into the topics' own rows. `None`: nothing of the topic
    /// was counted yet.
    pub folds: Vec<(TopicId, TopicCounts, Option<TopicTally>)>,
    /// Deletes the `count_delta` rows of these batches: every topic in them was folded since.
    /// Both ends are given: without a lower one the statement walks over what was deleted long ago, which
    /// stays in the index while an old snapshot is open.
    pub drop_deltas: Option<Range<u64>>,
    /// Replaces the recorded topologies. It holds all that are still needed.
    pub topology_history: Option<ShardTopology>,
    /// New checkpoints of the sweeps. They may move forwards or backwards.
    pub checkpoints: Vec<Checkpoint>,
    /// The shard's parts of operations that begin, or are wished otherwise.
    pub operations: Vec<OperationRow>,
    /// How far parts of operations are as of this batch.
    pub operation_progress: Vec<(OperationId, OperationProgress)>,
    /// Parts of operations to forget.
    pub operation_deletes: Vec<OperationId>,
}

/// A new item's row, with its rows in `schedule` and `expiry`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemRow {
    /// Its topic.
    pub topic: TopicId,
    /// Its position in the delivery order. The rank of a scheduled item is its due time in microseconds.
    pub key: Key,
    /// Ready, or scheduled at the time given by its rank.
    pub state: State,
    /// Its attributes. The deliveries are 0 unless it returns.
    pub attributes: ItemAttributes,
    /// Its payload, metadata and headers.
    pub body: Body,
}

/// A scheduled item that is due later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PutOff {
    /// The item.
    pub seq: Seq,
    /// When it was due.
    pub from: Timestamp,
    /// When it is.
    pub to: Timestamp,
}

/// The primary key of a row in `schedule` or `expiry`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DueKey {
    /// When the item becomes ready or expires.
    pub at: Timestamp,
    /// The item.
    pub seq: Seq,
}

/// An item that returns to its topic after a delivery: its row is updated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requeue {
    /// The item.
    pub seq: Seq,
    /// Ready, or scheduled at the time given by its rank. A scheduled one gets a `schedule` row.
    pub state: State,
    /// Its new rank.
    pub rank: i64,
    /// Deliveries so far.
    pub deliveries: u32,
    /// Failed deliveries so far.
    pub failures: u32,
    /// New metadata, if a nack sent some.
    pub metadata: Option<Vec<u8>>,
    /// How the delivery failed, if it did.
    pub failure: Option<Failure>,
}

/// An item that waits, with other values than before. Its earlier rows in `schedule` and `expiry` are among
/// the batch's deletes, if they change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpdatedRow {
    /// Its new position in the delivery order. The rank of a scheduled item is its due time.
    pub key: Key,
    /// Ready, or scheduled at the time given by its rank.
    pub state: State,
    /// It gets a `schedule` row.
    pub schedules: bool,
    /// Its new metadata. `None`: it keeps what it has.
    pub metadata: Option<Vec<u8>>,
    /// Its attributes, if it gets another expiry, or an operation changes it. `None`: it keeps what it has.
    pub attributes: Option<NewAttributes>,
    /// It gets an `expiry` row.
    pub expires: bool,
    /// An operation changes it. Its mark is in the attributes.
    pub is_operated: bool,
}

/// An item's attributes, with what is in one column with them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAttributes {
    /// The item's attributes.
    pub attributes: ItemAttributes,
    /// Bytes of its payload and its headers.
    pub bytes: u32,
    /// Its headers.
    pub headers: Headers,
}

/// An item that becomes a dead letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// The item.
    pub seq: Seq,
    /// Deliveries so far.
    pub deliveries: u32,
    /// Failed deliveries so far.
    pub failures: u32,
    /// `nacked`, `lease ended`, `dead-lettered` or `expired while failing`.
    pub reason: String,
    /// The error text of the last nack. May be empty.
    pub last_error: String,
    /// When it became a dead letter.
    pub died_at: Timestamp,
    /// When it is deleted. [`Timestamp::MAX`]: never.
    pub expires_at: Timestamp,
    /// New metadata, if the nack sent some.
    pub metadata: Option<Vec<u8>>,
    /// How the last delivery failed.
    pub failure: Failure,
}

/// A dedupe key or request id, with the answer to repeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DedupeEntry {
    /// The generation of the dedupe table that stores it.
    pub generation: u64,
    /// Of a dedupe key or a request id, or of the removal of an item.
    pub hash: [u8; 16],
    /// The answer, opaque to the store. Empty: an item was removed.
    pub answer: Vec<u8>,
}
