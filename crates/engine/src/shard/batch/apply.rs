//! Applies a committed batch to the shard's memory, and returns what it did. Nobody is answered before the
//! whole batch is in memory.

use std::{collections::BTreeMap, time::Duration};

use forebay_store::{DueItem, LeaseEntry, ShardTopology, Sweep};
use forebay_types::{Monotonic, Namespace, Seq, State, TopicName};
use rustc_hash::FxHashSet;

use crate::{
    planted::{Bug, on},
    shard::{
        OwnedShard,
        commit::in_flight::{
            OperationEffect, PlannedAction, PlannedPage, PlannedSettle, SettleEffect, StoredItem, UpdatedItem,
        },
        contents::topics::{rates::Flow, table::NamedTopic},
        intake::dedupe::keys::Duplicate,
        upkeep::operation::verbs::PageOutcome,
        work::{AdmittedItem, ReadyItem},
    },
};

/// The longest time for which leases are not timed out after an outage.
pub(crate) const TIMEOUT_GRACE_MAX: Duration = Duration::from_secs(5);
/// The shortest such time after a change of owner, however short that was.
pub(crate) const TIMEOUT_GRACE_MIN: Duration = Duration::from_secs(1);
/// A shard that committed nothing for so long, although it tried, was away.
const OUTAGE_MIN: Duration = Duration::from_secs(1);

/// The results of a committed batch, for the callers that wait for it.
pub(crate) struct CommittedBatch {
    /// The epoch in which the shard is owned.
    pub epoch: u64,
    /// The number of its batch.
    pub number: u64,
    /// How many rows it has written.
    pub rows: usize,
    /// How long the commit took.
    pub took: Duration,
    /// Topics that it created.
    pub new_topics: Vec<NamedTopic>,
    /// Topics that memory forgot.
    pub dropped: Vec<NamedTopic>,
    /// The work that it did, in the order in which it is answered.
    pub done: Vec<PlannedAction>,
    /// The flows of its topics.
    pub flows: Vec<(TopicName, Flow)>,
    /// How many items the expiry sweep deleted, by namespace.
    pub expired: BTreeMap<Namespace, u64>,
    /// Dead letters that were kept for long enough.
    pub dead_letters_deleted: u64,
    /// The result of an operation's page.
    pub operated: Option<PageOutcome>,
    /// Topics whose windows were read on.
    pub fetched: Vec<TopicName>,
    /// Items that waited for a key which the batch stored.
    pub duplicates: Vec<Duplicate>,
    /// The sets of shards that it recorded: keys on every shard may have waited for that.
    pub topology: Option<ShardTopology>,
}

impl OwnedShard {
    /// The batch in flight is committed, after so long. `last` is its number, or that of the empty batch that
    /// confirmed it.
    pub fn committed(&mut self, last: u64, at: Monotonic, took: Duration) -> Option<CommittedBatch> {
        let mut batch = self.commit.in_flight.take()?;
        self.tenure.committed(&batch, last, took);
        self.recovered(at);
        if last == batch.number {
            // A caller that waits for it waits for the event loop too, which has as much to do for each row.
            self.commit.row_costs.learn(batch.counts, took.max(at.since(batch.sent_at)));
        }
        let topology = batch.topology.take();
        // Another set may have become known since.
        self.upkeep.next_record.take_if(|next| Some(&next.topology) == topology.as_ref());
        if self.commit.disk.went_through(batch.need) {
            let id = self.id;
            tracing::info!(shard.id = id.0, "the disk of shard {id} has room again");
        }
        // After a row that can't be stored, batches grow again with each one that is committed.
        let whole = self.settings.batch_rows;
        self.commit.rows_max = self.commit.rows_max.map(|rows| rows * 2).filter(|rows| *rows < whole);

        let new_rows = std::mem::take(&mut batch.new_topics);
        let new_topics = new_rows.into_iter().map(|row| self.contents.topics.add_new(row, at)).collect();
        let dropped = batch.dropped.iter().filter_map(|id| self.contents.topics.remove(*id)).collect();
        self.contents.topics.forgotten.apply(std::mem::take(&mut batch.forgotten));
        self.contents.topics.lost_dormant(batch.dormant_losses);
        let mut flows = self.contents.topics.apply_counts(&batch, at);
        // Deliveries end before others begin: an extended one does both.
        let mut done = std::mem::take(&mut batch.planned);
        done.iter().for_each(|planned| self.end_delivery(planned));
        let leases = std::mem::take(&mut batch.leases);
        self.contents.topics.count_deliveries(&batch, &leases, at, &mut flows);
        self.begin_deliveries(batch.number, leases);
        let mut duplicates = Vec::new();
        done.iter().for_each(|planned| self.apply(planned, &mut duplicates));
        self.apply_changes(&mut done);
        self.scheduled(&batch);
        self.upkeep.sweeps.apply(&batch);
        batch.operation_deletes.iter().for_each(|id| self.upkeep.operations.forget(*id));
        let page = batch.page.take();
        let expired = page.map(|page| self.apply_page(page, &batch.put_offs, at)).unwrap_or_default();
        let shared = !done.is_empty() || self.waiting_rows() > 0;
        let operated = batch.operation.take().map(|page| self.apply_operation(page, shared, at));
        self.evict();
        let fetched = self.apply_prefetches();
        self.debug_check();
        Some(CommittedBatch {
            epoch: self.tenure.epoch,
            number: batch.number,
            rows: batch.rows,
            took,
            new_topics,
            dropped,
            done,
            flows,
            expired,
            dead_letters_deleted: batch.dead_letter_deletes,
            operated,
            fetched,
            duplicates,
            topology,
        })
    }

    /// Batches are committed again. After an outage leases are left alone for as long as it took, at most
    /// [`TIMEOUT_GRACE_MAX`], so that acks on their way come first.
    fn recovered(&mut self, at: Monotonic) {
        let outage = self.commit.stalled_since.take().map_or(Duration::ZERO, |since| at.since(since));
        if outage >= OUTAGE_MIN {
            self.commit.timeouts_after =
                self.commit.timeouts_after.max(at.plus(outage.min(TIMEOUT_GRACE_MAX)));
        }
    }

    /// Deliveries begin.
    pub(super) fn begin_deliveries(&mut self, batch: u64, entries: Vec<LeaseEntry>) {
        for of_topic in entries.chunk_by(|one, other| one.topic == other.topic) {
            if let Some(topic) = of_topic.first().and_then(|entry| self.contents.topics.get(entry.topic)) {
                self.contents.tenants.leased(&topic.name.namespace, of_topic.len());
            }
        }
        self.contents.leases.begin(batch, entries);
    }

    /// A delivery is over, or begins anew in another lease row.
    fn close_delivery(&mut self, seq: Seq) {
        if let Some(topic) = self.contents.leases.close(seq).and_then(|topic| self.contents.topics.get(topic))
        {
            self.contents.tenants.ended(&topic.name.namespace);
        }
    }

    /// Applies one thing that the batch did, but for ends of deliveries.
    fn apply(&mut self, planned: &PlannedAction, duplicates: &mut Vec<Duplicate>) {
        match planned {
            PlannedAction::Enqueue { part, results } => {
                for (item, result) in part.items.iter().zip(results) {
                    let Ok(stored) = result else { continue };
                    self.stored(item, stored);
                    if let Some(key) = item.dedupe {
                        self.answer_line(key.own, stored.key.seq, duplicates);
                    }
                }
                self.free(part);
            }
            PlannedAction::Lease { part, .. } => {
                for reserved in &part.items {
                    self.clear_reservation(reserved.topic, reserved.key.seq, reserved.item.bytes);
                    self.invalidate(reserved.topic, reserved.key.seq);
                }
            }
            PlannedAction::Restore(reserved) => {
                let (topic, key) = (reserved.topic, reserved.key);
                self.end_restore(topic);
                self.invalidate(topic, key.seq);
                let item = reserved.item.clone();
                self.contents.topics.with_window(topic, |window| window.add(key, item));
            }
            // Handed off items were never in a window, and ends are applied before.
            PlannedAction::HandOff { .. } | PlannedAction::Settle(_) | PlannedAction::MoveLease(_) => {}
            PlannedAction::Order(order) => {
                if let Ok(row) = &order.result {
                    self.upkeep.operations.put(row.clone());
                }
            }
            // See `apply_changes`.
            PlannedAction::Change(_) => {}
        }
    }

    /// Applies changes of items in memory.
    fn apply_changes(&mut self, done: &mut [PlannedAction]) {
        for planned in done {
            if let PlannedAction::Change(change) = planned
                && let Some(effect) = change.effect.take()
            {
                self.apply_effect(effect);
            }
        }
    }

    /// A delivery ends, or moves to another lease row.
    fn end_delivery(&mut self, planned: &PlannedAction) {
        match planned {
            PlannedAction::Settle(settle) => self.settled(settle),
            PlannedAction::MoveLease(seq) => self.close_delivery(*seq),
            PlannedAction::Enqueue { .. }
            | PlannedAction::Lease { .. }
            | PlannedAction::HandOff { .. }
            | PlannedAction::Restore(_)
            | PlannedAction::Order(_)
            | PlannedAction::Change(_) => {}
        }
    }

    /// A new item is in the store.
    fn stored(&mut self, item: &AdmittedItem, stored: &StoredItem) {
        let StoredItem { topic, key, state, handed_off } = *stored;
        if state == State::Ready {
            self.contents.topics.with_window(topic, |window| {
                // An item that stays in the store alone need not be copied.
                if window.wants(key) && (!handed_off || on(Bug::HandedOffStaysReady)) {
                    window.add(key, item.cached_item());
                } else {
                    window.invalidate(key.seq);
                }
            });
        }
        self.contents.topics.mark_changed(topic);
    }

    /// A delivery ended, or continues.
    fn settled(&mut self, settle: &PlannedSettle) {
        let (topic, seq) = (settle.lease.topic, settle.lease.seq);
        self.close_delivery(seq);
        self.invalidate(topic, seq);
        if let SettleEffect::Ready(key, item) = &settle.effect {
            self.contents.topics.with_window(topic, |window| window.add(*key, item.clone()));
        }
    }

    /// A sweep's page was committed. Returns how many items expired, by namespace.
    fn apply_page(
        &mut self,
        mut planned: PlannedPage,
        put_off: &FxHashSet<Seq>,
        at: Monotonic,
    ) -> BTreeMap<Namespace, u64> {
        let (mut moved, mut expired, mut left_some) = (0, BTreeMap::new(), false);
        let (sweep, rows) = (planned.page.sweep, std::mem::take(&mut planned.page.rows));
        for (row, done) in rows.into_iter().zip(&planned.done) {
            if !done {
                left_some |= !self.upkeep.sweeps.get(sweep).is_parked(row.seq);
                continue;
            }
            moved += 1;
            match (sweep, row.item) {
                (Sweep::Due, _) if put_off.contains(&row.seq) => {
                    moved -= 1;
                    self.upkeep.operations.invalidate(row.seq);
                    self.intake.changes.invalidate(row.seq);
                }
                (Sweep::Due, DueItem::Scheduled(item) | DueItem::Ready(item)) => {
                    self.invalidate(row.topic, row.seq);
                    let (key, item) = ReadyItem::from_row(item);
                    self.contents.topics.with_window(row.topic, |window| window.add(key, item));
                }
                (Sweep::Expiry, DueItem::Scheduled(item) | DueItem::Ready(item)) => {
                    if !self.is_leased(row.seq) {
                        self.invalidate(row.topic, row.seq);
                        self.contents.topics.with_window(row.topic, |window| window.remove(item.key));
                        *expired.entry(self.namespace_of(row.topic)).or_default() += 1;
                    }
                }
                // No window holds a dead letter.
                (Sweep::Retention, _) | (_, DueItem::DeadLetter { .. }) => {
                    self.upkeep.operations.invalidate(row.seq);
                    self.intake.changes.invalidate(row.seq);
                }
            }
        }
        metrics::counter!(
            "forebay_sweep_moved_rows_total", "shard" => self.id.to_string(), "sweep" => sweep.name()
        )
        .increment(moved as u64);
        self.upkeep.sweeps.page_committed(&planned, moved, left_some, at);
        expired
    }

    /// Applies a committed effect of an operation, or of a change of an item, in memory.
    pub(in crate::shard) fn apply_effect(&mut self, effect: OperationEffect) {
        match effect {
            OperationEffect::Purged(topic, key, _) => {
                self.invalidate(topic, key.seq);
                self.contents.topics.mark_changed(topic);
            }
            OperationEffect::DeadLetterGone(seq) => {
                self.upkeep.sweeps.invalidate(seq);
                self.upkeep.operations.invalidate(seq);
                self.intake.changes.invalidate(seq);
            }
            OperationEffect::Redriven(topic, key, item) => {
                self.invalidate(topic, key.seq);
                self.contents.topics.with_window(topic, |window| window.add(key, item));
            }
            OperationEffect::Updated(updated) => {
                let UpdatedItem { topic, before, ready, .. } = *updated;
                self.invalidate(topic, before.seq);
                self.contents.topics.mark_changed(topic);
                if let Some((key, item)) = ready {
                    let key = if on(Bug::UpdateKeepsPlace) { before } else { key };
                    self.contents.topics.with_window(topic, |window| window.add(key, item));
                }
            }
        }
    }
}
