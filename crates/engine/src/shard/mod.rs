//! One shard's whole memory, and everything that may change it.
//!
//! [`OwnedShard`] is what a node knows of a shard that it owns: to have one is to own the shard. It is as of
//! the last resolved batch; what the batch in flight will change is in [`in_flight::InFlight`] until that is
//! resolved. Its parts are private to this folder. It knows no other shard, no caller and no connection, and
//! takes time as an argument.

mod abandoned;
mod batch;
mod budget;
mod change;
mod changes;
mod check;
mod company;
mod counts;
mod dedupe;
mod dedupe_keys;
mod disk_room;
mod dormant_topics;
mod evict;
pub(crate) mod fair_queue;
mod forgotten;
mod forgotten_rows;
mod generations;
pub(crate) mod image;
pub(crate) mod in_flight;
mod lease_ends;
mod leases;
mod load_tallies;
mod loaded_topics;
mod locate;
mod locates;
mod lost_topics;
mod missing;
mod next_wake;
mod open_operations;
pub(crate) mod operate;
mod operation_part;
mod operation_walk;
mod operations;
mod overdue;
pub(crate) mod prefetch;
mod prefetches;
mod queues;
pub(crate) mod rates;
pub(crate) mod ready;
mod reserve;
mod row_costs;
mod sharing;
mod spans;
mod status;
mod steps;
mod sweep;
mod sweeper;
mod tally_load;
mod tenants;
mod tenure;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod topic_state;
mod topics;
mod vanished;
mod walk;
mod walk_position;
pub(crate) mod work;

use std::{collections::BTreeMap, sync::Arc};

use forebay_store::{Fence, LeaseEntry};
use forebay_types::{
    Incarnation, Monotonic, Namespace, Receipt, Seq, ShardId, Timestamp, TopicId, TopicName,
};
use rustc_hash::FxHashSet;

pub(crate) use self::{
    abandoned::{Abandoned, LostWork},
    batch::{
        BuildContext, Built,
        apply::{Committed, TIMEOUT_GRACE_MAX, TIMEOUT_GRACE_MIN},
        undo::Undone,
    },
    dedupe_keys::Duplicate,
    generations::GenerationChange,
    lost_topics::LostTopics,
    overdue::{Caller, Waiting},
    status::TopicTotals,
    topics::NamedTopic,
};
use self::{
    budget::Budget, changes::Changes, company::Company, dedupe_keys::DedupeKeys, disk_room::DiskRoom,
    fair_queue::FairQueue, generations::Generations, image::ShardImage, in_flight::InFlight, leases::Leases,
    locates::Locates, operations::Operations, prefetches::Prefetches, row_costs::RowCosts, spans::Spans,
    sweeper::Sweeps, tenants::Tenants, tenure::Tenure, topics::TopicTable, vanished::Vanished,
};
use crate::{
    api::Settings,
    clock::{Moment, ShardTime},
};
use work::{NextRecord, Restore, SettleRequest, ShardEnqueue, ShardLease};

/// A shard that this node owns.
pub(crate) struct OwnedShard {
    /// Its number.
    id: ShardId,
    /// How the engine works.
    settings: Arc<Settings>,
    /// Bytes of ready index and cached bodies that it may hold.
    index_budget: usize,
    /// Windows are still to be cut.
    evicts_on: bool,
    /// The fence, and how long it may be trusted.
    tenure: Tenure,
    /// Its time, which is never behind the fence's.
    time: ShardTime,
    /// Steps of its time.
    spans: Spans,
    /// Its topics, with their counts and windows.
    topics: TopicTable,
    /// Its open deliveries.
    leases: Leases,
    /// Items that have left their windows, on their way to a lease.
    reserved: FxHashSet<Seq>,
    /// Items that each tenant has leased and reserved.
    tenants: Tenants,

    /// Deliveries to be ended or extended.
    settles: FairQueue<SettleRequest>,
    /// Reserved items to be leased.
    leasing: FairQueue<ShardLease>,
    /// Reserved items whose bodies are being read, by read.
    awaiting_bodies: BTreeMap<u64, ShardLease>,
    /// Items to be stored.
    enqueues: FairQueue<ShardEnqueue>,
    /// At-most-once items that nobody received, to be inserted again.
    restores: FairQueue<Restore>,
    /// Dedupe keys of what waits.
    keys: DedupeKeys,
    /// Bytes of enqueues that wait.
    budget: Budget,
    /// The sets of shards as they are to be recorded, by a batch of their own.
    next_record: Option<NextRecord>,
    /// The generations of the dedupe table.
    generations: Generations,
    /// The sweeps, and the page that waits.
    sweeps: Sweeps,
    /// Its parts of operations, and the page that waits.
    operations: Operations,
    /// Changes of single items.
    changes: Changes,
    /// Reads of windows.
    prefetches: Prefetches,

    /// The batch on its way to the store.
    in_flight: Option<InFlight>,
    /// The cost of calls with a request id beyond the share of enqueues.
    long_calls_owe: usize,
    /// The next batch is an empty one that shows whether the store commits.
    probe: bool,
    /// The time that rows take.
    row_costs: RowCosts,
    /// Whether tenants share the batches.
    company: Company,
    /// Since when batches have been tried of which none was committed.
    stalled_since: Option<Monotonic>,
    /// The next batch has at most so many rows, because a row of the last one can't be stored.
    rows_max: Option<usize>,
    /// Leases that ended without an ack are left alone until then, so that acks on their way come first.
    timeouts_after: Monotonic,
    /// Items of the ready index that were not in the store.
    vanished: Vanished,
    /// Settlements whose deliveries are over.
    locates: Locates,
    /// The room on the disk.
    disk: DiskRoom,
    /// Batches do no upkeep before: the database refused it.
    upkeep_after: Monotonic,
    /// The sets of shards are not recorded before.
    topology_after: Monotonic,
}

/// The result of a take-over.
pub(crate) struct Loaded {
    /// The fence as the take-over left it.
    pub fence: Fence,
    /// The shard's memory.
    pub image: ShardImage,
    /// The most bytes that one batch may carry.
    pub batch_bytes: usize,
    /// When the take-over's call began.
    pub began: Monotonic,
    /// Leases are not timed out before.
    pub timeouts_after: Monotonic,
    /// The sets of shards to be recorded, if they are not.
    pub next_record: Option<NextRecord>,
}

impl OwnedShard {
    /// A shard that was just taken over.
    pub fn new(id: ShardId, settings: Arc<Settings>, loaded: Loaded, at: Monotonic) -> Self {
        let Loaded { fence, image, batch_bytes, began, timeouts_after, next_record } = loaded;
        let ShardImage { topics, leases, tenants, prefetches, checkpoints, generations, operations } = image;
        let checkpoint = |sweep| {
            let stored = checkpoints.iter().find(|stored| stored.sweep == sweep);
            stored.map_or(Timestamp::MIN, |stored| stored.at)
        };
        let sweeps = Sweeps::new(checkpoint);
        Self {
            id,
            tenure: Tenure::new(&fence, &settings, began, batch_bytes),
            index_budget: settings.index_bytes,
            settings,
            evicts_on: false,
            time: ShardTime::new(fence.marks.time, at),
            spans: Spans::default(),
            topics,
            leases,
            reserved: FxHashSet::default(),
            tenants,
            settles: FairQueue::default(),
            leasing: FairQueue::default(),
            awaiting_bodies: BTreeMap::new(),
            enqueues: FairQueue::default(),
            restores: FairQueue::default(),
            keys: DedupeKeys::default(),
            budget: Budget::default(),
            next_record,
            generations: Generations::new(generations),
            sweeps,
            operations,
            changes: Changes::default(),
            prefetches,
            in_flight: None,
            long_calls_owe: 0,
            probe: false,
            row_costs: RowCosts::default(),
            company: Company::default(),
            stalled_since: None,
            rows_max: None,
            timeouts_after,
            vanished: Vanished::default(),
            locates: Locates::default(),
            disk: DiskRoom::default(),
            upkeep_after: Monotonic::default(),
            topology_after: Monotonic::default(),
        }
    }

    /// Ranks up to this one are passed already, far ahead of node time: this shard's ranks begin above it.
    pub fn set_rank_floor(&mut self, rank: i64) {
        self.tenure.rank_floor = rank;
    }

    /// The shard's moment, given the node's.
    pub fn moment(&mut self, node: Moment) -> Moment {
        self.time.moment(node)
    }

    /// Sets how many bytes of ready index and cached bodies it may hold from now on.
    pub fn set_index_budget(&mut self, bytes: usize) {
        self.index_budget = bytes;
    }

    /// Whether it is this owner's.
    pub fn is_tenure_of(&self, epoch: u64, incarnation: Incarnation) -> bool {
        (self.tenure.epoch, self.tenure.incarnation) == (epoch, incarnation)
    }

    /// The shard is about to be released: from now on another node may own it.
    pub fn resign(&mut self) {
        self.tenure.trust.resign();
    }

    /// The next batch is to show whether the store commits, and nothing else: no caller waits for it.
    pub fn want_probe(&mut self) {
        self.probe = true;
    }

    /// Whether no other node can own the shard. Answers that write nothing are given only then.
    pub fn is_trusted(&self, at: Monotonic) -> bool {
        self.tenure.trust.holds(at)
    }

    /// Whether an item is out in a delivery.
    pub fn is_leased(&self, seq: Seq) -> bool {
        self.leases.get(seq).is_some()
    }

    /// Whether an item of a tenant is out in a delivery.
    pub fn is_leased_in(&self, namespace: &Namespace, seq: Seq) -> bool {
        self.leases.get(seq).is_some_and(|lease| self.namespace_of(lease.topic) == *namespace)
    }

    /// Whether an item is leased, or on its way to a lease.
    pub fn is_out(&self, seq: Seq) -> bool {
        self.is_leased(seq) || self.reserved.contains(&seq)
    }

    /// The open delivery of an item.
    pub fn lease_of(&self, seq: Seq) -> Option<LeaseEntry> {
        self.leases.find(seq).map(|found| self.leases.as_of_now(found))
    }

    /// Open deliveries and their ends, by these, behind one of them.
    pub fn leases_behind(&self, after: (Timestamp, Seq)) -> impl Iterator<Item = (Timestamp, &LeaseEntry)> {
        self.leases.behind(after)
    }

    /// Whether the delivery that a receipt names is open.
    pub fn is_open(&self, receipt: &Receipt) -> bool {
        self.leases.get(receipt.item.seq).is_some_and(|lease| lease.nonce == receipt.nonce)
    }

    /// Names the topics whose head or counts may have changed since the last call.
    pub fn drain_changed(&mut self, each: impl FnMut(&TopicName)) {
        self.topics.drain_changed(each);
    }

    /// An item changed: scans and reads under way may show its past.
    fn invalidate(&mut self, topic: TopicId, seq: Seq) {
        self.spans.left(seq);
        self.sweeps.invalidate(seq);
        self.operations.invalidate(seq);
        self.changes.invalidate(seq);
        self.topics.invalidate(topic, seq);
    }
}
