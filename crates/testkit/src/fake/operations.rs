//! Applies what operations do. CONSERVATION: a batch counts exactly what it changes, and what has ended
//! changes nothing.

use bytes::Bytes;
use forebay_store::{Batch, ItemRow, OperationKind, OperationRow, Redrive, UpdatedRow};
use forebay_types::{ItemAttributes, Seq, State, Timestamp};

use super::{
    change::{AppliedBatch, Change},
    tables::Tables,
};

/// Changes of a batch by the numbers of its operations.
#[derive(Debug, Default)]
struct OperationCounts {
    /// Items that are removed.
    items: u64,
    /// Dead letters that are removed.
    dead: u64,
    /// Items or dead letters that are removed.
    any: u64,
    /// Dead letters that become items again.
    redrives: u64,
    /// Items that get other values.
    updates: u64,
}

impl OperationCounts {
    /// Compares it with what the batch does change.
    fn check(&self, batch: &Batch, done: &mut AppliedBatch) {
        let len = |count: usize| count as u64;
        let (items, dead) = (len(batch.purges.len()), len(batch.dead_letter_purges.len()));
        let updates = len(batch.updates.iter().filter(|row| row.is_operated).count());
        let is_same = items + dead == self.items + self.dead + self.any
            && items >= self.items
            && dead >= self.dead
            && (len(batch.redrives.len()), updates) == (self.redrives, self.updates);
        if !is_same {
            let what = format!(
                "operations count {self:?}, and the batch removes {items} items and {dead} dead letters, \
                 redrives {} and updates {updates}",
                batch.redrives.len()
            );
            done.violation("CONSERVATION", what);
        }
    }
}

impl Tables {
    /// Deletes items and dead letters, and makes dead letters items again.
    pub(super) fn operate(&mut self, batch: &Batch, done: &mut AppliedBatch) {
        for seq in &batch.purges {
            done.items.insert(*seq);
            match self.take(*seq) {
                Some(row) => {
                    self.failures.remove(seq);
                    done.topics.insert(row.topic);
                    done.changes.push(Change::Purged(row));
                }
                None => done.violation("CONSERVATION", format!("item {} was purged and is missing", seq.0)),
            }
        }
        for seq in &batch.dead_letter_purges {
            if self.lose_dead(*seq, done).is_some() {
                done.changes.push(Change::DeadLetterPurged(*seq));
            }
        }
        for redrive in &batch.redrives {
            self.redrive(redrive, done);
        }
        self.cancel(batch, done);
    }

    /// Deletes what callers cancel.
    fn cancel(&mut self, batch: &Batch, done: &mut AppliedBatch) {
        for seq in &batch.cancels {
            done.items.insert(*seq);
            let Some(row) = self.take(*seq) else {
                done.violation("CONSERVATION", format!("item {} was cancelled and is missing", seq.0));
                continue;
            };
            self.failures.remove(seq);
            done.topics.insert(row.topic);
            done.changes.push(Change::Cancelled(row));
        }
        for seq in &batch.dead_letter_cancels {
            if self.lose_dead(*seq, done).is_some() {
                done.changes.push(Change::DeadLetterCancelled(*seq));
            }
        }
    }

    /// Gives an item other values. Its earlier rows of times are deleted before.
    pub(super) fn update(&mut self, updated: &UpdatedRow, done: &mut AppliedBatch) {
        let seq = updated.key.seq;
        done.items.insert(seq);
        let is_leased = self.lease_of(seq).is_some();
        let Some(mut row) = self.take(seq).filter(|_| !is_leased) else {
            let what = format!("item {} was updated and is missing, or leased", seq.0);
            return done.violation("CONSERVATION", what);
        };
        let due = (Timestamp::from_micros(updated.key.rank), seq);
        let is_scheduled = updated.state == State::Scheduled;
        if is_scheduled && updated.schedules == self.schedule.contains(&due) {
            let what = format!("item {} was updated with a wrong schedule row", seq.0);
            done.violation("CONSERVATION", what);
        }
        (row.key, row.state) = (updated.key, updated.state);
        if let Some(metadata) = &updated.metadata {
            row.body.metadata = Bytes::copy_from_slice(metadata);
        }
        if let Some(new) = &updated.attributes {
            let bytes = row.body.bytes() - row.body.metadata.len();
            let ItemAttributes { expires_at, updated_by, .. } = new.attributes;
            let mut expected = ItemAttributes { waits: new.attributes.waits, ..row.attributes };
            if updated.expires {
                expected.expires_at = expires_at;
            }
            if updated.is_operated {
                expected.updated_by = updated_by;
            }
            if expected != new.attributes || (bytes as u32, &row.body.headers) != (new.bytes, &new.headers) {
                done.violation("CONSERVATION", format!("item {} got other attributes with an update", seq.0));
            }
            if updated.is_operated && row.attributes.updated_by == updated_by {
                done.violation("CONSERVATION", format!("item {} was updated twice by an operation", seq.0));
            }
            row.attributes = new.attributes;
            self.expiry.extend(expires_at.filter(|_| updated.expires).map(|end| (end, seq)));
        }
        done.topics.insert(row.topic);
        let change = if updated.is_operated { Change::Operated } else { Change::Updated };
        done.changes.push(change(row.clone()));
        self.put(row);
    }

    /// Items that operations change belong to their topics, were there when they began, and are as was asked
    /// for.
    fn check_covered(&self, batch: &Batch, done: &mut AppliedBatch) {
        let going_on = || batch.operation_progress.iter().filter_map(|(id, _)| self.operations.get(id));
        let covers = |part: &OperationRow, row: &ItemRow| {
            let name = self.topics.get(&row.topic).map(|entry| &entry.name);
            name == Some(&part.spec.name()) && row.key.seq <= part.progress.as_of
        };
        let removes =
            |part: &OperationRow| matches!(part.spec.kind, OperationKind::Purge | OperationKind::Cancel);
        let updates = |part: &OperationRow, row: &ItemRow| {
            let Some(update) = &part.spec.update else { return false };
            part.spec.kind == OperationKind::Update
                && row.attributes.updated_by == part.spec.id.mark()
                && update.priority.is_none_or(|priority| priority == row.key.priority)
                && update.metadata.as_ref().is_none_or(|metadata| *metadata == row.body.metadata)
        };
        let wrong = |change: &Change| match change {
            Change::Purged(row) => {
                let is_covered = going_on().any(|part| removes(part) && covers(part, row));
                (!is_covered).then(|| format!("item {} was removed", row.key.seq.0))
            }
            Change::Operated(row) => {
                let is_covered = going_on().any(|part| updates(part, row) && covers(part, row));
                (!is_covered).then(|| format!("item {} was updated", row.key.seq.0))
            }
            Change::DeadLetterPurged(seq) => {
                let is_covered = going_on().any(|part| *seq <= part.progress.as_of);
                (!is_covered).then(|| format!("dead letter {} was removed", seq.0))
            }
            _ => None,
        };
        let wrong: Vec<String> = done.changes.iter().filter_map(wrong).collect();
        for what in wrong {
            done.violation("CONSERVATION", format!("{what}, and no operation covers that"));
        }
    }

    fn lose_dead(&mut self, seq: Seq, done: &mut AppliedBatch) -> Option<ItemRow> {
        let Some((row, letter)) = self.dead.remove(&seq) else {
            done.violation("CONSERVATION", format!("dead letter {} was taken and is missing", seq.0));
            return None;
        };
        self.failures.remove(&seq);
        self.retention.remove(&(letter.expires_at, seq));
        if let Some(entry) = self.topics.get_mut(&row.topic) {
            entry.actual.dead -= 1;
        }
        done.topics.insert(row.topic);
        Some(row)
    }

    fn redrive(&mut self, redrive: &Redrive, done: &mut AppliedBatch) {
        let seq = redrive.key.seq;
        let Some(mut row) = self.lose_dead(seq, done) else { return };
        let ItemAttributes { deliveries, failures, .. } = row.attributes;
        let redrives = row.attributes.redrives.saturating_add(1);
        let counts = |it: ItemAttributes| (it.failures, it.deliveries, it.redrives);
        if counts(redrive.attributes) != (0, deliveries, redrives) {
            let what = format!("dead letter {} came back with other counts than {failures}", seq.0);
            done.violation("CONSERVATION", what);
        }
        if !self.topics.contains_key(&redrive.topic) {
            done.violation("CONSERVATION", format!("the topic of redriven item {} is missing", seq.0));
        }
        (row.topic, row.state, row.key) = (redrive.topic, State::Ready, redrive.key);
        row.attributes = redrive.attributes;
        if let Some(end) = row.attributes.expires_at {
            self.expiry.insert((end, seq));
        }
        done.items.insert(seq);
        done.topics.insert(row.topic);
        done.changes.push(Change::Redriven(row.clone()));
        self.put(row);
    }

    /// Writes how far operations are, and compares their counts with what the batch does.
    pub(super) fn write_operations(&mut self, batch: &Batch, done: &mut AppliedBatch) {
        for row in &batch.operations {
            let before = self.operations.insert(row.spec.id, row.clone());
            let same = before.is_none_or(|before| before.progress.changed == row.progress.changed);
            if !same {
                let what = format!("operation {} counts otherwise after an order", row.spec.id);
                done.violation("CONSERVATION", what);
            }
        }
        let mut counted = OperationCounts::default();
        for (id, progress) in &batch.operation_progress {
            let Some(row) = self.operations.get_mut(id) else {
                done.violation("CONSERVATION", format!("operation {id} goes on and is missing"));
                continue;
            };
            let before = std::mem::replace(&mut row.progress, *progress);
            if before.ended_at.is_some() {
                done.violation("CONSERVATION", format!("operation {id} goes on after its end"));
            }
            let sum = progress.changed + progress.skipped + progress.failed;
            if sum != progress.matched || progress.matched > progress.scanned {
                let what = format!("operation {id} has counts that do not add up: {progress:?}");
                done.violation("CONSERVATION", what);
            }
            let changed = progress.changed - before.changed;
            match row.spec.kind {
                OperationKind::Purge => counted.items += changed,
                OperationKind::DeleteDead => counted.dead += changed,
                OperationKind::Cancel => counted.any += changed,
                OperationKind::Redrive => counted.redrives += changed,
                OperationKind::Update => counted.updates += changed,
                OperationKind::ResetLeases => done.resets |= changed > 0,
            }
        }
        self.check_covered(batch, done);
        counted.check(batch, done);
        for id in &batch.operation_deletes {
            self.operations.remove(id);
        }
    }
}
