//! Unit tests of a shard's memory, without a store. What is here brings shards to where a test begins.

mod batch;
mod budget;
mod changes;
pub(in crate::shard) mod check;
mod company;
mod counts;
mod enqueue;
mod expiring;
mod forgotten;
mod handoff;
mod isolate;
mod keys;
mod lease;
mod next_wake;
mod operations;
mod operations_everywhere;
mod operations_failed;
mod operations_of_roots;
mod prefetch;
mod retention;
mod settle;
mod spans;
mod sweep;
mod tallies;
mod topic_settings;
mod undo;
mod updates;
mod ways_out;

use std::{collections::HashMap, sync::Arc, time::Duration};

use forebay_store::{
    Batch, DueItem, DueRow, Fence, HighWaterMarks, ReadyRow, ShardSnapshot, Sweep, TopicCounts, TopicRow,
};
use forebay_types::{
    Body, DeliveryPolicy, Incarnation, ItemAttributes, ItemId, Key, Monotonic, Receipt, Seq, ShardId,
    Timestamp, TopicId, TopicName, Waits,
};
use rand::{SeedableRng, rngs::StdRng};

pub(super) use self::keys::{key, request};
use super::{
    BuildContext, BuiltBatch, CommittedBatch, LoadedShard, OwnedShard,
    commit::in_flight::{LeaseOutcome, PlannedAction, SettleEffect},
    contents::ready::verbs::Fetch,
    image::{ExpectedTopics, ImageBuilder},
    work::{
        AdmittedItem, ITEM_OVERHEAD_BYTES, PrefetchRequest, ReadyItem, ReservedItem, SettleKind,
        SettleRequest, ShardEnqueue, ShardLease, TalliesAfter, TallyRows, WaitingPolls,
    },
};
use crate::{
    api::{NackAction, Settings, SettingsTable},
    clock::Moment,
};

/// The shard of all tests.
pub(super) const SHARD: ShardId = ShardId(1);
/// The first topic of a shard, which is `t` where a test names no other.
pub(crate) const T: TopicId = TopicId(1);
/// Civil time when a test begins, in microseconds.
const START: i64 = 1_700_000_000_000_000;

/// Civil time so many milliseconds after the test began.
pub(super) fn time(ms: u64) -> Timestamp {
    Timestamp::from_micros(START).plus(Duration::from_millis(ms))
}

/// The monotonic clock at the same point.
pub(super) fn at(ms: u64) -> Monotonic {
    Monotonic::from_start(Duration::from_millis(ms))
}

/// Both.
pub(super) fn moment(ms: u64) -> Moment {
    Moment { now: time(ms), at: at(ms) }
}

/// An empty shard.
pub(crate) fn shard() -> OwnedShard {
    shard_with(|_| {})
}

/// An empty shard with other settings.
pub(super) fn shard_with(change: impl FnOnce(&mut Settings)) -> OwnedShard {
    let mut settings = Settings::default();
    change(&mut settings);
    loaded(settings, ShardSnapshot::default())
}

/// A shard that was taken over when the test began.
pub(super) fn loaded(settings: Settings, snapshot: ShardSnapshot) -> OwnedShard {
    let topic = snapshot.topics.last().map_or(TopicId(0), |row| row.id);
    let seq = if snapshot.topics.is_empty() { Seq(0) } else { Seq(10_000) };
    let marks = HighWaterMarks { seq, topic, rank: 0, time: time(0) };
    let mut image = ImageBuilder::new(snapshot, ExpectedTopics::default(), at(0));
    while image.step() {}
    let loaded = LoadedShard {
        fence: Fence { epoch: 3, incarnation: Incarnation([0; 16]), batch: 0, marks },
        image: image.finish(),
        batch_bytes: 1 << 20,
        began: at(0),
        timeouts_after: at(0),
        next_record: None,
    };
    let mut shard = OwnedShard::new(SHARD, Arc::new(settings), loaded, at(0));
    shard.set_index_budget(1 << 20);
    // The rows have no tallies.
    while let Some(request) = shard.begin_tallies(0, at(0)) {
        let rows = match request.after {
            TalliesAfter::Topic(_) => TallyRows::Topics(Vec::new()),
            TalliesAfter::Namespace(_) => TallyRows::Namespaces(Vec::new()),
        };
        shard.tallies_read(0, Some(rows), at(0));
    }
    shard
}

/// A shard that was taken over with so many topics, each of which has `ready` items in the store.
pub(super) fn shard_with_topics(topics: u32, ready: i64) -> OwnedShard {
    let row = |id| TopicRow {
        id: TopicId(id),
        name: TopicName::new("ns", format!("t{id}")),
        counts: TopicCounts { ready, ..TopicCounts::default() },
    };
    let unfolded = (1..=topics).map(TopicId).collect();
    let topics = (1..=topics).map(row).collect();
    loaded(Settings::default(), ShardSnapshot { topics, unfolded, ..ShardSnapshot::default() })
}

pub(super) fn attributes() -> ItemAttributes {
    ItemAttributes {
        enqueued_at: time(0),
        expires_at: None,
        lease_ms: 1_000,
        max_attempts: 3,
        policy: DeliveryPolicy::AtLeastOnce,
        deliveries: 0,
        failures: 0,
        redrives: 0,
        updated_by: 0,
        waits: Waits::Unsaid,
    }
}

/// A new item of topic `t`.
pub(super) fn item(priority: i32) -> AdmittedItem {
    AdmittedItem {
        index: 0,
        rank: 0,
        topic: "t".into(),
        priority,
        due: None,
        attributes: attributes(),
        dedupe: None,
        pinned: false,
        body: Body::default(),
        refused: None,
    }
}

/// A new item of another topic.
pub(super) fn item_of(topic: &str, priority: i32) -> AdmittedItem {
    AdmittedItem { topic: topic.into(), ..item(priority) }
}

/// A new item that waits for its time.
pub(super) fn item_due(ms: u64) -> AdmittedItem {
    AdmittedItem { due: Some(time(ms)), ..item(0) }
}

/// A new item that expires.
pub(super) fn item_expiring(ms: u64) -> AdmittedItem {
    AdmittedItem { attributes: ItemAttributes { expires_at: Some(time(ms)), ..attributes() }, ..item(0) }
}

/// Takes an at-most-once item that nobody receives, so that it is to be inserted again.
pub(super) fn restore_one(shard: &mut OwnedShard) {
    store(shard, 0, vec![item_once()]);
    let taken = reserve(shard, T, 1);
    shard.lease(share(1, taken.clone()), 0);
    run(shard, 0);
    shard.restore(taken[0].clone());
}

/// A new item that is delivered at most once.
pub(super) fn item_once() -> AdmittedItem {
    let policy = DeliveryPolicy::AtMostOnce;
    AdmittedItem { attributes: ItemAttributes { policy, ..attributes() }, ..item(0) }
}

/// A new item with a body of so many bytes.
pub(super) fn item_of_bytes(bytes: usize) -> AdmittedItem {
    AdmittedItem { body: Body { payload: vec![0; bytes].into(), ..Body::default() }, ..item(0) }
}

/// New items, as many as `count`.
pub(super) fn items(count: usize) -> Vec<AdmittedItem> {
    (0..count).map(|_| item(0)).collect()
}

/// A call's items, ranked as they come.
pub(super) fn part(call: u64, items: Vec<AdmittedItem>) -> ShardEnqueue {
    let ranked = items.into_iter().enumerate().map(|(index, item)| {
        let rank = START - 1_000_000_000 + i64::try_from(call * 1_000).unwrap() + index as i64;
        AdmittedItem { index, rank, ..item }
    });
    ShardEnqueue { call, namespace: "ns".into(), request: None, items: ranked.collect() }
}

/// Items wait, with their charge and their keys, as a call leaves them.
pub(super) fn put(shard: &mut OwnedShard, part: ShardEnqueue) {
    shard.charge(&part.namespace, part.charge());
    shard.hold_keys(&part.keys());
    shard.enqueue(part);
}

/// Builds a batch while nobody waits for items.
pub(super) fn build(shard: &mut OwnedShard, ms: u64) -> BuiltBatch {
    build_with(shard, ms, &|_| 0, HashMap::new())
}

/// Builds a batch.
pub(super) fn build_with(
    shard: &mut OwnedShard,
    ms: u64,
    topics_of: &dyn Fn(&str) -> usize,
    waiting: WaitingPolls,
) -> BuiltBatch {
    let rng = &mut StdRng::seed_from_u64(ms);
    shard.build(BuildContext {
        moment: moment(ms),
        rng,
        topics_of,
        topics_left: usize::MAX,
        waiting,
        set: &SettingsTable::default(),
    })
}

/// The batch in flight is committed.
pub(super) fn commit(shard: &mut OwnedShard, ms: u64) -> CommittedBatch {
    let batch = shard.commit.in_flight.as_ref().unwrap();
    let took = at(ms).since(batch.sent_at);
    shard.committed(batch.number, at(ms), took).unwrap()
}

/// Builds a batch and commits it.
pub(super) fn run(shard: &mut OwnedShard, ms: u64) -> (Batch, CommittedBatch) {
    let batch = build(shard, ms).batch.unwrap();
    (batch, commit(shard, ms))
}

/// Stores a call's items. Returns their places in the delivery order.
pub(super) fn store(shard: &mut OwnedShard, ms: u64, items: Vec<AdmittedItem>) -> Vec<Key> {
    put(shard, part(ms, items));
    keys(&run(shard, ms).1)
}

/// Where what was enqueued is stored.
pub(super) fn keys(committed: &CommittedBatch) -> Vec<Key> {
    let results = committed.done.iter().flat_map(|planned| match planned {
        PlannedAction::Enqueue { results, .. } => results.as_slice(),
        _ => &[],
    });
    results.map(|result| result.as_ref().unwrap().key).collect()
}

/// Reserves the best items of a topic.
pub(super) fn reserve(shard: &mut OwnedShard, topic: TopicId, count: usize) -> Vec<ReservedItem> {
    let mut items = Vec::new();
    for _ in 0..count {
        let (key, item) = shard.reserve(topic).unwrap();
        items.push(ReservedItem { demand: 0, topic, name: "t".into(), key, item });
    }
    items
}

/// The lease of a poll.
pub(super) fn share(poll: u64, items: Vec<ReservedItem>) -> ShardLease {
    ShardLease {
        poll,
        namespace: "ns".into(),
        lease: None,
        consumer: "consumer".into(),
        is_fetch: false,
        items,
    }
}

/// The best items wait for a lease.
pub(super) fn ask_lease(shard: &mut OwnedShard, count: usize) {
    let part = share(1, reserve(shard, T, count));
    assert!(shard.lease(part, 0).is_empty(), "the bodies are there");
}

/// Leases the best items of the first topic. Returns the receipts.
pub(super) fn lease(shard: &mut OwnedShard, ms: u64, count: usize) -> Vec<Receipt> {
    ask_lease(shard, count);
    receipts(&run(shard, ms).1)
}

/// Stores items and leases them.
pub(super) fn store_leased(shard: &mut OwnedShard, ms: u64, items: Vec<AdmittedItem>) -> Vec<Receipt> {
    let count = items.len();
    store(shard, ms, items);
    lease(shard, ms, count)
}

/// The deliveries that a batch began.
pub(super) fn receipts(committed: &CommittedBatch) -> Vec<Receipt> {
    let mut receipts = Vec::new();
    for planned in &committed.done {
        let (PlannedAction::Lease { part, leased } | PlannedAction::HandOff { part, leased }) = planned
        else {
            continue;
        };
        for (reserved, leased) in part.items.iter().zip(leased) {
            if let LeaseOutcome::Lease { delivery, nonce, .. } = *leased {
                receipts.push(Receipt { item: item_id(reserved.key.seq), delivery, nonce });
            }
        }
    }
    receipts
}

pub(super) fn item_id(seq: Seq) -> ItemId {
    ItemId { shard: SHARD, seq }
}

/// A delivery is to be ended or extended.
pub(super) fn settle(shard: &mut OwnedShard, receipt: Receipt, kind: SettleKind) {
    shard.settle(SettleRequest { namespace: "ns".into(), receipt, kind, slot: None });
}

pub(super) fn ack(shard: &mut OwnedShard, receipt: Receipt) {
    settle(shard, receipt, SettleKind::Ack);
}

pub(super) fn nack(shard: &mut OwnedShard, receipt: Receipt, action: NackAction) {
    settle(shard, receipt, SettleKind::Nack { action, metadata: None, reason: "why".into() });
}

/// The effects on the settled items.
pub(super) fn effects(committed: &CommittedBatch) -> Vec<&SettleEffect> {
    let done = committed.done.iter();
    done.filter_map(|it| if let PlannedAction::Settle(it) = it { Some(&it.effect) } else { None }).collect()
}

/// A topic's counts: ready, scheduled, dead.
pub(super) fn counts(shard: &OwnedShard, topic: TopicId) -> (i64, i64, i64) {
    let counts = shard.contents.topics.get(topic).unwrap().counts;
    (counts.ready, counts.scheduled, counts.dead)
}

/// How many items a topic's window holds.
pub(super) fn window_len(shard: &OwnedShard, topic: TopicId) -> usize {
    shard.contents.topics.get(topic).unwrap().window().len()
}

/// The best item of the first topic's window.
pub(super) fn head(shard: &OwnedShard) -> Option<(Key, &ReadyItem)> {
    shard.contents.topics.get(T).unwrap().window().first()
}

/// An item as a read of the window finds it.
pub(super) fn ready_row(seq: u64) -> ReadyRow {
    let key = Key { priority: 0, rank: START + i64::try_from(seq).unwrap(), seq: Seq(seq) };
    ReadyRow { key, attributes: attributes(), bytes: 0, body: None, unreadable: false }
}

/// Begins a read of a window that ran empty.
pub(super) fn fetch(shard: &mut OwnedShard, topic: TopicId, read: u64) -> PrefetchRequest {
    match shard.fetch_next(topic, read, 1) {
        Fetch::Begin(request) => request,
        Fetch::Complete | Fetch::UnderWay => panic!("a read is to be begun"),
    }
}

/// Both sweeps look once, and find nothing now or later.
pub(super) fn sweep_all(shard: &mut OwnedShard, ms: u64) {
    for _ in Sweep::ALL {
        let scan = shard.begin_scan(0, moment(ms)).unwrap();
        shard.scanned(scan.sweep, 0, Vec::new(), None);
    }
}

/// A scheduled item that is due.
pub(super) fn due_row(at: Timestamp, key: Key) -> DueRow {
    let item = DueItem::Scheduled(ReadyRow { key, ..ready_row(1) });
    DueRow { at, seq: key.seq, topic: T, item }
}

/// Begins a scan, which has to be the one of this sweep.
pub(super) fn scan(shard: &mut OwnedShard, sweep: Sweep, read: u64, ms: u64) -> Timestamp {
    let scan = shard.begin_scan(read, moment(ms)).unwrap();
    assert_eq!(scan.sweep, sweep);
    scan.to
}

/// Stores so many items, for tests of what is above a shard.
pub(crate) fn store_some(shard: &mut OwnedShard, count: usize) {
    store(shard, 0, items(count));
}

/// The window of the first topic is not in memory any more.
pub(crate) fn forget_window(shard: &mut OwnedShard) {
    shard.contents.topics.with_window(T, |window| *window = super::contents::ready::window::Window::unread());
}
