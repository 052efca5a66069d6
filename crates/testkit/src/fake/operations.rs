//! Applies what operations do. CONSERVATION: a batch counts exactly what it changes, and what has ended
//! changes nothing.

use bytes::Bytes;
use forebay_store::{Batch, ItemRow, OperationKind, Redrive, UpdatedRow};
use forebay_types::{ItemAttributes, Seq, State, Timestamp};

use super::{
    change::{Applied, Change},
    tables::Tables,
};

impl Tables {
    /// Deletes items and dead letters, and makes dead letters items again.
    pub(super) fn operate(&mut self, batch: &Batch, done: &mut Applied) {
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
    fn cancel(&mut self, batch: &Batch, done: &mut Applied) {
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
    pub(super) fn update(&mut self, updated: &UpdatedRow, done: &mut Applied) {
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
        if let Some(expiry) = &updated.expiry {
            let bytes = row.body.bytes() - row.body.metadata.len();
            let before = ItemAttributes { expires_at: expiry.attributes.expires_at, ..row.attributes };
            if before != expiry.attributes
                || (bytes as u32, &row.body.headers) != (expiry.bytes, &expiry.headers)
            {
                let what = format!("item {} got other attributes with its expiry", seq.0);
                done.violation("CONSERVATION", what);
            }
            row.attributes = expiry.attributes;
            self.expiry.extend(row.attributes.expires_at.map(|end| (end, seq)));
        }
        done.topics.insert(row.topic);
        done.changes.push(Change::Updated(row.clone()));
        self.put(row);
    }

    /// What is purged belongs to the topic of an operation, and was there when it began.
    fn check_purged(&self, batch: &Batch, done: &mut Applied) {
        let mut wrong = Vec::new();
        for change in &done.changes {
            let Change::Purged(row) = change else { continue };
            let name = self.topics.get(&row.topic).map(|entry| &entry.name);
            let covers = |id| {
                let Some(part) = self.operations.get(id) else { return false };
                part.spec.kind == OperationKind::Purge
                    && name == Some(&part.spec.name())
                    && row.key.seq <= part.progress.as_of
            };
            if !batch.operation_progress.iter().any(|(id, _)| covers(id)) {
                wrong.push(format!("item {} was purged, and no operation covers it", row.key.seq.0));
            }
        }
        wrong.into_iter().for_each(|what| done.violation("CONSERVATION", what));
    }

    fn lose_dead(&mut self, seq: Seq, done: &mut Applied) -> Option<ItemRow> {
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

    fn redrive(&mut self, redrive: &Redrive, done: &mut Applied) {
        let seq = redrive.key.seq;
        let Some(mut row) = self.lose_dead(seq, done) else { return };
        let ItemAttributes { deliveries, failures, .. } = row.attributes;
        if (redrive.attributes.failures, redrive.attributes.deliveries) != (0, deliveries) {
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
    pub(super) fn write_operations(&mut self, batch: &Batch, done: &mut Applied) {
        for row in &batch.operations {
            let before = self.operations.insert(row.spec.id, row.clone());
            let same = before.is_none_or(|before| before.progress.changed == row.progress.changed);
            if !same {
                let what = format!("operation {} counts otherwise after an order", row.spec.id);
                done.violation("CONSERVATION", what);
            }
        }
        let mut counted = [0; 3];
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
            let of_kind = match row.spec.kind {
                OperationKind::Purge => 0,
                OperationKind::DeleteDead => 1,
                OperationKind::Redrive => 2,
                OperationKind::ResetLeases => {
                    done.resets |= progress.changed > before.changed;
                    continue;
                }
            };
            counted[of_kind] += progress.changed - before.changed;
        }
        self.check_purged(batch, done);
        let changed = [batch.purges.len(), batch.dead_letter_purges.len(), batch.redrives.len()];
        if counted != changed.map(|count| count as u64) {
            let what = format!("operations count {counted:?} changes, and the batch makes {changed:?}");
            done.violation("CONSERVATION", what);
        }
        for id in &batch.operation_deletes {
            self.operations.remove(id);
        }
    }
}
