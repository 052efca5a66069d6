//! Undoes a batch that did not happen: what was in it waits again, or is refused.

use std::time::Duration;

use forebay_types::{ItemId, Monotonic, Reason, Refusal, Seq, TopicName};

use crate::{
    api::RETRY_AFTER,
    planted::{Bug, on},
    shard::{
        OwnedShard,
        commit::{
            disk_room::{Need, disk_full},
            in_flight::{
                InFlight, OperationEffect, PlannedAction, PlannedChange, PlannedOperation, PlannedPage,
                PlannedSettle,
            },
        },
        work::{NOBODY, SettleKind, ShardEnqueue},
    },
};

/// Upkeep is left out for so long after the database refused it.
const UPKEEP_PAUSE: Duration = Duration::from_secs(60);
/// A lease whose end can't be stored lasts so much longer.
const PARKED_LEASE: Duration = Duration::from_secs(600);

/// Consequences for callers of a batch that did not happen.
pub(crate) struct UndoneBatch {
    /// Polls that wait again: nothing was handed to them.
    pub handoffs_cancelled: Vec<u64>,
    /// The work of the batch that is refused.
    pub refused: Vec<PlannedAction>,
    /// The enqueues behind it that are refused.
    pub refused_waiting: Vec<ShardEnqueue>,
    /// The refusal that their callers get.
    pub refusal: Refusal,
    /// Topics whose windows were read on.
    pub fetched: Vec<TopicName>,
}

impl OwnedShard {
    /// One of the batch's rows can't be stored. First its upkeep is left out. Then the next batch is half as
    /// long, until the row is alone: it is refused or left alone. `bad`: the items that can't be stored,
    /// where the batch must not be cut.
    pub fn unstorable(&mut self, why: &str, bad: &[Seq], at: Monotonic) -> Option<UndoneBatch> {
        let message = format!("the database cannot store this item: {why}");
        self.row_refused(why, bad, Refusal::new(Reason::InvalidField, message), at)
    }

    /// The same of a row whose key is there already. Its caller can do nothing about that.
    pub fn duplicate(&mut self, why: &str, at: Monotonic) -> Option<UndoneBatch> {
        let message = format!("shard {} holds another row with the number of this item: {why}", self.id);
        let refusal = Refusal::new(Reason::ShardUnavailable, message).retry_after(RETRY_AFTER);
        self.row_refused(why, &[], refusal, at)
    }

    fn row_refused(
        &mut self,
        why: &str,
        bad: &[Seq],
        refusal: Refusal,
        at: Monotonic,
    ) -> Option<UndoneBatch> {
        let mut batch = self.commit.in_flight.take()?;
        // The server answers: this is no outage.
        self.commit.stalled_since = None;
        let (id, rows) = (self.id, batch.rows);
        tracing::warn!(
            shard.id = id.0,
            rows,
            why,
            "the database refused a row of a batch of shard {id}; isolating it"
        );
        if batch.does_upkeep() {
            self.leave_out_upkeep(&batch, why, at);
            let handoffs_cancelled = self.requeue(batch);
            return Some(self.undone(handoffs_cancelled, Vec::new(), refusal));
        }
        let alone = rows <= 1 || batch.only().is_some_and(PlannedAction::is_unit);
        if !bad.is_empty() {
            // The call is one unit: it is stored without them, and their refusal with it.
            batch.planned.iter_mut().for_each(|planned| refuse_items(planned, bad, &refusal));
            let handoffs_cancelled = self.requeue(batch);
            return Some(self.undone(handoffs_cancelled, Vec::new(), refusal));
        }
        if !alone && !on(Bug::PoisonFailsAll) {
            // A batch may be longer than it was to be: what is not cut.
            let rows = self.commit.rows_max.map_or(rows, |most| most.min(rows));
            self.commit.rows_max = Some((rows / 2).max(1));
            let handoffs_cancelled = self.requeue(batch);
            return Some(self.undone(handoffs_cancelled, Vec::new(), refusal));
        }
        self.commit.rows_max = None;
        if let Some(page) = batch.page {
            self.park_row(&page, why, at);
        }
        if let Some(operation) = batch.operation {
            self.park_item(operation, &batch.planned, why);
        }
        batch.planned.iter().for_each(|planned| self.leave_alone(planned, why));
        Some(self.undone(Vec::new(), batch.planned, refusal))
    }

    /// A batch with upkeep can't be stored. What waits is not held up by that.
    fn leave_out_upkeep(&mut self, batch: &InFlight, why: &str, at: Monotonic) {
        match batch.topology {
            Some(_) => self.upkeep.topology_after = at.plus(UPKEEP_PAUSE),
            None => self.upkeep.not_before = at.plus(UPKEEP_PAUSE),
        }
        if batch.is_upkeep() {
            let id = self.id;
            tracing::error!(
                shard.id = id.0,
                why,
                "the database refuses the upkeep of shard {id}; leaving it out for a minute"
            );
        }
    }

    /// The only row of a sweep's page that the batch dealt with can't be stored.
    fn park_row(&mut self, planned: &PlannedPage, why: &str, at: Monotonic) {
        let (sweep, rows) = (planned.page.sweep, planned.page.rows.iter().zip(&planned.done));
        let bad = rows.filter(|(_, done)| **done).map(|(row, _)| row.seq).last();
        if let Some(seq) = bad {
            self.log_left_alone(seq, why);
        }
        self.upkeep.sweeps.park(sweep, bad, at);
    }

    /// The only item of an operation's page that the batch changed can't be.
    fn park_item(&mut self, operation: PlannedOperation, planned: &[PlannedAction], why: &str) {
        let waiting = operation.effects.first().map(|effect| match effect {
            OperationEffect::Purged(_, key, _) | OperationEffect::Redriven(_, key, _) => key.seq,
            OperationEffect::DeadLetterGone(seq) => *seq,
            OperationEffect::Updated(updated) => updated.before.seq,
        });
        let leased = planned.iter().find_map(|planned| match planned {
            PlannedAction::Settle(settle) if settle.request.kind.is_of_operation() => Some(settle.lease.seq),
            _ => None,
        });
        let changed = waiting.or(leased);
        if let Some(seq) = changed {
            self.log_left_alone(seq, why);
        }
        let page = self.undo_operation(operation);
        self.upkeep.operations.park(page.id, changed);
    }

    /// Something that nobody waits for can't be stored.
    fn leave_alone(&mut self, planned: &PlannedAction, why: &str) {
        match planned {
            // It was to be delivered at most once, and was.
            PlannedAction::Restore(reserved) => {
                self.log_left_alone(reserved.key.seq, why);
                self.end_restore(reserved.topic);
            }
            // See `park_item`.
            PlannedAction::Settle(settle) if settle.request.kind.is_of_operation() => {}
            PlannedAction::Settle(settle) if settle.request.slot.is_none() => {
                self.log_left_alone(settle.lease.seq, why);
                // The request of a caller that waits no more has no say in when the lease ends.
                if matches!(settle.request.kind, SettleKind::LeaseTimeout | SettleKind::FetchTimeout) {
                    let deadline = settle.lease.deadline.plus(PARKED_LEASE);
                    self.contents.leases.postpone(settle.lease.seq, deadline);
                }
            }
            _ => {}
        }
    }

    fn log_left_alone(&self, seq: Seq, why: &str) {
        let item = ItemId { shard: self.id, seq };
        metrics::counter!("forebay_unstorable_changes_total").increment(1);
        tracing::error!(
            shard.id = self.id.0,
            %item,
            why,
            "the database refuses a change of item {item} that no caller waits for; leaving it alone"
        );
    }

    /// The disk is full: enqueues are refused, leases too where not even these have room. The rest of what
    /// needs room is held back for a while.
    pub fn disk_full(&mut self, at: Monotonic) -> Option<UndoneBatch> {
        let mut batch = self.commit.in_flight.take()?;
        let (is_new, until) = self.commit.disk.full(batch.need, at);
        self.intake.budget.set_disk_full(until);
        metrics::counter!("forebay_disk_full_batches_total").increment(1);
        if is_new {
            let id = self.id;
            tracing::error!(
                shard.id = id.0,
                "the disk of shard {id} is full; refusing new items, holding back what needs room"
            );
        }
        let no_leases = batch.need <= Need::Rows;
        let (refused, rest): (Vec<PlannedAction>, Vec<PlannedAction>) =
            batch.planned.into_iter().partition(|planned| match planned {
                PlannedAction::Enqueue { .. } => true,
                PlannedAction::Lease { .. } => no_leases,
                _ => false,
            });
        batch.planned = rest;
        let handoffs_cancelled = self.requeue(batch);
        if self.intake.settles.is_empty() {
            self.commit.stalled_since = None;
        }
        let refused_waiting = self.intake.enqueues.drain();
        refused_waiting.iter().for_each(|part| self.free(part));
        let mut undone = self.undone(handoffs_cancelled, refused, disk_full(self.id));
        undone.refused_waiting = refused_waiting;
        Some(undone)
    }

    /// Releases what is refused, and uses what was read while the batch was in flight.
    fn undone(
        &mut self,
        handoffs_cancelled: Vec<u64>,
        mut refused: Vec<PlannedAction>,
        refusal: Refusal,
    ) -> UndoneBatch {
        for planned in &mut refused {
            match planned {
                PlannedAction::Enqueue { part, .. } => self.free(part),
                PlannedAction::Lease { part, .. } => self.unreserve(part.items.clone()),
                PlannedAction::HandOff { .. }
                | PlannedAction::Settle(_)
                | PlannedAction::Restore(_)
                | PlannedAction::MoveLease(_)
                | PlannedAction::Order(_) => {}
                PlannedAction::Change(change) => {
                    change.effect.take().into_iter().for_each(|effect| self.undo_effect(effect));
                }
            }
        }
        self.contents.topics.void_reads();
        self.intake.changes.void_reads();
        let fetched = self.apply_prefetches();
        self.debug_check();
        UndoneBatch { handoffs_cancelled, refused, refused_waiting: Vec::new(), refusal, fetched }
    }

    /// Puts everything that was in a batch back where it waited. Returns the polls that were to be handed
    /// something.
    fn requeue(&mut self, batch: InFlight) -> Vec<u64> {
        let mut handoffs = Vec::new();
        if on(Bug::UndoneCounted) {
            self.contents.topics.apply_tallies(&batch.tallies, batch.marks.time);
        }
        self.contents.topics.forgotten.undo(batch.forgotten);
        for planned in batch.planned.into_iter().rev() {
            match planned {
                PlannedAction::Enqueue { part, .. } => self.intake.enqueues.put_back(part),
                PlannedAction::Lease { part, .. } if part.poll == NOBODY => self.unreserve(part.items),
                PlannedAction::Lease { part, .. } => self.intake.leasing.put_back(part),
                // Leases that timed out are found again by themselves, and so is what an operation does.
                PlannedAction::Settle(settle) if settle.request.kind.is_found_again() => {}
                PlannedAction::Settle(settle) => {
                    let PlannedSettle { request, repeats, .. } = *settle;
                    repeats.into_iter().rev().for_each(|request| self.intake.settles.put_back(request));
                    self.intake.settles.put_back(request);
                }
                PlannedAction::Restore(reserved) => self.intake.restores.put_back(self.restore_of(*reserved)),
                PlannedAction::HandOff { part, .. } => handoffs.push(part.poll),
                PlannedAction::MoveLease(_) => {}
                PlannedAction::Order(order) => self.upkeep.operations.put_order_back(order.request),
                PlannedAction::Change(change) => {
                    let PlannedChange { request, effect, .. } = *change;
                    effect.into_iter().for_each(|effect| self.undo_effect(effect));
                    self.intake.changes.again(request);
                }
            }
        }
        self.put_back_page(batch.page);
        if let Some(operation) = batch.operation {
            let page = self.undo_operation(operation);
            self.upkeep.operations.put_back(page);
        }
        handoffs
    }

    fn put_back_page(&mut self, page: Option<PlannedPage>) {
        if let Some(PlannedPage { page, .. }) = page {
            self.upkeep.sweeps.put_back(page);
        }
    }

    /// It did not happen.
    pub(in crate::shard) fn undo_effect(&mut self, effect: OperationEffect) {
        let (topic, key, windowed) = match effect {
            OperationEffect::Purged(topic, key, windowed) => (topic, key, windowed),
            OperationEffect::Updated(updated) => (updated.topic, updated.before, updated.windowed),
            OperationEffect::DeadLetterGone(_) | OperationEffect::Redriven(..) => return,
        };
        if let Some(item) = windowed {
            self.contents.topics.with_window(topic, |window| window.add(key, item));
        }
    }
}

/// Items with these numbers are not to be stored.
fn refuse_items(planned: &mut PlannedAction, bad: &[Seq], refusal: &Refusal) {
    let PlannedAction::Enqueue { part, results } = planned else { return };
    for (item, result) in part.items.iter_mut().zip(results) {
        if result.as_ref().is_ok_and(|stored| bad.contains(&stored.key.seq)) {
            item.refused = Some(refusal.clone());
        }
    }
}
