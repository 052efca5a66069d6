//! The batch under construction: its rows, and what they will change in memory.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use forebay_store::{Batch, Checkpoint, DedupeEntry, DueKey, HighWaterMarks, Sweep, Tally, TopicCounts};
use forebay_types::{Namespace, Seq, Timestamp, TopicId, TopicName, TopicSettings};
use rand::rngs::StdRng;

use crate::{
    api::{ChangeResult, SettingsTable},
    clock::Moment,
    planted::{Bug, on},
    shard::{
        OwnedShard,
        commit::{
            disk_room::Need,
            in_flight::{
                Claims, EarliestRows, ForgottenChange, InFlight, PlannedAction, PlannedOperation,
                PlannedPage, RemovedDormant,
            },
            row_costs::{Prices, RowCounts, RowKind},
        },
        contents::leases::log::LeasePosition,
        tenure::spans,
        work::{ChangeRequest, SettleRequest, removal},
    },
};

/// A batch under construction.
pub(super) struct BatchBuilder<'a> {
    /// The shard. Only its queues change while a batch is built.
    pub shard: &'a mut OwnedShard,
    /// The shard's time.
    pub moment: Moment,
    /// Random numbers for nonces.
    pub rng: &'a mut StdRng,
    /// The settings of topics and namespaces.
    pub set: &'a SettingsTable,
    /// The rows.
    pub batch: Batch,
    /// The work that the batch does, in order.
    pub planned: Vec<PlannedAction>,
    /// The sweep's page in it.
    pub page: Option<PlannedPage>,
    /// The operation's page in it.
    pub operation: Option<PlannedOperation>,
    /// The most rows that it may have.
    pub rows_max: usize,
    /// The most room on the disk that it may need.
    pub allowed: Need,
    /// The prices of its rows.
    pub prices: Prices,
    /// Rows so far.
    pub rows: usize,
    /// Their cost so far. The batch may cost as much as it may have rows.
    pub spent: usize,
    /// Their number by kind.
    counts: RowCounts,
    /// Bytes of new items so far.
    pub bytes: usize,
    /// The same of their bodies alone.
    body_bytes: usize,
    /// Items that it deals with already.
    pub claims: Claims,
    /// Topics that it creates.
    pub new_topics: HashMap<TopicName, TopicId>,
    /// How many of them each namespace has.
    pub new_per_namespace: HashMap<Namespace, usize>,
    /// How many topics it may create.
    pub topics_left: usize,
    /// The topic of the last new item: a call's items mostly have the same one.
    pub last_topic: Option<(TopicName, TopicId)>,
    /// The highest values given out, this batch included.
    pub marks: HighWaterMarks,
    /// Settlements of deliveries that are over.
    pub stale: Vec<SettleRequest>,
    /// Polls whose at-most-once items have all expired.
    pub nothing_consumed: Vec<u64>,
    /// Changes of items that can't be made, or shall not.
    pub not_changed: Vec<(ChangeRequest, ChangeResult)>,
    /// Topics that memory forgets.
    pub dropped: Vec<TopicId>,
    /// Changes with them to the counts of forgotten topics.
    pub forgotten: ForgottenChange,
    /// How counts change.
    deltas: BTreeMap<TopicId, TopicCounts>,
    /// The tallies of items and deliveries.
    tallies: BTreeMap<TopicId, Tally>,
    /// Positions of each lease row that are closed.
    closing: BTreeMap<u64, Vec<usize>>,
    /// The earliest rows that it adds to the sweeps' tables.
    pub added: EarliestRows,
    /// Dead letters of dormant topics that it deletes.
    dormant_losses: BTreeMap<TopicId, i64>,
    /// Dead letters among them that are not items again. Their topics are forgotten, so their namespaces
    /// count them.
    pub removed_dormant: RemovedDormant,
}

/// The result of building.
pub(crate) struct BuiltBatch {
    /// The batch, if anything waited.
    pub batch: Option<Batch>,
    /// It must not be cut: see [`InFlight::is_atomic`].
    pub atomic: bool,
    /// How many rows it has.
    pub rows: usize,
    /// Settlements of deliveries that are over.
    pub stale: Vec<SettleRequest>,
    /// Polls that were to take at-most-once items, all of which have expired: there is nothing to wait for.
    pub nothing_consumed: Vec<u64>,
    /// Changes of items that can't be made, or shall not, and what is told.
    pub not_changed: Vec<(ChangeRequest, ChangeResult)>,
    /// Polls that wait no more: they get something of this batch.
    pub handed_off: BTreeSet<u64>,
}

impl BuiltBatch {
    /// There is nothing to commit.
    pub fn nothing() -> Self {
        let (stale, nothing_consumed, not_changed) = (Vec::new(), Vec::new(), Vec::new());
        let handed_off = BTreeSet::new();
        Self { batch: None, atomic: false, rows: 0, stale, nothing_consumed, not_changed, handed_off }
    }
}

impl<'a> BatchBuilder<'a> {
    /// An empty batch.
    pub fn new(
        shard: &'a mut OwnedShard,
        moment: Moment,
        allowed: Need,
        rng: &'a mut StdRng,
        topics_left: usize,
        set: &'a SettingsTable,
    ) -> Self {
        let marks = shard.tenure.marks;
        let rows_max = shard.commit.rows_max.unwrap_or(shard.settings.batch_rows);
        Self {
            moment,
            rng,
            set,
            batch: Batch { number: shard.tenure.batch + 1, ..Batch::default() },
            planned: Vec::new(),
            page: None,
            operation: None,
            rows_max,
            allowed,
            prices: shard.prices(rows_max, moment.at),
            rows: 0,
            spent: 0,
            counts: RowCounts::default(),
            bytes: 0,
            body_bytes: 0,
            claims: Claims::default(),
            new_topics: HashMap::new(),
            new_per_namespace: HashMap::new(),
            topics_left,
            last_topic: None,
            marks: HighWaterMarks { time: marks.time.max(moment.now), ..marks },
            stale: Vec::new(),
            nothing_consumed: Vec::new(),
            not_changed: Vec::new(),
            dropped: Vec::new(),
            forgotten: ForgottenChange::default(),
            deltas: BTreeMap::new(),
            tallies: BTreeMap::new(),
            closing: BTreeMap::new(),
            added: EarliestRows::nothing(),
            dormant_losses: BTreeMap::new(),
            removed_dormant: RemovedDormant::new(),
            shard,
        }
    }

    /// The settings of a topic. An absent one is as the node has it.
    pub fn settings_of(&self, topic: TopicId) -> TopicSettings {
        self.shard.contents.topics.get(topic).map(|topic| self.set.of_topic(&topic.name)).unwrap_or_default()
    }

    /// When a dead letter of a topic is deleted that died at this time.
    pub fn dead_letter_end(&self, name: &TopicName, died_at: Timestamp) -> Timestamp {
        let set = self.set.of_topic(name).dead_letter_retention;
        self.shard.settings.dead_letter_end(set, &name.namespace, died_at)
    }

    /// Rows of a sweep's page that it may deal with.
    pub fn page_rows_max(&self) -> usize {
        if self.is_bisecting() { self.rows_max } else { usize::MAX }
    }

    /// Whether it may do upkeep beside what waits: fold counts, rewrite a lease row, drop topics. While a bad
    /// row is searched, upkeep stands alone.
    pub fn may_do_upkeep(&self) -> bool {
        let alone = self.rows == 0 && self.page.is_none() && self.operation.is_none();
        self.moment.at >= self.shard.upkeep.not_before && (alone || !self.is_bisecting())
    }

    /// Records the sets of shards, if they have changed. Keys wait for that, so it comes first, and alone:
    /// nothing else can make it fail.
    pub fn record_topology(&mut self) -> bool {
        if self.allowed < Need::Rows {
            return false;
        }
        self.batch.topology_history = self.shard.record_due(self.moment.at).cloned();
        let is_due = self.batch.topology_history.is_some();
        self.spend(RowKind::Other, usize::from(is_due));
        is_due
    }

    /// A row of the last batch can't be stored, so this one is short.
    pub fn is_bisecting(&self) -> bool {
        self.shard.commit.rows_max.is_some()
    }

    /// The batch has so many rows more of a kind.
    pub fn spend(&mut self, kind: RowKind, rows: usize) {
        self.rows += rows;
        self.note(kind, rows);
    }

    /// It has so many more of what is not counted as rows, or is counted elsewhere.
    pub fn note(&mut self, kind: RowKind, count: usize) {
        self.counts.add(kind, count);
        self.spent += self.prices.of(kind) * count;
    }

    /// It has so many bytes more of bodies.
    pub fn note_bytes(&mut self, bytes: usize) {
        self.body_bytes += bytes;
        self.spent += self.prices.of_bytes(bytes);
    }

    /// The rest that may be spent until the batch has cost so much.
    pub fn left(&self, most: usize) -> usize {
        most.saturating_sub(self.spent)
    }

    /// How a topic's counts change.
    pub fn count(&mut self, topic: TopicId, ready: i64, scheduled: i64, dead: i64) {
        let delta = self.deltas.entry(topic).or_default();
        delta.ready += ready;
        delta.scheduled += scheduled;
        delta.dead += dead;
    }

    /// The tally of a topic's items and deliveries.
    pub fn tally(&mut self, topic: TopicId) -> &mut Tally {
        self.tallies.entry(topic).or_default()
    }

    /// Whether the batch changes a topic's counts.
    pub fn counts(&self, topic: TopicId) -> bool {
        self.deltas.contains_key(&topic) || self.tallies.contains_key(&topic)
    }

    /// An item's row is deleted, with its expiry.
    pub fn delete(&mut self, topic: TopicId, seq: Seq, expires_at: Option<Timestamp>) {
        self.batch.deletes.push(seq);
        if let Some(at) = expires_at {
            self.batch.expiry_deletes.push(DueKey { at, seq });
        }
        self.count(topic, -1, 0, 0);
    }

    /// An `expiry` row is added, if the item expires.
    pub fn adds_expiry(&mut self, at: Option<Timestamp>) {
        self.added.add(Sweep::Expiry, at.unwrap_or(Timestamp::MAX));
    }

    /// A dead letter is deleted, since its retention is over.
    pub fn delete_dead_letter(&mut self, topic: TopicId, namespace: &Namespace, seq: Seq) {
        self.batch.dead_letter_deletes.push(seq);
        self.claims.insert(seq);
        self.remove_dead_letter(topic, namespace);
    }

    /// A dead letter is gone, or an item of another topic.
    pub fn remove_dead_letter(&mut self, topic: TopicId, namespace: &Namespace) {
        self.lose_dead_letter(topic);
        if self.shard.contents.topics.get(topic).is_some() {
            self.tally(topic).removed += 1;
        } else {
            *self.removed_dormant.entry((namespace.clone(), topic)).or_default() += 1;
        }
    }

    /// A topic has one dead letter less. It may be dormant: then nobody counts its dead letters in memory.
    pub fn lose_dead_letter(&mut self, topic: TopicId) {
        match self.shard.contents.topics.get(topic) {
            Some(_) => self.count(topic, 0, 0, -1),
            None => *self.dormant_losses.entry(topic).or_default() += 1,
        }
    }

    /// An operator removes an item: its dedupe key is free then, in the same batch. On a full disk it stays
    /// taken, since that takes a row.
    pub fn free_key(&mut self, seq: Seq, enqueued_at: Timestamp) {
        let now = self.marks.time;
        if self.allowed < Need::Items || !self.shard.may_be_keyed(enqueued_at, now) || on(Bug::KeyNotFreed) {
            return;
        }
        if let Some(generation) = self.shard.upkeep.generations.current(now) {
            self.batch.dedupes.push(DedupeEntry { generation, hash: removal(seq), answer: Vec::new() });
        }
    }

    /// A delivery ends.
    pub fn close(&mut self, at: LeasePosition) {
        self.closing.entry(at.row).or_default().push(at.position);
    }

    /// Puts the batch in flight, if it has anything to do.
    pub fn finish(self, handed_off: BTreeSet<u64>) -> BuiltBatch {
        if self.rows == 0 && self.page.is_none() {
            let Self { stale, nothing_consumed, not_changed, .. } = self;
            return BuiltBatch { stale, nothing_consumed, not_changed, handed_off, ..BuiltBatch::nothing() };
        }
        self.into_batch(handed_off)
    }

    /// The batch that does nothing but pass the fence.
    pub fn finish_probe(self) -> BuiltBatch {
        self.into_batch(BTreeSet::new())
    }

    fn into_batch(mut self, handed_off: BTreeSet<u64>) -> BuiltBatch {
        for (id, positions) in &self.closing {
            self.batch.lease_changes.extend(self.shard.contents.leases.after_closing(*id, positions));
        }
        let lowered = self.move_checkpoints();
        self.deltas.retain(|_, delta| *delta != TopicCounts::default());
        self.tallies.retain(|_, tally| *tally != Tally::default());
        let does_something = self.rows > 0 || self.page.is_some();
        let folds = match does_something && self.may_do_upkeep() {
            true => {
                let (now, is_shared) = (self.marks.time, self.shard.commit.company.is_there(self.moment.at));
                self.shard.contents.topics.fold(&mut self.batch, &self.deltas, &self.tallies, now, is_shared)
            }
            false => Vec::new(),
        };
        self.counts.add(RowKind::Fold, self.batch.folds.len());
        self.batch.tallies = self.tallies.into_iter().collect();
        self.batch.count_deltas = self.deltas.into_iter().collect();
        self.batch.dormant_losses = self.dormant_losses.into_iter().collect();
        self.batch.marks = Some(self.marks);
        self.counts.add(RowKind::Kibibyte, self.body_bytes >> 10);
        let in_flight = InFlight {
            number: self.batch.number,
            sent_at: self.moment.at,
            rows: self.rows,
            counts: self.counts,
            need: Need::of(&self.batch),
            topology: self.batch.topology_history.clone(),
            marks: self.marks,
            new_topics: self.batch.new_topics.clone(),
            dropped: self.dropped,
            forgotten: self.forgotten,
            dead_letter_deletes: self.batch.dead_letter_deletes.len() as u64,
            dormant_losses: self.batch.dormant_losses.iter().map(|(_, losses)| losses).sum(),
            deltas: self.batch.count_deltas.clone(),
            tallies: self.batch.tallies.clone(),
            folds,
            deltas_from: self.batch.drop_deltas.as_ref().map(|range| range.end),
            leases: self.batch.leases.clone(),
            planned: self.planned,
            claims: self.claims,
            page: self.page,
            operation: self.operation,
            operation_deletes: self.batch.operation_deletes.clone(),
            lowered,
            added: self.added,
            scheduled: spans::scheduled(&self.batch, &self.shard.tenure.spans),
            put_offs: self.batch.put_offs.iter().map(|row| row.seq).collect(),
        };
        let (atomic, rows) = (in_flight.is_atomic(), in_flight.rows);
        self.shard.commit.in_flight = Some(in_flight);
        self.shard.commit.stalled_since.get_or_insert(self.moment.at);
        let (batch, stale, nothing_consumed) = (Some(self.batch), self.stale, self.nothing_consumed);
        BuiltBatch { batch, atomic, rows, stale, nothing_consumed, not_changed: self.not_changed, handed_off }
    }

    /// Moves the checkpoints of sweeps with the page, or back to a row that is added below them. Returns
    /// those that go back.
    fn move_checkpoints(&mut self) -> Vec<Checkpoint> {
        let mut lowered = Vec::new();
        for sweep in Sweep::ALL {
            let (checkpoint, added) = (self.shard.upkeep.sweeps.get(sweep).checkpoint, self.added.of(sweep));
            match self.page.as_ref().filter(|planned| planned.page.sweep == sweep) {
                Some(planned) if planned.checkpoint != checkpoint => {
                    self.batch.checkpoints.push(Checkpoint { sweep, at: planned.checkpoint });
                }
                None if added < checkpoint => {
                    self.batch.checkpoints.push(Checkpoint { sweep, at: added });
                    lowered.push(Checkpoint { sweep, at: added });
                }
                _ => {}
            }
        }
        lowered
    }
}
