//! One shard, as its owner holds it in memory. Everything here is as of the last resolved batch; what the
//! batch under way will change stands in [`InFlight`] until it is resolved.

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use forebay_store::{Fence, HighWaterMarks, Reader, ShardSnapshot, ShardTopology, Sweep, TopicCounts};
use forebay_types::{Monotonic, Namespace, Seq, Timestamp, TopicId, TopicName};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::{
    form::InFlight,
    leases::Leases,
    look_up::LookUp,
    op::{EnqueuePart, KeyHash, LeasePart, Page, Picked, Settle},
    sweep::Sweeper,
    time::ShardTime,
    window::Window,
};

/// How many entries a refill of a window begins with.
const FILL_MIN: usize = 64;
/// The most that a refill reads at once.
const FILL_MAX: usize = 2_000;

/// One topic of one shard.
#[derive(Debug)]
pub(crate) struct TopicState {
    pub name: TopicName,
    pub counts: TopicCounts,
    /// Items out of the window, on their way to a lease.
    pub reserved: usize,
    pub window: Window,
    /// The read under way is for a demand, since then.
    pub outstanding_since: Option<Monotonic>,
    /// Bytes of a body, as far as is known: an average that follows what is read and enqueued.
    pub body_bytes: Option<usize>,
    /// How many entries the next refill asks for.
    pub fill: usize,
    /// The first batch whose delta is not folded into the topic's row yet.
    pub dirty_since: Option<u64>,
    /// Since when there is nothing in it.
    pub idle_since: Option<Monotonic>,
    /// Noted in `Owned::changed`.
    changed: bool,
}

impl TopicState {
    pub fn new(name: TopicName, counts: TopicCounts, window: Window) -> Self {
        Self {
            name,
            counts,
            reserved: 0,
            window,
            outstanding_since: None,
            body_bytes: None,
            fill: FILL_MIN,
            dirty_since: None,
            idle_since: None,
            changed: false,
        }
    }

    /// A body of so many bytes was seen.
    pub fn saw_body(&mut self, bytes: usize) {
        self.body_bytes = Some(self.body_bytes.map_or(bytes, |average| (average * 7 + bytes) / 8));
    }

    /// The window ran empty: whoever drains fast is filled further.
    pub fn grow(&mut self) {
        self.fill = (self.fill * 2).min(FILL_MAX);
    }

    pub fn is_empty(&self) -> bool {
        self.counts == TopicCounts::default()
    }
}

/// Enqueues that wait, in turn by namespace.
#[derive(Debug, Default)]
pub(crate) struct EnqueueQueue {
    turns: VecDeque<Namespace>,
    parts: HashMap<Namespace, VecDeque<EnqueuePart>>,
    pub items: usize,
}

impl EnqueueQueue {
    pub fn push(&mut self, part: EnqueuePart) {
        self.items += part.items.len();
        let queue = self.parts.entry(part.namespace.clone()).or_default();
        if queue.is_empty() {
            self.turns.push_back(part.namespace.clone());
        }
        queue.push_back(part);
    }

    /// Puts back, in front, what [`EnqueueQueue::pop`] gave.
    pub fn unpop(&mut self, part: EnqueuePart) {
        self.items += part.items.len();
        let queue = self.parts.entry(part.namespace.clone()).or_default();
        if queue.is_empty() {
            self.turns.push_front(part.namespace.clone());
        }
        queue.push_front(part);
    }

    /// The first part of the namespace whose turn it is.
    pub fn pop(&mut self) -> Option<EnqueuePart> {
        let namespace = self.turns.pop_front()?;
        let queue = self.parts.get_mut(&namespace)?;
        let part = queue.pop_front()?;
        if queue.is_empty() {
            self.parts.remove(&namespace);
        } else {
            self.turns.push_back(namespace);
        }
        self.items -= part.items.len();
        Some(part)
    }

    /// What waits, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &EnqueuePart> {
        self.parts.values().flatten()
    }

    /// Everything that waits.
    pub fn drain(&mut self) -> Vec<EnqueuePart> {
        std::iter::from_fn(|| self.pop()).collect()
    }
}

/// Dedupe keys and request ids that are being looked up, wait for their batch, or are in one.
#[derive(Debug, Default)]
pub(crate) struct Keyed {
    pub held: HashSet<KeyHash>,
    /// Parts one of whose keys is held by another.
    pub blocked: VecDeque<EnqueuePart>,
    /// Parts whose lookup is under way, by read.
    pub looking: BTreeMap<u64, LookUp>,
}

/// The generations of the dedupe table.
#[derive(Debug, Default)]
pub(crate) struct Generations {
    /// Oldest first. The number of each is the second from which on it takes keys.
    pub live: Vec<u64>,
    /// One is being made or dropped.
    pub busy: bool,
    pub not_before: Monotonic,
}

/// A shard that this node owns.
pub(crate) struct Owned {
    pub reader: Arc<dyn Reader>,
    pub epoch: u64,
    /// The last resolved batch.
    pub batch: u64,
    pub stamp: HighWaterMarks,
    /// Below it ranks of this shard are raised, because the fence's rank was far ahead of node time.
    pub rank_floor: i64,
    pub time: ShardTime,
    pub topics: FxHashMap<TopicId, TopicState>,
    pub names: HashMap<TopicName, TopicId>,
    pub leases: Leases,
    pub reserved: FxHashSet<Seq>,
    /// Bytes of all windows.
    pub index_bytes: usize,

    pub settles: VecDeque<Settle>,
    pub lease_parts: VecDeque<LeasePart>,
    /// Parts that wait for bodies, by read.
    pub awaiting: BTreeMap<u64, LeasePart>,
    pub enqueues: EnqueueQueue,
    /// At-most-once items that could not be handed over.
    pub restores: Vec<Picked>,
    pub page: Option<Page>,
    pub keyed: Keyed,
    /// The lists of shards, until they are recorded: the next batch does that.
    pub shard_lists: Option<Vec<ShardTopology>>,
    pub generations: Generations,
    pub in_flight: Option<InFlight>,
    /// Results of reads that wait for the batch under way: it was open while they ran.
    pub held_reads: Vec<(TopicId, u64, Option<Vec<forebay_store::ReadyRow>>)>,
    /// Reads of windows under way.
    pub reading: usize,
    /// Topics whose heads are to be read in the background.
    pub unread: VecDeque<TopicId>,
    /// The next batch has at most so many rows, because a row of the last one could not be stored.
    pub split: Option<usize>,

    pub due: Sweeper,
    pub expiry: Sweeper,
    /// Leases that ran out are left alone until then, so that acks on their way come first.
    pub lapse_after: Monotonic,
    /// Topics whose counts are not folded yet, in the order of `dirty_since`.
    pub dirty: VecDeque<TopicId>,
    /// Topics whose head or counts may have changed since the node looked.
    pub changed: Vec<TopicId>,
    /// Topics to be dropped once they were idle for long.
    pub idle: VecDeque<(Monotonic, TopicId)>,

    /// Bytes of enqueues that wait, and of each tenant.
    pub admitted: usize,
    pub admitted_by: HashMap<Namespace, usize>,
    /// Until then nobody else can own the shard.
    pub trusted_until: Monotonic,
    pub batch_bytes: usize,
    pub disk_full_until: Monotonic,
    pub commit_took: Duration,
}

impl Owned {
    pub fn new(
        fence: Fence,
        image: ShardSnapshot,
        reader: Arc<dyn Reader>,
        at: Monotonic,
        trusted_until: Monotonic,
        batch_bytes: usize,
        outage: Duration,
    ) -> Self {
        let checkpoint = |sweep| {
            let stored = image.checkpoints.iter().find(|stored| stored.sweep == sweep);
            stored.map_or(Timestamp::MIN, |stored| stored.at)
        };
        let (due, expiry) = (checkpoint(Sweep::Due), checkpoint(Sweep::Expiry));
        let mut leases = Leases::default();
        for row in image.leases {
            leases.insert(row);
        }
        let mut owned = Self {
            reader,
            epoch: fence.epoch,
            batch: fence.batch,
            stamp: fence.marks,
            rank_floor: i64::MIN,
            time: ShardTime::new(fence.marks.time, at),
            topics: FxHashMap::default(),
            names: HashMap::new(),
            leases,
            reserved: FxHashSet::default(),
            index_bytes: 0,
            settles: VecDeque::new(),
            lease_parts: VecDeque::new(),
            awaiting: BTreeMap::new(),
            enqueues: EnqueueQueue::default(),
            restores: Vec::new(),
            page: None,
            keyed: Keyed::default(),
            shard_lists: None,
            generations: Generations { live: image.generations, ..Generations::default() },
            in_flight: None,
            held_reads: Vec::new(),
            reading: 0,
            unread: VecDeque::new(),
            split: None,
            due: Sweeper::new(Sweep::Due, due),
            expiry: Sweeper::new(Sweep::Expiry, expiry),
            lapse_after: at.plus(outage),
            dirty: VecDeque::new(),
            changed: Vec::new(),
            idle: VecDeque::new(),
            admitted: 0,
            admitted_by: HashMap::new(),
            trusted_until,
            batch_bytes,
            disk_full_until: Monotonic::default(),
            commit_took: Duration::ZERO,
        };
        for row in image.topics {
            owned.add_topic(row.id, row.name, row.counts, at);
        }
        owned
    }

    /// A topic that the store has. What is ready in it has to be read first.
    pub fn add_topic(&mut self, id: TopicId, name: TopicName, counts: TopicCounts, at: Monotonic) {
        let window = if counts.ready > 0 { Window::unread() } else { Window::complete() };
        let mut topic = TopicState::new(name.clone(), counts, window);
        // The deltas that the load added up are still rows: they may go once the topic was folded.
        topic.dirty_since = Some(0);
        self.dirty.push_back(id);
        if topic.is_empty() {
            topic.idle_since = Some(at);
            self.idle.push_back((at, id));
        }
        if !topic.window.is_complete() {
            self.unread.push_back(id);
        }
        self.names.insert(name, id);
        self.topics.insert(id, topic);
        self.note(id);
    }

    /// The topic's head or counts may have changed.
    pub fn note(&mut self, id: TopicId) {
        if let Some(topic) = self.topics.get_mut(&id)
            && !topic.changed
        {
            topic.changed = true;
            self.changed.push(id);
        }
    }

    pub fn take_changed(&mut self) -> Vec<TopicId> {
        let changed = std::mem::take(&mut self.changed);
        for id in &changed {
            if let Some(topic) = self.topics.get_mut(id) {
                topic.changed = false;
            }
        }
        changed
    }

    /// Changes a topic's window, and keeps account of its bytes.
    pub fn with_window<R>(&mut self, id: TopicId, change: impl FnOnce(&mut Window) -> R) -> Option<R> {
        let topic = self.topics.get_mut(&id)?;
        let before = topic.window.cost();
        let result = change(&mut topic.window);
        self.index_bytes = self.index_bytes + topic.window.cost() - before;
        self.note(id);
        Some(result)
    }

    /// Items that could be leased and are not in the window.
    pub fn beyond(&self, id: TopicId) -> usize {
        let Some(topic) = self.topics.get(&id) else { return 0 };
        let known = self.leases.of_topic(id) + topic.reserved + topic.window.len();
        usize::try_from(topic.counts.ready).unwrap_or(0).saturating_sub(known)
    }

    /// Puts reserved items back where they were.
    pub fn put_back(&mut self, picked: Vec<Picked>) {
        for Picked { topic, key, entry, .. } in picked {
            self.unreserve(topic, key.seq);
            self.with_window(topic, |window| window.add(key, entry));
        }
    }

    pub fn unreserve(&mut self, topic: TopicId, seq: Seq) {
        if self.reserved.remove(&seq)
            && let Some(topic) = self.topics.get_mut(&topic)
        {
            topic.reserved -= 1;
        }
    }

    /// An item's row is no longer what a read under way may have seen.
    pub fn touch(&mut self, topic: TopicId, seq: Seq) {
        self.due.touch(seq);
        self.expiry.touch(seq);
        if let Some(topic) = self.topics.get_mut(&topic) {
            topic.window.touch(seq);
        }
    }

    pub fn trusted(&self, at: Monotonic) -> bool {
        at < self.trusted_until
    }

    /// The longest queues come last in a topic's choice of shards.
    pub fn backlog(&self) -> usize {
        self.enqueues.items + self.in_flight.as_ref().map_or(0, |batch| batch.rows)
    }

    /// Rows that callers wait for, at least.
    pub fn waiting_rows(&self) -> usize {
        let leases: usize = self.lease_parts.iter().map(|part| part.picked.len()).sum();
        self.settles.len() + leases + self.enqueues.items
    }

    /// Nothing waits and nothing is under way.
    pub fn is_idle(&self) -> bool {
        self.in_flight.is_none()
            && self.settles.is_empty()
            && self.lease_parts.is_empty()
            && self.awaiting.is_empty()
            && self.enqueues.items == 0
            && self.restores.is_empty()
            && self.keyed.blocked.is_empty()
            && self.keyed.looking.is_empty()
    }

    pub fn release_charge(&mut self, namespace: &Namespace, bytes: usize) {
        self.admitted = self.admitted.saturating_sub(bytes);
        if let Some(charge) = self.admitted_by.get_mut(namespace) {
            *charge = charge.saturating_sub(bytes);
            if *charge == 0 {
                self.admitted_by.remove(namespace);
            }
        }
    }

    /// Drops what lies furthest back in the greatest windows until `budget` holds.
    pub fn shed(&mut self, budget: usize) {
        if self.index_bytes <= budget {
            return;
        }
        let target = budget - budget / 8;
        let mut by_cost: BTreeMap<(usize, TopicId), usize> = BTreeMap::new();
        for (id, topic) in &self.topics {
            if topic.window.cost() > 0 {
                by_cost.insert((topic.window.cost(), *id), topic.window.len());
            }
        }
        while self.index_bytes > target {
            let Some(((_, id), len)) = by_cost.pop_last() else { return };
            if len <= 1 {
                // A head stays, without its body: else the heads of many topics would be read again and again.
                self.with_window(id, |window| window.strip());
                continue;
            }
            self.with_window(id, |window| window.shed(len / 2));
            if let Some(topic) = self.topics.get_mut(&id) {
                topic.fill = (topic.fill / 2).max(FILL_MIN);
                if topic.window.len() > 0 {
                    by_cost.insert((topic.window.cost(), id), topic.window.len());
                }
            }
        }
    }
}
