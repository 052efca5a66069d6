//! Work that waits for a shard's next batch, and the reads that a shard asks its connections for.

mod change;
mod fair_queue;
mod keys;
mod operation;
mod ready_item;
mod remembered;
mod settle;
mod tallies;

use std::{collections::HashMap, time::Duration};

use forebay_store::{DueRow, ShardTopology, Sweep};
use forebay_types::{
    Body, ItemAttributes, Key, Namespace, Refusal, Timestamp, Topic, TopicId, TopicName, Waits,
};

pub(crate) use self::{
    change::ChangeRequest,
    fair_queue::{FairQueue, Turn, weight},
    keys::{ItemKey, KeyHash, RequestKey, removal},
    operation::{FoundItem, OperationItem, OperationPage, OperationRead, OrderRequest, Place, Walk},
    ready_item::{ITEM_OVERHEAD_BYTES, ReadyItem},
    remembered::{RememberedAnswers, decode as decode_remembered, encode as encode_remembered},
    settle::{DeliveryEnd, SettleKind, SettleRequest},
    tallies::{TalliesAfter, TalliesRequest, TallyRows},
};

/// Bytes of an item on its way to a lease, beside its body.
pub(super) const LEASE_BYTES: usize = 192;

/// How long an at-most-once item is leased for another node, which takes it out of the shard before it hands
/// it out.
const AT_MOST_ONCE_LEASE: Duration = Duration::from_secs(5);

/// Why no more work of a tenant may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    /// The tenant has its share.
    Tenant,
    /// All tenants together have as much as may be.
    All,
}

/// Work that waits for a batch.
pub(crate) trait Work {
    /// The tenant.
    fn namespace(&self) -> &Namespace;
    /// Its cost for the batch, and while it waits.
    fn cost(&self) -> Cost;
}

/// The cost of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Cost {
    /// Rows of a batch.
    pub rows: usize,
    /// Bytes in memory while it waits.
    pub bytes: usize,
}

/// The sets of shards that a shard is to record next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NextRecord {
    /// The present set, and earlier ones.
    pub topology: ShardTopology,
    /// The shard has recorded another one as the present set.
    pub is_change: bool,
}

/// The call, or poll, of what nobody waits for any more.
pub(crate) const NOBODY: u64 = u64::MAX;

/// The member of a call that an answer is for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReplySlot {
    /// The call.
    pub call: u64,
    /// The member's position in the call.
    pub index: usize,
}

/// The items of one enqueue call that go to one shard.
#[derive(Debug)]
pub(crate) struct ShardEnqueue {
    /// The call.
    pub call: u64,
    /// The tenant.
    pub namespace: Namespace,
    /// The call is one unit: never cut, and remembered under this.
    pub request: Option<RequestKey>,
    /// The items.
    pub items: Vec<AdmittedItem>,
}

impl ShardEnqueue {
    /// The keys that are its own: nobody else may hold them.
    pub fn keys(&self) -> Vec<KeyHash> {
        self.hashes(false)
    }

    /// The hashes that name its home shard.
    pub fn homes(&self) -> Vec<KeyHash> {
        let keys = self.items.iter().filter_map(|item| item.dedupe);
        self.request.iter().map(|request| request.hash).chain(keys.map(|key| key.shared)).collect()
    }

    /// The hashes under which it may be remembered. `older`: by the release before, too.
    pub fn hashes(&self, older: bool) -> Vec<KeyHash> {
        let keys = || self.items.iter().filter_map(|item| item.dedupe);
        let own = self.request.iter().map(|request| request.hash).chain(keys().map(|key| key.own));
        own.chain(keys().filter(|_| older).map(|key| key.shared)).collect()
    }

    /// Bytes that it is charged with while it waits.
    pub fn charge(&self) -> usize {
        self.items.iter().map(AdmittedItem::charge).sum()
    }
}

impl Work for ShardEnqueue {
    fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    fn cost(&self) -> Cost {
        Cost { rows: self.items.len(), bytes: self.charge() }
    }
}

/// An item whose shard is chosen, on its way there.
#[derive(Debug)]
pub(crate) struct AdmittedItem {
    /// Its position in the call.
    pub index: usize,
    /// Given at admission, from one counter per node.
    pub rank: i64,
    /// Its topic.
    pub topic: Topic,
    /// Smaller numbers are delivered first.
    pub priority: i32,
    /// Not delivered before this time.
    pub due: Option<Timestamp>,
    /// Its attributes beside its place and its body.
    pub attributes: ItemAttributes,
    /// A second item with this key is not stored.
    pub dedupe: Option<ItemKey>,
    /// The caller named the shard.
    pub pinned: bool,
    /// Its payload, headers and metadata.
    pub body: Body,
    /// It can't be stored, or its topic is paused: its call is answered with this. Where it can't be stored,
    /// that is remembered too.
    pub refused: Option<Refusal>,
}

impl AdmittedItem {
    /// A shard takes it whose time is `now`: its delay and its time to live begin now, by that time.
    pub fn admit(&mut self, now: Timestamp) {
        let before = std::mem::replace(&mut self.attributes.enqueued_at, now);
        let moved = |end: Timestamp| now.plus(end.since(before));
        self.attributes.expires_at = self.attributes.expires_at.map(moved);
        if self.attributes.waits == Waits::Span {
            self.due = self.due.map(moved);
        }
    }

    /// Bytes that it is charged with while it waits.
    pub fn charge(&self) -> usize {
        self.body.bytes() + self.topic.len() + 128
    }

    /// As it is handed out at once. The body is shared with the request that it came in.
    pub fn ready_item(&self) -> ReadyItem {
        let bytes = u32::try_from(self.body.bytes()).unwrap_or(u32::MAX);
        ReadyItem { attributes: self.attributes, bytes, body: Some(self.body.clone()) }
    }

    /// As the ready index keeps it. The body is copied: as it came it may hold on to the whole request's
    /// memory.
    pub fn cached_item(&self) -> ReadyItem {
        let mut item = self.ready_item();
        if let Some(body) = &mut item.body {
            body.payload = bytes::Bytes::copy_from_slice(&body.payload);
            body.metadata = bytes::Bytes::copy_from_slice(&body.metadata);
        }
        item
    }
}

/// The items that one poll takes from one shard. They have left their windows.
#[derive(Debug, Clone)]
pub(crate) struct ShardLease {
    /// The poll.
    pub poll: u64,
    /// The tenant.
    pub namespace: Namespace,
    /// Overrides the items' own lease duration.
    pub lease: Option<Duration>,
    /// The consumer that asks; may be empty.
    pub consumer: String,
    /// They are for another node: at-most-once items are leased until that takes them out of the shard.
    pub is_fetch: bool,
    /// The items.
    pub items: Vec<ReservedItem>,
}

impl ShardLease {
    /// An item leaves the shard with its delivery.
    pub fn consumes(&self, item: &ReadyItem) -> bool {
        item.is_at_most_once() && !self.is_fetch
    }

    /// Some of its items leave the shard with their delivery.
    pub fn has_at_most_once(&self) -> bool {
        self.items.iter().any(|reserved| self.consumes(&reserved.item))
    }

    /// How long the lease of an item lasts.
    pub fn span(&self, item: &ReadyItem) -> Duration {
        match item.is_at_most_once() {
            true => AT_MOST_ONCE_LEASE,
            false => self.lease.unwrap_or(item.attributes.lease()),
        }
    }
}

impl Work for ShardLease {
    fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    fn cost(&self) -> Cost {
        let bytes = self.items.iter().map(|reserved| reserved.item.bytes as usize + LEASE_BYTES);
        Cost { rows: self.items.len(), bytes: bytes.sum() }
    }
}

/// An item that was taken out of its window for a delivery.
#[derive(Debug, Clone)]
pub(crate) struct ReservedItem {
    /// The position of its demand in the poll.
    pub demand: usize,
    /// Its topic's number in this shard.
    pub topic: TopicId,
    /// Its topic.
    pub name: Topic,
    /// Its place in the delivery order.
    pub key: Key,
    /// The item.
    pub item: ReadyItem,
}

/// An at-most-once item that nobody received, to be inserted again.
#[derive(Debug)]
pub(crate) struct Restore {
    /// The tenant.
    pub namespace: Namespace,
    /// The item, and where it belongs.
    pub reserved: ReservedItem,
}

impl Work for Restore {
    fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    fn cost(&self) -> Cost {
        Cost { rows: 1, bytes: self.reserved.item.bytes as usize + LEASE_BYTES }
    }
}

/// A page that a sweep read.
#[derive(Debug)]
pub(crate) struct SweepPage {
    /// The sweep.
    pub sweep: Sweep,
    /// The rows that are due.
    pub rows: Vec<DueRow>,
    /// There may be more rows up to `to`.
    pub full: bool,
    /// How far the scan looked.
    pub to: Timestamp,
}

/// A poll that waits for a topic, and what it would take of it.
pub(crate) struct WaitingPoll {
    /// At most so many items.
    pub max_items: usize,
    /// At most so many bytes of bodies, but at least one item.
    pub max_bytes: usize,
    /// The form of its leases; without items yet.
    pub lease: ShardLease,
}

/// The polls that wait for the topics of a shard's waiting enqueues, first come first.
pub(crate) type WaitingPolls = HashMap<TopicName, Vec<WaitingPoll>>;

/// A read of a topic's next ready items.
pub(crate) struct PrefetchRequest {
    /// The topic.
    pub topic: TopicId,
    /// Read on behind this key.
    pub after: Key,
    /// At most so many items.
    pub limit: usize,
    /// Bodies come along up to so many bytes.
    pub max_bytes: usize,
}

/// A sweep's scan.
pub(crate) struct ScanRequest {
    /// The sweep.
    pub sweep: Sweep,
    /// The first time to look at.
    pub from: Timestamp,
    /// The last time to look at.
    pub to: Timestamp,
    /// At most so many rows.
    pub limit: usize,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shard::tests::{item_due, item_expiring, time};

    #[test]
    fn spans_begin_when_a_shard_takes_the_item_and_a_named_time_stays() {
        let mut item = item_due(500);
        item.attributes.waits = Waits::Span;
        item.attributes.expires_at = item_expiring(900).attributes.expires_at;
        item.admit(time(60_000));
        let AdmittedItem { due, attributes, .. } = item;
        assert_eq!((attributes.enqueued_at, due), (time(60_000), Some(time(60_500))));
        assert_eq!(attributes.expires_at, Some(time(60_900)));
        let mut named = item_due(500);
        named.admit(time(60_000));
        assert_eq!(named.due, Some(time(500)));
    }
}
