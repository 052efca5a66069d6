//! The rows of one shard, in maps.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use forebay_store::{
    Checkpoint, DeadLetter, DeadRow, Death, DueItem, DueRow, Fence, HighWaterMarks, ItemRow, LeaseRow,
    NameRange, NamespaceTally, OperationId, OperationRow, ReadyRow, ShardSnapshot, ShardTopology, StoredItem,
    StoredState, Sweep, Tally, TopicCounts, TopicRow, WalkedRow,
};
use forebay_types::{
    Body, Failure, Incarnation, ItemAttributes, Key, Namespace, Seq, State, Timestamp, TopicId, TopicName,
};

pub use super::topic_entry::TopicEntry;

/// One generation of dedupe keys, with the time and the answer of each.
pub type Keys = BTreeMap<[u8; 16], (Timestamp, Vec<u8>)>;

/// Everything that is committed in one shard.
#[derive(Debug, Clone)]
pub struct Tables {
    /// Whether each batch is checked. The checks take time that grows with what is leased.
    pub strict: bool,
    /// The fence.
    pub fence: Fence,
    /// The heartbeat's counter.
    pub renewals: u64,
    /// The owner's address.
    pub address: String,
    /// The owner's lease.
    pub lease: Duration,
    /// The node to which the shard was handed.
    pub successor: String,
    /// Topics by number.
    pub topics: BTreeMap<TopicId, TopicEntry>,
    /// Changes of counts by batch.
    pub deltas: BTreeMap<u64, Vec<(TopicId, TopicCounts)>>,
    /// Tallies of items and deliveries by batch, with the time. They go with the changes of counts.
    pub tallies: BTreeMap<u64, (Timestamp, Vec<(TopicId, Tally)>)>,
    /// Tallies of forgotten topics, by namespace.
    pub namespace_tallies: BTreeMap<Namespace, NamespaceTally>,
    /// Sums of all batches' tallies by namespace, to compare with.
    pub totals: BTreeMap<Namespace, Tally>,
    /// Items by number.
    pub items: BTreeMap<Seq, ItemRow>,
    /// Ready items in delivery order.
    pub order: BTreeSet<(TopicId, Key)>,
    /// Scheduled items by due time.
    pub schedule: BTreeSet<(Timestamp, Seq)>,
    /// Items with a time to live, by expiry.
    pub expiry: BTreeSet<(Timestamp, Seq)>,
    /// The lease log.
    pub leases: BTreeMap<u64, LeaseRow>,
    /// Dead letters that are not kept for ever, by their end.
    pub retention: BTreeSet<(Timestamp, Seq)>,
    /// Dead letters, with their former items.
    pub dead: BTreeMap<Seq, (ItemRow, DeadLetter)>,
    /// The last failures of items and dead letters, the latest first.
    pub failures: BTreeMap<Seq, Vec<Failure>>,
    /// Dedupe keys by generation.
    pub generations: BTreeMap<u64, Keys>,
    /// Past and present sets of shards.
    pub topology_history: ShardTopology,
    /// Where sweeps continue.
    pub checkpoints: BTreeMap<Sweep, Timestamp>,
    /// The shard's parts of operations.
    pub operations: BTreeMap<OperationId, OperationRow>,
}

impl Tables {
    /// The rows of a new shard.
    pub fn new() -> Self {
        Self {
            strict: true,
            fence: Fence {
                epoch: 0,
                incarnation: Incarnation([0; 16]),
                batch: 0,
                marks: HighWaterMarks {
                    seq: Seq(0),
                    topic: TopicId(0),
                    rank: 0,
                    time: Timestamp::from_micros(0),
                },
            },
            renewals: 0,
            address: String::new(),
            lease: Duration::ZERO,
            successor: String::new(),
            topics: BTreeMap::new(),
            deltas: BTreeMap::new(),
            tallies: BTreeMap::new(),
            namespace_tallies: BTreeMap::new(),
            totals: BTreeMap::new(),
            items: BTreeMap::new(),
            order: BTreeSet::new(),
            schedule: BTreeSet::new(),
            expiry: BTreeSet::new(),
            leases: BTreeMap::new(),
            retention: BTreeSet::new(),
            dead: BTreeMap::new(),
            failures: BTreeMap::new(),
            generations: BTreeMap::new(),
            topology_history: ShardTopology::default(),
            checkpoints: BTreeMap::new(),
            operations: BTreeMap::new(),
        }
    }

    /// A topic's counts, from its row and the later deltas.
    pub fn counts(&self, topic: TopicId) -> TopicCounts {
        let Some(entry) = self.topics.get(&topic) else { return TopicCounts::default() };
        let mut sum = entry.counts;
        for (changed, delta) in self.deltas.range(entry.folded + 1..).flat_map(|(_, changes)| changes) {
            if *changed == topic {
                add(&mut sum, *delta);
            }
        }
        sum
    }

    /// Whether a topic has deltas beyond the counts of its row.
    pub(super) fn is_unfolded(&self, topic: TopicId) -> bool {
        let Some(entry) = self.topics.get(&topic) else { return false };
        let mut later = self.deltas.range(entry.folded + 1..).flat_map(|(_, changes)| changes);
        let mut counted = self.tallies.range(entry.folded + 1..).flat_map(|(_, (_, tallies))| tallies);
        later.any(|(changed, _)| *changed == topic) || counted.any(|(changed, _)| *changed == topic)
    }

    /// Whether a topic has dead letters and nothing else, and none of its counts waits for a fold.
    pub(super) fn is_dormant(&self, id: TopicId, entry: &TopicEntry) -> bool {
        entry.looks_dormant() && !self.is_unfolded(id)
    }

    /// Topics whose rows look dormant, by namespace and name.
    pub fn dormant(&self, range: &NameRange, limit: usize) -> Vec<TopicRow> {
        let looks = |entry: &TopicEntry| entry.looks_dormant() && range.contains(&entry.name);
        let rows = self.topics.iter().filter(|(_, entry)| looks(entry));
        let mut rows: Vec<TopicRow> =
            rows.map(|(id, it)| TopicRow { id: *id, name: it.name.clone(), counts: it.counts }).collect();
        rows.sort_by(|a, b| a.name.cmp(&b.name));
        rows.truncate(limit);
        rows
    }

    /// All that is stored of an item or a dead letter, with so many bytes of its payload.
    pub fn stored(&self, seq: Seq, payload_max: usize) -> Option<StoredItem> {
        let (item, state, attributes, rank) = match (self.items.get(&seq), self.dead.get(&seq)) {
            (Some(item), _) if item.state == State::Ready => {
                (item, StoredState::Ready, item.attributes, item.key.rank)
            }
            (Some(item), _) => (item, StoredState::Scheduled, item.attributes, item.key.rank),
            (None, Some((item, letter))) => {
                let DeadLetter { deliveries, failures, reason, last_error, died_at, expires_at, .. } =
                    letter.clone();
                let death = Death { reason, last_error, died_at, kept_until: expires_at };
                let attributes = ItemAttributes { deliveries, failures, ..item.attributes };
                (item, StoredState::Dead(death), attributes, died_at.as_micros())
            }
            (None, None) => return None,
        };
        let Body { payload, metadata, headers } = item.body.clone();
        Some(StoredItem {
            topic: self.topics.get(&item.topic)?.name.clone(),
            topic_id: item.topic,
            key: Key { rank, ..item.key },
            attributes,
            headers,
            metadata,
            payload_size: u32::try_from(payload.len()).unwrap_or(u32::MAX),
            payload: payload.slice(..payload.len().min(payload_max)),
            state,
            last_failures: self.failures.get(&seq).cloned().unwrap_or_default(),
            unreadable: None,
        })
    }

    /// Returns the snapshot that a new owner loads.
    pub fn snapshot(&self) -> ShardSnapshot {
        let (dormant, topics): (Vec<_>, Vec<_>) =
            self.topics.iter().partition(|(id, entry)| self.is_dormant(**id, entry));
        let topics = topics.into_iter().map(|(id, entry)| TopicRow {
            id: *id,
            name: entry.name.clone(),
            counts: self.counts(*id),
        });
        ShardSnapshot {
            topics: topics.collect(),
            dormant_dead: dormant.into_iter().map(|(_, entry)| entry.counts.dead).sum(),
            tallies: self.topics.keys().filter_map(|id| Some((*id, self.loaded_tally(*id)?))).collect(),
            unfolded: self.topics.keys().copied().filter(|id| self.is_unfolded(*id)).collect(),
            deltas_from: self.deltas_from(),
            leases: self.leases.values().cloned().collect(),
            checkpoints: self
                .checkpoints
                .iter()
                .map(|(sweep, at)| Checkpoint { sweep: *sweep, at: *at })
                .collect(),
            generations: self.generations.keys().copied().collect(),
            operations: self.operations.values().cloned().collect(),
            unreadable_operations: Vec::new(),
        }
    }

    /// Ready items of a topic after a key. The first of them come with their bodies, as many as have
    /// `max_bytes` together.
    pub fn ready(&self, topic: TopicId, after: Key, limit: usize, max_bytes: usize) -> Vec<ReadyRow> {
        use std::ops::Bound::{Excluded, Included};
        let end = Key { priority: i32::MAX, rank: i64::MAX, seq: Seq(u64::MAX) };
        let range = (Excluded((topic, after)), Included((topic, end)));
        let keys = self.order.range(range).take(limit);
        let items = keys.filter_map(|(_, key)| self.items.get(&key.seq));
        let mut left = (max_bytes > 0).then_some(max_bytes);
        let rows = items.map(|item| {
            left = left.and_then(|left| left.checked_sub(item.body.bytes()));
            ready_row(item, left.is_some())
        });
        rows.collect()
    }

    /// Items of a topic in a state after a key, with numbers up to `as_of`.
    pub fn walk_items(
        &self,
        topic: TopicId,
        state: State,
        after: Key,
        as_of: Seq,
        limit: usize,
    ) -> Vec<WalkedRow> {
        let fits = |item: &&ItemRow| item.topic == topic && item.state == state && item.key > after;
        let of_topic = self.items.range(..=as_of).map(|(_, item)| item).filter(fits);
        let row = |item: &ItemRow| WalkedRow {
            item: ready_row(item, false),
            headers: item.body.headers.clone(),
            metadata_bytes: u32::try_from(item.body.metadata.len()).unwrap_or(u32::MAX),
        };
        let mut rows: Vec<WalkedRow> = of_topic.map(row).collect();
        rows.sort_unstable_by_key(|row| row.item.key);
        rows.truncate(limit);
        rows
    }

    /// Dead letters of all topics with a name, behind a position and up to a time.
    pub fn walk_dead(
        &self,
        name: &TopicName,
        after: (TopicId, Timestamp, Seq),
        until: Timestamp,
        limit: usize,
    ) -> Vec<DeadRow> {
        let named = |topic| self.topics.get(&topic).is_some_and(|entry| entry.name == *name);
        let dead = self.dead.values().filter(|(item, letter)| named(item.topic) && letter.died_at <= until);
        let position = |item: &ItemRow, letter: &DeadLetter| (item.topic, letter.died_at, item.key.seq);
        let mut dead: Vec<_> = dead.filter(|(item, letter)| position(item, letter) > after).collect();
        dead.sort_by_key(|(item, letter)| position(item, letter));
        dead.into_iter().take(limit).map(|(item, letter)| dead_row(item, letter)).collect()
    }

    /// Dead letters of a topic before a death, the latest first.
    pub fn dead_rows(&self, topic: TopicId, before: (Timestamp, Seq), limit: usize) -> Vec<DeadRow> {
        let of_topic = self.dead.values().filter(|(item, _)| item.topic == topic);
        let mut dead: Vec<DeadRow> = of_topic.map(|(item, letter)| dead_row(item, letter)).collect();
        dead.retain(|row| (row.died_at, row.item.key.seq) < before);
        dead.sort_unstable_by_key(|row| std::cmp::Reverse((row.died_at, row.item.key.seq)));
        dead.truncate(limit);
        dead
    }

    /// Rows of a sweep's table, with their items.
    pub fn due(&self, sweep: Sweep, from: Timestamp, to: Timestamp, limit: usize) -> Vec<DueRow> {
        if from > to {
            return Vec::new();
        }
        let rows = self.sweep(sweep).range((from, Seq(0))..=(to, Seq(u64::MAX))).take(limit);
        let row = |(at, seq): &(Timestamp, Seq)| {
            let (topic, item) = match sweep {
                Sweep::Due | Sweep::Expiry => {
                    let item = self.items.get(seq)?;
                    let row = ready_row(item, false);
                    match item.state {
                        State::Ready => (item.topic, DueItem::Ready(row)),
                        State::Scheduled => (item.topic, DueItem::Scheduled(row)),
                    }
                }
                Sweep::Retention => {
                    let (item, letter) = self.dead.get(seq)?;
                    let name = self.topics.get(&item.topic)?.name.clone();
                    (item.topic, DueItem::DeadLetter { name, died_at: letter.died_at })
                }
            };
            Some(DueRow { at: *at, seq: *seq, topic, item })
        };
        rows.filter_map(row).collect()
    }

    /// A sweep's table.
    pub fn sweep(&self, sweep: Sweep) -> &BTreeSet<(Timestamp, Seq)> {
        match sweep {
            Sweep::Due => &self.schedule,
            Sweep::Expiry => &self.expiry,
            Sweep::Retention => &self.retention,
        }
    }

    /// The open lease of an item: the row's number and the position in it.
    pub fn lease_of(&self, seq: Seq) -> Option<(u64, usize)> {
        self.leases.values().find_map(|row| {
            let open = row.entries.iter().zip(&row.open);
            let at = open.clone().position(|(entry, open)| *open && entry.seq == seq)?;
            Some((row.id, at))
        })
    }

    /// Stores a row that the engine does not know of.
    pub(super) fn keep(&mut self, row: ItemRow) {
        match row.state {
            State::Ready => self.order.insert((row.topic, row.key)),
            State::Scheduled => self.schedule.insert((Timestamp::from_micros(row.key.rank), row.key.seq)),
        };
        self.items.insert(row.key.seq, row);
    }

    /// Inserts an item, with its `schedule` row if it has one.
    pub(super) fn put(&mut self, row: ItemRow) {
        if let Some(entry) = self.topics.get_mut(&row.topic) {
            add(&mut entry.actual, count_of(row.state, 1));
        }
        self.keep(row);
    }

    /// Removes an item.
    pub(super) fn take(&mut self, seq: Seq) -> Option<ItemRow> {
        let row = self.items.remove(&seq)?;
        if let Some(entry) = self.topics.get_mut(&row.topic) {
            add(&mut entry.actual, count_of(row.state, -1));
        }
        self.order.remove(&(row.topic, row.key));
        Some(row)
    }

    /// Items with an open lease.
    pub fn leased(&self) -> BTreeSet<Seq> {
        let rows = self.leases.values().flat_map(|row| row.entries.iter().zip(&row.open));
        rows.filter(|(_, open)| **open).map(|(entry, _)| entry.seq).collect()
    }
}

impl Default for Tables {
    fn default() -> Self {
        Self::new()
    }
}

/// Adds a change to a count.
fn add(sum: &mut TopicCounts, delta: TopicCounts) {
    sum.ready += delta.ready;
    sum.scheduled += delta.scheduled;
    sum.dead += delta.dead;
}

/// A change of the count of items in one state.
fn count_of(state: State, by: i64) -> TopicCounts {
    match state {
        State::Ready => TopicCounts { ready: by, ..TopicCounts::default() },
        State::Scheduled => TopicCounts { scheduled: by, ..TopicCounts::default() },
    }
}

/// A dead letter as an operation reads it.
fn dead_row(item: &ItemRow, letter: &DeadLetter) -> DeadRow {
    let mut row = ready_row(item, false);
    row.key.rank = letter.died_at.as_micros();
    DeadRow {
        topic: item.topic,
        died_at: letter.died_at,
        item: row,
        cause: letter.reason.clone(),
        last_error: letter.last_error.clone(),
        packed: Vec::new(),
    }
}

fn ready_row(item: &ItemRow, body: bool) -> ReadyRow {
    ReadyRow {
        key: item.key,
        attributes: item.attributes,
        bytes: u32::try_from(item.body.bytes()).unwrap_or(u32::MAX),
        body: body.then(|| item.body.clone()),
        unreadable: false,
    }
}
