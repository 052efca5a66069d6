//! Orders of the event loop to a shard's task, and the task's reports.

use std::{sync::Arc, time::Duration};

use forebay_store::{Batch, DueRow, Fence, ItemLocation, Reader, ReadyRow, ShardTopology, StoreError, Sweep};
use forebay_types::{Body, Monotonic, Seq, Timestamp, TopicId};

use crate::{
    api::{RememberedKey, Tasks},
    shard::{
        image::ShardImage,
        work::{FoundItem, OperationItem, TallyRows},
    },
};

/// A commit that takes longer is slow.
pub(crate) const SLOW_COMMIT: Duration = Duration::from_secs(1);

/// A shard that leaves a renewal, or a look at it, without an answer for so long does not answer.
pub(crate) const SILENT_AFTER: Duration = Duration::from_secs(1);

/// An order of the event loop to a shard's task.
pub(crate) enum ShardOrder {
    /// Commit a batch.
    Commit {
        /// The term for which it was built.
        term: u64,
        /// The batch to commit.
        batch: Box<Batch>,
        /// It must not be cut. If a row can't be stored, the task finds out which.
        atomic: bool,
    },
    /// Create and drop generations of the dedupe table.
    Generations {
        /// The term for which it was asked.
        term: u64,
        /// The generations that exist.
        live: Vec<u64>,
        /// To be created.
        create: Vec<u64>,
        /// To be dropped.
        drop: Vec<u64>,
    },
    /// The node's memory of the shard is wrong: take it over anew.
    TakeAnew {
        /// The term whose memory is wrong.
        term: u64,
    },
    /// The event loop has dropped the shard's memory: give up the batch in flight, for which nobody waits,
    /// and take the shard over anew.
    Dropped {
        /// The term whose memory is gone.
        term: u64,
    },
    /// Give the shard up. Its duty says what comes then.
    Release {
        /// The term in which it is owned.
        term: u64,
        /// The node that shall have it next. Empty: anybody may.
        successor: String,
    },
    /// Give the shard up and end.
    Stop,
}

/// A shard that this node does not own.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    /// Where its owner answers, `host:port`. Empty: that is not known.
    pub owner: String,
    /// That one has shown no sign of life for a whole shard lease.
    pub silent: bool,
    /// The shard is this node's to own, and all is done for that which can be before.
    pub prepared: bool,
}

/// A report of a shard's task.
pub(crate) enum ShardEvent {
    /// Another node owns the shard.
    Waits(Waits),
    /// The shard can't be taken over for now.
    Unreachable(StoreError),
    /// A request to the shard beside its batches has had no answer for [`SILENT_AFTER`]. Reported once.
    Silent,
    /// The shard answered, in a term in which it is not owned.
    Answered,
    /// A renewal failed.
    RenewalFailed(StoreError),
    /// Which sets of shards this one has recorded.
    Observed {
        /// The present one, and earlier ones.
        topology: ShardTopology,
    },
    /// The shard was taken over.
    TakenOver(Box<TakenShard>),
    /// The batch in flight has been in flight for [`SLOW_COMMIT`]. Reported once.
    Slow,
    /// The batch in flight has been so for twice as long. Reported each second from then on.
    Overdue,
    /// The batch in flight is resolved.
    Resolved {
        /// How it ended.
        verdict: Verdict,
        /// How long that took, as the shard's task saw it: the event loop may hear of it later.
        took: Duration,
    },
    /// A statement failed, and is repeated.
    Trouble(String),
    /// A statement found the disk full. What the batches find decides what is held back.
    NoRoom(String),
    /// The shard is lost: another node owns it, or it is taken over anew.
    ClaimLost,
    /// A read found that its server does not hold the shard any more.
    NotPrimary,
    /// Settings of the server were changed: what operators should know of them now.
    Concerns(Vec<String>),
    /// The shard was given up as asked.
    Released,
    /// The task ends, as asked. The shard is given up.
    Stopped,
    /// The claim was renewed.
    Renewed {
        /// When the renewal's call began.
        began: Monotonic,
        /// The server's clock, if it has one of its own.
        server_time: Option<Timestamp>,
    },
    /// A prefetch ended.
    Prefetched {
        /// The topic.
        topic: TopicId,
        /// Names the read.
        read: u64,
        /// The rows that it found.
        rows: Result<Vec<ReadyRow>, StoreError>,
    },
    /// Bodies were read.
    Bodies {
        /// Names the read.
        read: u64,
        /// The bodies that it found.
        bodies: Result<Vec<(Seq, Body)>, StoreError>,
    },
    /// A sweep's scan ended.
    Scanned {
        /// The sweep.
        sweep: Sweep,
        /// Names the read.
        read: u64,
        /// The rows that it found.
        found: Result<ScanResult, StoreError>,
    },
    /// A page for an operation was read.
    OperationRead {
        /// Names the read.
        read: u64,
        /// The items that it found.
        items: Result<Vec<OperationItem>, StoreError>,
    },
    /// Tallies of topics were read.
    TalliesRead {
        /// Names the read.
        read: u64,
        /// The rows that it found.
        rows: Result<TallyRows, StoreError>,
    },
    /// Items that are to be changed were read.
    ChangesRead {
        /// Names the read.
        read: u64,
        /// The items that it found.
        items: Result<Vec<FoundItem>, StoreError>,
    },
    /// Dedupe keys were looked up.
    DedupeHits {
        /// Names the read.
        read: u64,
        /// The keys that it found.
        hits: Result<Vec<RememberedKey>, StoreError>,
    },
    /// Another node was asked for dedupe keys.
    KeysFoundElsewhere {
        /// Names the question.
        read: u64,
        /// The keys that its shard remembers. `None`: it can't say, or does not answer.
        hits: Option<Vec<RememberedKey>>,
    },
    /// Items whose deliveries are over were located.
    ItemsLocated {
        /// Names the read.
        read: u64,
        /// Where they are, in the order in which they were asked for.
        locations: Result<Vec<ItemLocation>, StoreError>,
    },
    /// Generations of the dedupe table were created and dropped.
    Generations {
        /// The generations that exist now.
        live: Vec<u64>,
        /// The error of the change that could not be made.
        error: Option<StoreError>,
    },
}

/// A batch's final outcome.
pub(crate) enum Verdict {
    /// It is on disk.
    Committed {
        /// Its number, or that of the empty batch that confirmed it.
        last: u64,
    },
    /// A row can't be stored. Nothing was committed.
    Unstorable {
        /// The database's message.
        why: String,
        /// Which items, where the batch must not be cut.
        bad: Vec<Seq>,
        /// Its key is there already, which is no fault of its caller.
        duplicate: bool,
    },
    /// The disk is full. Nothing was committed.
    DiskFull,
    /// Another node owns the shard.
    Foreign {
        /// COMMIT was sent, so nobody can tell the outcome.
        sent: bool,
    },
    /// It failed again and again. The shard is taken over anew.
    GivenUp {
        /// The database's message.
        why: String,
        /// COMMIT was sent, so nobody can tell the outcome.
        sent: bool,
    },
    /// It is not committed after a long time, although its server commits for others. The shard is left to
    /// other nodes. Whether COMMIT was sent is not known.
    Stuck,
}

/// The result of a sweep's scan.
pub(crate) struct ScanResult {
    /// Rows that are due.
    pub rows: Vec<DueRow>,
    /// The time of the next row behind the scan. Only asked for where there are no rows.
    pub next: Option<Timestamp>,
}

/// A shard that was taken over.
pub(crate) struct TakenShard {
    /// The fence as the take-over left it.
    pub fence: Fence,
    /// The shard's memory.
    pub image: ShardImage,
    /// Reads it.
    pub reader: Arc<dyn Reader>,
    /// Runs the reads.
    pub tasks: Arc<dyn Tasks>,
    /// The most bytes that one batch may carry.
    pub batch_bytes: usize,
    /// Warnings for operators about the server's settings.
    pub concerns: Vec<String>,
    /// The shard's losses, for operators.
    pub losses: Vec<String>,
    /// When the take-over's call began.
    pub began: Monotonic,
    /// How long the shard may have been without an owner.
    pub outage: Duration,
}
