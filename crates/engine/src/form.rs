//! Forms a shard's next batch from what waits: settlements first, then leases, then enqueues in turn by
//! namespace, then a page of a sweep. Nothing here changes what the shard is known to hold: the effects are
//! noted in [`InFlight`] and applied in `apply.rs` once the batch is committed.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    time::Duration,
};

use forebay_store::{
    Batch, Checkpoint, DedupeEntry, DueKey, HighWaterMarks, ItemRow, LeaseEntry, Sweep, TopicCounts, TopicRow,
};
use forebay_types::{
    DeliveryPolicy, ItemAttributes, ItemId, Key, Monotonic, Reason, Receipt, Refusal, Seq, ShardId, State,
    Timestamp, TopicId, TopicName,
};
use rand::{RngExt, rngs::StdRng};
use rustc_hash::FxHashSet;

use crate::{
    Settings,
    counts::{FOLDS, fold},
    generations::current_generation,
    meet::Waiters,
    op::{EnqueuePart, LeasePart, Page, Picked, Placed, Settle, SettleKind},
    planted::{Bug, on},
    settle::Effect,
    shard::Owned,
    window::Entry,
};

/// Leases that one batch ends because they ran out.
const LAPSES: usize = 250;
/// What a row costs beside its body.
const ROW_BYTES: usize = 256;

/// A batch on its way, and what it will change in memory.
#[derive(Debug)]
pub(crate) struct InFlight {
    pub number: u64,
    pub sent_at: Monotonic,
    /// It is out for too long; the breaker was told.
    pub slow: bool,
    pub rows: usize,
    pub stamp: HighWaterMarks,
    pub new_topics: Vec<TopicRow>,
    pub dropped: Vec<TopicId>,
    pub deltas: Vec<(TopicId, TopicCounts)>,
    pub folds: Vec<TopicId>,
    pub leases: Vec<LeaseEntry>,
    pub formed: Vec<Formed>,
    pub page: Option<FormedPage>,
    /// Sweeps whose checkpoint goes back, because a row was added below it.
    pub lowered: Vec<(Sweep, Timestamp)>,
    pub schedule_min: Timestamp,
    pub expiry_min: Timestamp,
}

impl InFlight {
    /// It is one call with a request id and nothing else, which must not be cut.
    pub fn is_one_request(&self) -> bool {
        match self.only() {
            Some(Formed::Enqueued { part, .. }) => part.request.is_some() && part.items.len() > 1,
            _ => false,
        }
    }

    /// What the batch does, if it is one thing; who gets it does not count.
    pub fn only(&self) -> Option<&Formed> {
        let mut formed = self.formed.iter().filter(|formed| !matches!(formed, Formed::Met { .. }));
        formed.next().filter(|_| formed.next().is_none())
    }
}

/// One thing that the batch does, to be applied when it is committed, or to be undone.
#[derive(Debug)]
pub(crate) enum Formed {
    Enqueued {
        part: EnqueuePart,
        results: Vec<Result<Stored, Refusal>>,
    },
    Leased {
        part: LeasePart,
        handed: Vec<Leased>,
    },
    Settled(Box<Settlement>),
    /// New items of this batch that go to a poll which waits for them: see `meet.rs`.
    Met {
        part: LeasePart,
        handed: Vec<Leased>,
    },
    Restored(Picked),
    /// An open delivery moves to this batch's lease row, because its old row is mostly closed.
    Moved(Seq),
}

/// The end, or the extension, of a delivery.
#[derive(Debug)]
pub(crate) struct Settlement {
    pub settle: Settle,
    pub lease: LeaseEntry,
    pub effect: Effect,
}

/// Where an enqueued item went.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub topic: TopicId,
    pub key: Key,
    pub state: State,
    /// It is leased in the same transaction, to a poll that waited for it.
    pub met: bool,
}

/// What a leased item was given; in the order of the part's items.
#[derive(Debug, Clone)]
pub(crate) enum Leased {
    Lease {
        delivery: u32,
        nonce: u64,
        deadline: Timestamp,
    },
    /// At most once: it is gone from the shard.
    Taken,
    /// It expired while it waited.
    Expired,
}

/// A sweep's page, as it went into the batch.
#[derive(Debug)]
pub(crate) struct FormedPage {
    pub page: Page,
    /// Rows that the batch deals with; the others have to be looked at again.
    pub done: Vec<bool>,
    pub checkpoint: Timestamp,
}

/// What came out of forming.
#[derive(Default)]
pub(crate) struct Outcome {
    pub batch: Option<Batch>,
    /// Settlements whose delivery is over.
    pub misses: Vec<Settle>,
    /// Polls that wait no more: they get something of this batch.
    pub met: BTreeSet<u64>,
}

/// What forming needs to know beside the shard.
pub(crate) struct Context<'a> {
    pub shard: ShardId,
    pub settings: &'a Settings,
    /// The shard's time.
    pub now: Timestamp,
    pub at: Monotonic,
    pub rng: &'a mut StdRng,
    /// Topics that a namespace has on this node.
    pub topics_of: &'a dyn Fn(&str) -> usize,
}

/// Forms the next batch, if anything waits. The shard has no batch under way.
pub(crate) fn form(owned: &mut Owned, context: &mut Context<'_>, waiters: Waiters) -> Outcome {
    debug_assert!(owned.in_flight.is_none());
    let limit = owned.split.unwrap_or(context.settings.batch_rows);
    let mut former = Former::new(owned, context, limit);
    former.shard_lists();
    former.settles();
    former.lapses();
    former.restores();
    former.leases();
    former.enqueues();
    former.page();
    let met = former.meet(waiters);
    former.compact();
    former.drop_idle_topics();
    Outcome { met, ..former.finish() }
}

pub(crate) struct Former<'a, 'c> {
    pub owned: &'a mut Owned,
    pub context: &'a mut Context<'c>,
    pub batch: Batch,
    limit: usize,
    rows: usize,
    bytes: usize,
    pub busy: FxHashSet<Seq>,
    deltas: BTreeMap<TopicId, TopicCounts>,
    new_topics: HashMap<TopicName, TopicId>,
    last_topic: Option<(TopicName, TopicId)>,
    closing: BTreeMap<u64, Vec<usize>>,
    pub formed: Vec<Formed>,
    pub formed_page: Option<FormedPage>,
    misses: Vec<Settle>,
    stamp: HighWaterMarks,
    schedule_min: Timestamp,
    expiry_min: Timestamp,
}

impl<'a, 'c> Former<'a, 'c> {
    fn new(owned: &'a mut Owned, context: &'a mut Context<'c>, limit: usize) -> Self {
        let stamp = HighWaterMarks { time: owned.stamp.time.max(context.now), ..owned.stamp };
        let batch = Batch { number: owned.batch + 1, ..Batch::default() };
        Self {
            owned,
            context,
            batch,
            limit,
            rows: 0,
            bytes: 0,
            busy: FxHashSet::default(),
            deltas: BTreeMap::new(),
            new_topics: HashMap::new(),
            last_topic: None,
            closing: BTreeMap::new(),
            formed: Vec::new(),
            formed_page: None,
            misses: Vec::new(),
            stamp,
            schedule_min: Timestamp::MAX,
            expiry_min: Timestamp::MAX,
        }
    }

    /// The first batch of an owner with a new list of shards records it.
    fn shard_lists(&mut self) {
        self.batch.topology_history = self.owned.shard_lists.clone();
        self.rows += usize::from(self.batch.topology_history.is_some());
    }

    fn settles(&mut self) {
        let mut deferred = Vec::new();
        while self.rows < self.limit {
            let Some(settle) = self.owned.settles.pop_front() else { break };
            if self.busy.contains(&settle.receipt.item.seq) {
                deferred.push(settle);
            } else {
                self.settle(settle);
            }
        }
        for settle in deferred.into_iter().rev() {
            self.owned.settles.push_front(settle);
        }
    }

    /// Leases that ran out.
    fn lapses(&mut self) {
        if self.context.at < self.owned.lapse_after {
            return;
        }
        let room = LAPSES.min(self.limit.saturating_sub(self.rows));
        let shard = self.context.shard;
        let lapsed: Vec<Settle> = (self.owned.leases.lapsed(self.context.now))
            .filter(|lease| !self.busy.contains(&lease.seq))
            .take(room)
            .map(|lease| Settle {
                receipt: Receipt {
                    item: ItemId { shard, seq: lease.seq },
                    delivery: lease.delivery(),
                    nonce: lease.nonce,
                },
                kind: SettleKind::Lapse,
                slot: None,
            })
            .collect();
        for settle in lapsed {
            self.settle(settle);
        }
    }

    fn settle(&mut self, settle: Settle) {
        let receipt = settle.receipt;
        let lease = self.owned.leases.get(receipt.item.seq);
        let lease = lease.filter(|lease| {
            lease.delivery() == receipt.delivery && lease.nonce == receipt.nonce || on(Bug::StaleReceipt)
        });
        let Some(lease) = lease.cloned() else {
            self.misses.push(settle);
            return;
        };
        let (row, place) = self.owned.leases.place(lease.seq).unwrap_or_default();
        self.closing.entry(row).or_default().push(place);
        self.busy.insert(lease.seq);
        self.rows += 1;
        let effect = self.settle_effect(&settle.kind, &lease);
        self.formed.push(Formed::Settled(Box::new(Settlement { settle, lease, effect })));
    }

    /// At-most-once items that could not be handed over are inserted again.
    fn restores(&mut self) {
        for picked in std::mem::take(&mut self.owned.restores) {
            let Some(body) = picked.entry.body.clone() else { continue };
            self.batch.inserts.push(ItemRow {
                topic: picked.topic,
                key: picked.key,
                state: State::Ready,
                attributes: picked.entry.attributes(),
                body,
            });
            self.expiry_min = self.expiry_min.min(picked.entry.expires_at.unwrap_or(Timestamp::MAX));
            self.busy.insert(picked.key.seq);
            self.count(picked.topic, 1, 0, 0);
            self.rows += 1;
            self.formed.push(Formed::Restored(picked));
        }
    }

    fn leases(&mut self) {
        while self.rows < self.limit {
            let Some(part) = self.owned.lease_parts.pop_front() else { break };
            let mut handed = Vec::with_capacity(part.picked.len());
            for picked in &part.picked {
                handed.push(self.lease(&part, picked));
            }
            self.rows += part.picked.len();
            self.formed.push(Formed::Leased { part, handed });
        }
    }

    pub fn lease(&mut self, part: &LeasePart, picked: &Picked) -> Leased {
        let (now, entry) = (self.context.now, &picked.entry);
        if entry.expired(now) && !on(Bug::ExpiryIgnored) {
            return Leased::Expired;
        }
        self.busy.insert(picked.key.seq);
        if entry.policy == DeliveryPolicy::AtMostOnce {
            self.delete(picked.topic, picked.key.seq, entry.expires_at);
            return Leased::Taken;
        }
        let lease = part.lease.unwrap_or(Duration::from_millis(u64::from(entry.lease_ms)));
        let (delivery, nonce, deadline) = (entry.deliveries + 1, self.context.rng.random(), now.plus(lease));
        self.batch.leases.push(LeaseEntry {
            seq: picked.key.seq,
            topic: picked.topic,
            priority: picked.key.priority,
            rank: picked.key.rank,
            attributes: ItemAttributes { deliveries: delivery, ..entry.attributes() },
            bytes: entry.bytes,
            nonce,
            deadline,
            consumer: part.consumer.clone(),
        });
        Leased::Lease { delivery, nonce, deadline }
    }

    fn enqueues(&mut self) {
        // A quarter of the batch is theirs, however many settlements wait.
        let limit = match self.owned.split {
            Some(split) => split,
            None => self.limit.max(self.rows + self.limit / 4),
        };
        while self.rows < limit {
            let Some(mut part) = self.owned.enqueues.pop() else { break };
            let bytes: usize = part.items.iter().map(Placed::charge).sum();
            let whole = self.rows + part.items.len() <= limit
                && self.bytes + bytes + ROW_BYTES * part.items.len() <= self.owned.batch_bytes;
            if part.request.is_some() {
                let alone = self.rows == 0 || self.batch.inserts.is_empty() && self.owned.split.is_none();
                if !whole && !alone {
                    self.owned.enqueues.unpop(part);
                    break;
                }
            } else if !whole {
                let fit = self.fit(&part.items, limit - self.rows);
                if fit == 0 {
                    self.owned.enqueues.unpop(part);
                    break;
                }
                if fit < part.items.len() {
                    let rest = part.items.split_off(fit);
                    let namespace = part.namespace.clone();
                    self.owned.enqueues.unpop(EnqueuePart {
                        call: part.call,
                        namespace,
                        request: None,
                        items: rest,
                    });
                }
            }
            self.enqueue(part);
        }
    }

    /// How many of the items fit; at least one if the batch is empty.
    fn fit(&self, items: &[Placed], rows: usize) -> usize {
        let mut bytes = self.bytes;
        let fit = items.iter().take(rows).take_while(|item| {
            bytes += item.charge() + ROW_BYTES;
            bytes <= self.owned.batch_bytes
        });
        fit.count().max(usize::from(self.batch.inserts.is_empty()))
    }

    fn enqueue(&mut self, part: EnqueuePart) {
        let mut results = Vec::with_capacity(part.items.len());
        for place in neighbours(&part.items) {
            let item = &part.items[place];
            self.rows += 1;
            self.bytes += item.charge() + ROW_BYTES;
            results.push((place, self.insert(&part, item)));
        }
        results.sort_unstable_by_key(|(place, _)| *place);
        let results: Vec<_> = results.into_iter().map(|(_, result)| result).collect();
        let generation = self.generation();
        if let (Some(hash), Some(generation)) = (part.request, generation) {
            let answer = crate::request::encode(&results);
            self.batch.dedupes.push(DedupeEntry { generation, hash, answer });
        }
        for (item, result) in part.items.iter().zip(&results) {
            if let (Some(hash), Some(generation), Ok(stored)) = (item.dedupe, generation, result) {
                let answer = crate::request::encode(std::slice::from_ref(&Ok(stored.clone())));
                self.batch.dedupes.push(DedupeEntry { generation, hash, answer });
            }
        }
        self.formed.push(Formed::Enqueued { part, results });
    }

    /// The generation of the dedupe table that takes keys now.
    fn generation(&self) -> Option<u64> {
        current_generation(&self.owned.generations.live, self.context.now)
    }

    fn insert(&mut self, part: &EnqueuePart, item: &Placed) -> Result<Stored, Refusal> {
        if let Some(refusal) = &item.refused {
            return Err(refusal.clone());
        }
        let topic = self.topic(part, item)?;
        self.stamp.seq = Seq(self.stamp.seq.0 + 1);
        let waits = item.due.filter(|due| *due > self.context.now);
        let rank = match item.due {
            Some(due) => due.as_micros(),
            None => self.raise(item.rank),
        };
        let state = if waits.is_some() { State::Scheduled } else { State::Ready };
        let key = Key { priority: item.priority, rank, seq: self.stamp.seq };
        self.batch.inserts.push(ItemRow {
            topic,
            key,
            state,
            attributes: ItemAttributes {
                enqueued_at: item.arrived,
                expires_at: item.expires_at,
                lease_ms: item.lease_ms,
                max_attempts: item.max_attempts,
                policy: item.policy,
                deliveries: 0,
                failures: 0,
            },
            body: item.body.clone(),
        });
        self.expiry_min = self.expiry_min.min(item.expires_at.unwrap_or(Timestamp::MAX));
        self.schedule_min = self.schedule_min.min(waits.unwrap_or(Timestamp::MAX));
        match state {
            State::Ready => self.count(topic, 1, 0, 0),
            State::Scheduled => self.count(topic, 0, 1, 0),
        }
        Ok(Stored { topic, key, state, met: false })
    }

    /// A rank that this shard has not passed yet, where the fence's rank was far ahead of node time.
    fn raise(&mut self, rank: i64) -> i64 {
        let rank = if rank > self.owned.rank_floor {
            rank
        } else {
            self.owned.rank_floor += 1;
            self.owned.rank_floor
        };
        self.stamp.rank = self.stamp.rank.max(rank);
        rank
    }

    /// The number of an item's topic. A call's items mostly have the same one.
    fn topic(&mut self, part: &EnqueuePart, item: &Placed) -> Result<TopicId, Refusal> {
        if let Some((name, id)) = &self.last_topic
            && name.topic == item.topic
            && name.namespace == part.namespace
        {
            return Ok(*id);
        }
        let name = TopicName { namespace: part.namespace.clone(), topic: item.topic.clone() };
        let known = self.owned.names.get(&name).or_else(|| self.new_topics.get(&name)).copied();
        let id = match known {
            Some(id) => id,
            None => self.new_topic(&name)?,
        };
        self.last_topic = Some((name, id));
        Ok(id)
    }

    fn new_topic(&mut self, name: &TopicName) -> Result<TopicId, Refusal> {
        let limit = self.context.settings.limits.topics_per_namespace;
        let new = self.new_topics.keys().filter(|other| other.namespace == name.namespace).count();
        if (self.context.topics_of)(&name.namespace) + new >= limit {
            let message = format!("the namespace has {limit} topics, as many as it may have");
            return Err(Refusal::new(Reason::TooManyTopics, message));
        }
        let id = TopicId(self.stamp.topic.0 + 1);
        self.stamp.topic = id;
        self.new_topics.insert(name.clone(), id);
        self.batch.new_topics.push(TopicRow { id, name: name.clone(), counts: TopicCounts::default() });
        Ok(id)
    }

    /// The item's row goes, with its expiry.
    pub fn delete(&mut self, topic: TopicId, seq: Seq, expires_at: Option<Timestamp>) {
        self.batch.deletes.push(seq);
        if let Some(at) = expires_at {
            self.batch.expiry_deletes.push(DueKey { at, seq });
        }
        self.count(topic, -1, 0, 0);
    }

    pub fn count(&mut self, topic: TopicId, ready: i64, scheduled: i64, dead: i64) {
        let delta = self.deltas.entry(topic).or_default();
        delta.ready += ready;
        delta.scheduled += scheduled;
        delta.dead += dead;
    }

    /// A `schedule` row is added.
    pub fn schedules(&mut self, at: Timestamp) {
        self.schedule_min = self.schedule_min.min(at);
    }

    fn page(&mut self) {
        if self.owned.split.is_some() && self.rows > 0 {
            return;
        }
        let Some(page) = self.owned.page.take() else { return };
        let (done, left) = match page.sweep {
            Sweep::Due => self.promote(&page),
            Sweep::Expiry => self.expire(&page),
        };
        self.rows += done.iter().filter(|done| **done).count();
        let (sweeper, added) = match page.sweep {
            Sweep::Due => (&self.owned.due, self.schedule_min),
            Sweep::Expiry => (&self.owned.expiry, self.expiry_min),
        };
        let checkpoint = sweeper.target(&page, left.min(added));
        self.formed_page = Some(FormedPage { page, done, checkpoint });
    }

    /// Topics that have had nothing in them for long lose their rows.
    fn drop_idle_topics(&mut self) {
        let keep = self.context.settings.idle_topic;
        while self.batch.drop_topics.len() < FOLDS
            && let Some((since, id)) = self.owned.idle.front().copied()
            && self.context.at.since(since) >= keep
        {
            self.owned.idle.pop_front();
            let Some(topic) = self.owned.topics.get(&id) else { continue };
            let unused = topic.is_empty() && topic.idle_since == Some(since) && topic.reserved == 0;
            if unused && !topic.window.is_reading() && !self.deltas.contains_key(&id) {
                self.batch.drop_topics.push(id);
                self.rows += 1;
            }
        }
    }

    /// Lease rows that are mostly closed are rewritten: what is still open moves to this batch's row.
    fn compact(&mut self) {
        if self.owned.split.is_some() || self.rows == 0 {
            return;
        }
        let Some(row) = self.owned.leases.sparse() else { return };
        let open = row.entries.iter().zip(&row.open).enumerate().filter(|(_, (_, open))| **open);
        for (place, (lease, _)) in open {
            if self.busy.contains(&lease.seq) {
                continue;
            }
            self.closing.entry(row.id).or_default().push(place);
            self.batch.leases.push(lease.clone());
            self.formed.push(Formed::Moved(lease.seq));
            self.rows += 1;
        }
    }

    fn finish(mut self) -> Outcome {
        if self.rows == 0 && self.formed_page.is_none() {
            return Outcome { misses: self.misses, ..Outcome::default() };
        }
        let number = self.batch.number;
        for (id, places) in &self.closing {
            self.batch.lease_changes.extend(self.owned.leases.without(*id, places));
        }
        let mut lowered = Vec::new();
        let mut checkpoints = Vec::new();
        for (sweeper, added) in [(&self.owned.due, self.schedule_min), (&self.owned.expiry, self.expiry_min)]
        {
            let formed = self.formed_page.as_ref().filter(|formed| formed.page.sweep == sweeper.sweep);
            match formed {
                Some(formed) if formed.checkpoint != sweeper.checkpoint => {
                    checkpoints.push(Checkpoint { sweep: sweeper.sweep, at: formed.checkpoint });
                }
                None if added < sweeper.checkpoint => {
                    checkpoints.push(Checkpoint { sweep: sweeper.sweep, at: added });
                    lowered.push((sweeper.sweep, added));
                }
                _ => {}
            }
        }
        self.batch.checkpoints = checkpoints;
        self.deltas.retain(|_, delta| *delta != TopicCounts::default());
        let folds = fold(self.owned, &mut self.batch, &self.deltas);
        self.batch.count_deltas = self.deltas.iter().map(|(id, delta)| (*id, *delta)).collect();
        self.batch.marks = Some(self.stamp);
        self.owned.in_flight = Some(InFlight {
            number,
            sent_at: self.context.at,
            slow: false,
            rows: self.rows,
            stamp: self.stamp,
            new_topics: self.batch.new_topics.clone(),
            dropped: self.batch.drop_topics.clone(),
            deltas: self.batch.count_deltas.clone(),
            folds,
            leases: self.batch.leases.clone(),
            formed: self.formed,
            page: self.formed_page,
            lowered,
            schedule_min: self.schedule_min,
            expiry_min: self.expiry_min,
        });
        Outcome { batch: Some(self.batch), misses: self.misses, ..Outcome::default() }
    }
}

/// The items of a call in the order in which they are numbered: neighbours in the delivery order become neighbours in the
/// table as well, and a server is quicker where its next step is near the last one. What has one topic and priority stays in
/// the order of the call.
fn neighbours(items: &[Placed]) -> Vec<usize> {
    let mut places: Vec<usize> = (0..items.len()).collect();
    places.sort_by_key(|place| (&items[*place].topic, items[*place].priority));
    places
}

/// An entry for an item that was just enqueued. The body is copied: as it came it may hold on to the whole
/// request's memory.
pub(crate) fn entry_of(item: &Placed) -> Entry {
    let mut body = item.body.clone();
    body.payload = bytes::Bytes::copy_from_slice(&body.payload);
    body.metadata = bytes::Bytes::copy_from_slice(&body.metadata);
    Entry { body: Some(body), ..Entry::of_new(item) }
}
