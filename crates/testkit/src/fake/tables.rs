//! The rows of one shard, in maps instead of tables.

use std::collections::{BTreeMap, BTreeSet};

use forebay_store::{
    DeadLetter, DueRow, Fence, HighWaterMarks, ItemRow, LeaseRow, ReadyRow, ShardSnapshot, ShardTopology,
    Sweep, TopicCounts, TopicRow,
};
use forebay_types::{Incarnation, Key, Seq, State, Timestamp, TopicId, TopicName};

/// One generation of dedupe keys: what was answered, and when.
pub type Keys = BTreeMap<[u8; 16], (Timestamp, Vec<u8>)>;

/// A row of `topic`.
#[derive(Debug, Clone)]
pub struct TopicEntry {
    /// Its name.
    pub name: TopicName,
    /// Its counts as of `folded`.
    pub counts: TopicCounts,
    /// The number of the batch that last wrote the counts.
    pub folded: u64,
    /// What the item rows say: kept here to be compared with.
    pub actual: TopicCounts,
}

/// Everything that is committed in one shard.
#[derive(Debug, Clone)]
pub struct Tables {
    /// The fence.
    pub fence: Fence,
    /// The heartbeat's counter.
    pub renewals: u64,
    /// The owner's address.
    pub address: String,
    /// Topics by number.
    pub topics: BTreeMap<TopicId, TopicEntry>,
    /// Changes of counts by batch.
    pub deltas: BTreeMap<u64, Vec<(TopicId, TopicCounts)>>,
    /// Items by number.
    pub items: BTreeMap<Seq, ItemRow>,
    /// Ready items in delivery order.
    pub order: BTreeSet<(TopicId, Key)>,
    /// Items that wait for their time.
    pub schedule: BTreeSet<(Timestamp, Seq)>,
    /// Items with a time to live.
    pub expiry: BTreeSet<(Timestamp, Seq)>,
    /// The lease log.
    pub leases: BTreeMap<u64, LeaseRow>,
    /// Items that gave up.
    pub dead: BTreeMap<Seq, (ItemRow, DeadLetter)>,
    /// Dedupe keys by generation.
    pub generations: BTreeMap<u64, Keys>,
    /// Among which shards keys had their homes.
    pub topology_history: Vec<ShardTopology>,
    /// Where sweeps go on.
    pub checkpoints: BTreeMap<Sweep, Timestamp>,
}

impl Tables {
    /// Of a new shard.
    pub fn new() -> Self {
        Self {
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
            topics: BTreeMap::new(),
            deltas: BTreeMap::new(),
            items: BTreeMap::new(),
            order: BTreeSet::new(),
            schedule: BTreeSet::new(),
            expiry: BTreeSet::new(),
            leases: BTreeMap::new(),
            dead: BTreeMap::new(),
            generations: BTreeMap::new(),
            topology_history: Vec::new(),
            checkpoints: BTreeMap::new(),
        }
    }

    /// A topic's counts, as its row and the changes since tell them.
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

    /// What a new owner loads.
    pub fn image(&self) -> ShardSnapshot {
        let topics = self.topics.iter().map(|(id, entry)| TopicRow {
            id: *id,
            name: entry.name.clone(),
            counts: self.counts(*id),
        });
        ShardSnapshot {
            topics: topics.collect(),
            leases: self.leases.values().cloned().collect(),
            checkpoints: self.checkpoints.iter().map(|(sweep, at)| (*sweep, *at)).collect(),
            generations: self.generations.keys().copied().collect(),
        }
    }

    /// Ready items of a topic after a key.
    pub fn ready(&self, topic: TopicId, after: Key, limit: usize, bodies: bool) -> Vec<ReadyRow> {
        use std::ops::Bound::{Excluded, Included};
        let end = Key { priority: i32::MAX, rank: i64::MAX, seq: Seq(u64::MAX) };
        let range = (Excluded((topic, after)), Included((topic, end)));
        let keys = self.order.range(range).take(limit);
        keys.filter_map(|(_, key)| Some(ready_row(self.items.get(&key.seq)?, bodies))).collect()
    }

    /// Rows of a sweep's table, with their items.
    pub fn due(&self, sweep: Sweep, from: Timestamp, to: Timestamp, limit: usize) -> Vec<DueRow> {
        if from > to {
            return Vec::new();
        }
        let rows = self.sweep(sweep).range((from, Seq(0))..=(to, Seq(u64::MAX))).take(limit);
        let rows = rows.filter_map(|(at, seq)| {
            let item = self.items.get(seq)?;
            let scheduled = item.state == State::Scheduled;
            Some(DueRow { at: *at, topic: item.topic, scheduled, item: ready_row(item, false) })
        });
        rows.collect()
    }

    /// A sweep's table.
    pub fn sweep(&self, sweep: Sweep) -> &BTreeSet<(Timestamp, Seq)> {
        match sweep {
            Sweep::Due => &self.schedule,
            Sweep::Expiry => &self.expiry,
        }
    }

    /// The open lease of an item: the row's number and the place in it.
    pub fn lease_of(&self, seq: Seq) -> Option<(u64, usize)> {
        self.leases.values().find_map(|row| {
            let open = row.entries.iter().zip(&row.open);
            let at = open.clone().position(|(entry, open)| *open && entry.seq == seq)?;
            Some((row.id, at))
        })
    }

    /// Stores a row behind the engine's back.
    pub(super) fn keep(&mut self, row: ItemRow) {
        match row.state {
            State::Ready => self.order.insert((row.topic, row.key)),
            State::Scheduled => self.schedule.insert((Timestamp::from_micros(row.key.rank), row.key.seq)),
        };
        self.items.insert(row.key.seq, row);
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
pub(super) fn add(sum: &mut TopicCounts, delta: TopicCounts) {
    sum.ready += delta.ready;
    sum.scheduled += delta.scheduled;
    sum.dead += delta.dead;
}

fn ready_row(item: &ItemRow, body: bool) -> ReadyRow {
    ReadyRow {
        key: item.key,
        enqueued_at: item.enqueued_at,
        expires_at: item.expires_at,
        lease_ms: item.lease_ms,
        max_attempts: item.max_attempts,
        policy: item.policy,
        deliveries: item.deliveries,
        failures: item.failures,
        bytes: u32::try_from(item.body.bytes()).unwrap_or(u32::MAX),
        body: body.then(|| item.body.clone()),
    }
}
