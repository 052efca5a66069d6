//! The batch on its way to the store, and what it will change in memory once it is committed.

use std::collections::{BTreeMap, BTreeSet};

use forebay_store::{
    Checkpoint, HighWaterMarks, LeaseEntry, NamespaceTally, OperationId, OperationKind, OperationProgress,
    OperationRow, ShardTopology, Sweep, Tally, TopicCounts, TopicRow,
};
use forebay_types::{DeathCause, Key, Monotonic, Namespace, Refusal, Seq, State, Timestamp, TopicId};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{disk_room::Need, row_costs::RowCounts};
use crate::{
    api::{ItemState, OperationItems, Settlement},
    shard::work::{
        ChangeRequest, OperationPage, OrderRequest, ReadyItem, ReservedItem, SettleKind, SettleRequest,
        ShardEnqueue, ShardLease, SweepPage,
    },
};

/// The most repeated settlements that one batch answers.
const REPEATS_MAX: usize = 10_000;

/// A batch on its way, and what it will change in memory.
#[derive(Debug)]
pub(crate) struct InFlight {
    /// Its number.
    pub number: u64,
    /// When it was handed to the shard's task.
    pub sent_at: Monotonic,
    /// How many rows it has.
    pub rows: usize,
    /// Their number by kind.
    pub counts: RowCounts,
    /// How much room on the disk it needs.
    pub need: Need,
    /// The sets of shards that it records.
    pub topology: Option<ShardTopology>,
    /// The highest values given out, this batch included.
    pub marks: HighWaterMarks,
    /// Topics that it creates.
    pub new_topics: Vec<TopicRow>,
    /// Topics that memory forgets, whether their rows are dropped or stay for their dead letters.
    pub dropped: Vec<TopicId>,
    /// Changes to the counts of forgotten topics.
    pub forgotten: ForgottenChange,
    /// How many dead letters of dormant topics it deletes.
    pub dormant_losses: i64,
    /// How many dead letters it deletes.
    pub dead_letter_deletes: u64,
    /// How it changes counts.
    pub deltas: Vec<(TopicId, TopicCounts)>,
    /// The tallies of its items and deliveries.
    pub tallies: Vec<(TopicId, Tally)>,
    /// Topics whose counts it folds into their rows.
    pub folds: Vec<TopicId>,
    /// Up to which batch it deletes the rows of changed counts.
    pub deltas_from: Option<u64>,
    /// Deliveries that it begins.
    pub leases: Vec<LeaseEntry>,
    /// The work that it does, in order.
    pub planned: Vec<PlannedAction>,
    /// The items that it deals with.
    pub claims: Claims,
    /// The sweep's page in it.
    pub page: Option<PlannedPage>,
    /// The operation's page in it.
    pub operation: Option<PlannedOperation>,
    /// Parts of operations that it forgets.
    pub operation_deletes: Vec<OperationId>,
    /// Sweeps whose checkpoint moves back, because a row was added below it.
    pub lowered: Vec<Checkpoint>,
    /// The earliest rows that it adds to the sweeps' tables.
    pub added: EarliestRows,
    /// Items that it schedules anew, and how many steps of the shard's time there were when it was built.
    pub scheduled: (Vec<Seq>, usize),
    /// Items of a sweep's page that are put off instead of being ready.
    pub put_offs: FxHashSet<Seq>,
}

/// The earliest row that a batch adds to the table of each sweep. A dead letter that is kept for longer
/// counts as added.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EarliestRows([Timestamp; Sweep::ALL.len()]);

impl EarliestRows {
    /// Of a batch that adds nothing.
    pub fn nothing() -> Self {
        Self([Timestamp::MAX; Sweep::ALL.len()])
    }

    /// A row is added.
    pub fn add(&mut self, sweep: Sweep, at: Timestamp) {
        let earliest = &mut self.0[sweep as usize];
        *earliest = at.min(*earliest);
    }

    /// The time of the earliest; [`Timestamp::MAX`] if there is none.
    pub fn of(&self, sweep: Sweep) -> Timestamp {
        self.0[sweep as usize]
    }
}

impl InFlight {
    /// It is one call with a request id and nothing else, which must not be cut.
    pub fn is_atomic(&self) -> bool {
        match self.only() {
            Some(PlannedAction::Enqueue { part, .. }) => part.request.is_some() && part.items.len() > 1,
            _ => false,
        }
    }

    /// It does something beside what waits: see `batch/builder.rs::may_do_upkeep`.
    pub fn does_upkeep(&self) -> bool {
        let moves = |planned: &PlannedAction| matches!(planned, PlannedAction::MoveLease(_));
        let rows = self.folds.len() + self.dropped.len() + self.forgotten.rows();
        rows > 0 || self.deltas_from.is_some() || self.topology.is_some() || self.planned.iter().any(moves)
    }

    /// It does upkeep and nothing else.
    pub fn is_upkeep(&self) -> bool {
        let moves = |planned: &PlannedAction| matches!(planned, PlannedAction::MoveLease(_));
        self.page.is_none() && self.operation.is_none() && self.planned.iter().all(moves)
    }

    /// The one thing that the batch does, if there is only one and no sweep's page is with it. A hand-off of
    /// its items does not count.
    pub fn only(&self) -> Option<&PlannedAction> {
        if self.page.is_some() || self.operation.is_some() {
            return None;
        }
        let mut planned =
            self.planned.iter().filter(|planned| !matches!(planned, PlannedAction::HandOff { .. }));
        planned.next().filter(|_| planned.next().is_none())
    }
}

/// One thing that the batch does.
#[derive(Debug)]
pub(crate) enum PlannedAction {
    /// Items are stored.
    Enqueue {
        /// The items.
        part: ShardEnqueue,
        /// The result for each.
        results: Vec<Result<StoredItem, Refusal>>,
    },
    /// Items are leased.
    Lease {
        /// The items.
        part: ShardLease,
        /// The result for each.
        leased: Vec<LeaseOutcome>,
    },
    /// A delivery ends, or continues.
    Settle(Box<PlannedSettle>),
    /// New items of this batch are leased to a poll that waits for them: see `batch/handoff.rs`.
    HandOff {
        /// The items.
        part: ShardLease,
        /// The result for each.
        leased: Vec<LeaseOutcome>,
    },
    /// An at-most-once item that nobody received is inserted again.
    Restore(Box<ReservedItem>),
    /// An open delivery moves to this batch's lease row, because its old row is mostly closed.
    MoveLease(Seq),
    /// The shard's part of an operation begins, or is wished otherwise.
    Order(Box<PlannedOrder>),
    /// A caller changes an item.
    Change(Box<PlannedChange>),
}

impl PlannedAction {
    /// It can't be cut any further.
    pub fn is_unit(&self) -> bool {
        match self {
            Self::Enqueue { part, .. } => part.request.is_some() || part.items.len() == 1,
            Self::Lease { .. }
            | Self::HandOff { .. }
            | Self::Settle(_)
            | Self::Restore(_)
            | Self::MoveLease(_)
            | Self::Order(_)
            | Self::Change(_) => true,
        }
    }
}

/// The items that a batch deals with. A second thing on one of them waits for the next batch, unless it says
/// what the first said.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    /// Where the settlement of an item is in `planned`; `None`: the batch does something else, or a
    /// settlement that says something else waits already.
    by_item: FxHashMap<Seq, Option<u32>>,
    /// Repeated settlements.
    repeats: usize,
}

impl Claims {
    /// Whether the batch deals with the item.
    pub fn contains(&self, seq: Seq) -> bool {
        self.by_item.contains_key(&seq)
    }

    /// The batch deals with the item.
    pub fn insert(&mut self, seq: Seq) {
        self.by_item.insert(seq, None);
    }

    /// The batch settles the item's delivery: the next of `planned` is that.
    pub fn settles(&mut self, seq: Seq, planned: &[PlannedAction]) {
        self.by_item.insert(seq, u32::try_from(planned.len()).ok());
    }

    /// The settlement of a delivery that says the same as this one, if there is room for one more.
    pub fn first_of<'a>(
        &mut self,
        request: &SettleRequest,
        planned: &'a mut [PlannedAction],
    ) -> Option<&'a mut PlannedSettle> {
        let at = self.by_item.get(&request.receipt.item.seq).copied().flatten()?;
        let PlannedAction::Settle(first) = planned.get_mut(at as usize)? else { return None };
        if self.repeats >= REPEATS_MAX || !first.request.is_repeated_by(request) {
            return None;
        }
        self.repeats += 1;
        Some(first)
    }
}

/// The end, or the extension, of a delivery.
#[derive(Debug)]
pub(crate) struct PlannedSettle {
    /// The request.
    pub request: SettleRequest,
    /// Later requests for the same. They get the same answer.
    pub repeats: Vec<SettleRequest>,
    /// The delivery.
    pub lease: LeaseEntry,
    /// The effect on the item.
    pub effect: SettleEffect,
}

impl PlannedSettle {
    /// All who asked, in order.
    pub fn requests(&self) -> impl DoubleEndedIterator<Item = &SettleRequest> {
        std::iter::once(&self.request).chain(&self.repeats)
    }
}

impl SettleRequest {
    /// Whether the other one is for the same delivery, and says the same: both acks, or both extensions.
    fn is_repeated_by(&self, other: &Self) -> bool {
        let same = matches!(
            (&self.kind, &other.kind),
            (SettleKind::Ack, SettleKind::Ack) | (SettleKind::Extend { .. }, SettleKind::Extend { .. })
        );
        same && self.receipt == other.receipt
    }
}

/// The effect of a settlement on the leased item.
#[derive(Debug)]
pub(crate) enum SettleEffect {
    /// Acked or expired: its row is deleted.
    Deleted,
    /// It becomes a dead letter, for this cause.
    DeadLettered(DeathCause),
    /// It is back in the delivery order.
    Ready(Key, ReadyItem),
    /// It is back once its time has come.
    Scheduled(Settlement),
    /// The delivery continues, with another end.
    Extended(Timestamp),
}

/// Where an enqueued item is stored.
#[derive(Debug, Clone)]
pub(crate) struct StoredItem {
    /// Its topic's number in this shard.
    pub topic: TopicId,
    /// Its place in the delivery order.
    pub key: Key,
    /// Ready, or scheduled.
    pub state: State,
    /// It is leased in the same transaction, to a poll that waited for it.
    pub handed_off: bool,
}

/// The result for an item on its way to a lease; in the order of the poll's items.
#[derive(Debug, Clone)]
pub(crate) enum LeaseOutcome {
    /// A delivery begins.
    Lease {
        /// Its number.
        delivery: u32,
        /// Part of its receipt.
        nonce: u64,
        /// When the lease ends.
        deadline: Timestamp,
    },
    /// Delivered at most once: it has left the shard.
    Consumed,
    /// It expired while it waited.
    Expired,
}

/// An order to the shard's part of an operation.
#[derive(Debug)]
pub(crate) struct PlannedOrder {
    /// The request.
    pub request: OrderRequest,
    /// The part as it is then, or why it is not.
    pub result: Result<OperationRow, Refusal>,
}

/// A change of an item.
#[derive(Debug)]
pub(crate) struct PlannedChange {
    /// The request.
    pub request: ChangeRequest,
    /// The state that is told: the one before the item was cancelled, or after it was updated.
    pub state: ItemState,
    /// The change in memory. `None`: a delivery ends, which is planned beside it.
    pub effect: Option<OperationEffect>,
}

/// An operation's page, as it went into the batch.
#[derive(Debug)]
pub(crate) struct PlannedOperation {
    /// The page.
    pub page: OperationPage,
    /// The kind of the operation.
    pub kind: OperationKind,
    /// The tenant of the items.
    pub namespace: Namespace,
    /// How far it is then.
    pub progress: OperationProgress,
    /// Its items, by what becomes of them.
    pub items: OperationItems,
    /// The changes in memory, beside the ends of deliveries.
    pub effects: Vec<OperationEffect>,
}

/// The change that an operation, or a change of an item, makes in memory.
#[derive(Debug)]
pub(crate) enum OperationEffect {
    /// An item that waited is removed. While the batch is in flight it is in no window, so that nobody takes
    /// it.
    Purged(TopicId, Key, Option<ReadyItem>),
    /// A dead letter is deleted.
    DeadLetterGone(Seq),
    /// A dead letter is an item again.
    Redriven(TopicId, Key, ReadyItem),
    /// An item that waited has other values. While the batch is in flight it is in no window, so that nobody
    /// takes it as it was.
    Updated(Box<UpdatedItem>),
}

/// The change that an update makes in memory.
#[derive(Debug)]
pub(crate) struct UpdatedItem {
    /// The item's topic.
    pub topic: TopicId,
    /// Its place in the delivery order before.
    pub before: Key,
    /// As its window had it.
    pub windowed: Option<ReadyItem>,
    /// Its new place, if it is ready then.
    pub ready: Option<(Key, ReadyItem)>,
}

/// A sweep's page, as it went into the batch.
#[derive(Debug)]
pub(crate) struct PlannedPage {
    /// The page.
    pub page: SweepPage,
    /// Rows that the batch deals with. The others have to be looked at again.
    pub done: Vec<bool>,
    /// Where the sweep continues, as it is stored: no row lies below it.
    pub checkpoint: Timestamp,
    /// Where it continues in memory: below it are only rows that are left alone.
    pub cursor: Timestamp,
}

/// Dead letters of dormant topics that a batch removes, by namespace and topic.
pub(crate) type RemovedDormant = BTreeMap<(Namespace, TopicId), i64>;

/// The changes of a batch to it.
#[derive(Debug, Default)]
pub(crate) struct ForgottenChange {
    /// The rows that it writes.
    pub written: Vec<NamespaceTally>,
    /// Namespaces whose rows it deletes.
    pub deleted: Vec<Namespace>,
    /// Namespaces that count anew with it.
    pub deletions: BTreeSet<Namespace>,
}

impl ForgottenChange {
    /// How many rows it changes.
    pub fn rows(&self) -> usize {
        self.written.len() + self.deleted.len()
    }
}
