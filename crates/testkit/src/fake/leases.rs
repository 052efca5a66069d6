//! Applies a batch to the lease log.

use forebay_store::{Batch, LeaseChange, LeaseEntry, LeaseRow};
use forebay_types::{ItemAttributes, State};

use super::{
    change::{AppliedBatch, Change},
    tables::Tables,
};

impl Tables {
    /// Inserts the batch's lease row.
    pub(super) fn lease(&mut self, batch: &Batch, done: &mut AppliedBatch) {
        if batch.leases.is_empty() {
            return;
        }
        done.opened.extend(batch.leases.iter().cloned());
        let open = vec![true; batch.leases.len()];
        let row = LeaseRow { id: batch.number, entries: batch.leases.clone(), open };
        if self.leases.insert(row.id, row).is_some() {
            done.violation("LEASE-EXCLUSIVE", format!("lease row {} was written twice", batch.number));
        }
    }

    /// Closes deliveries of a lease row.
    pub(super) fn change_lease(&mut self, row: &LeaseChange, done: &mut AppliedBatch) {
        let Some(old) = self.leases.get(&row.id) else {
            let what = format!("lease row {} was changed and is missing", row.id);
            return done.violation("LEASE-EXCLUSIVE", what);
        };
        if row.partly != old.open.contains(&false) {
            done.violation("LEASE-EXCLUSIVE", format!("lease row {} disagrees with its bits", row.id));
        }
        if !row.open.contains(&true) {
            let open = old.entries.iter().zip(&old.open).filter(|(_, open)| **open);
            done.closed.extend(open.map(|(entry, _)| entry.clone()));
            self.leases.remove(&row.id);
            return;
        }
        if old.open.len() != row.open.len() {
            let what = format!("lease row {} has another number of deliveries", row.id);
            return done.violation("LEASE-EXCLUSIVE", what);
        }
        for (at, entry) in old.entries.iter().enumerate() {
            match (old.open[at], row.open[at]) {
                (true, false) => done.closed.push(entry.clone()),
                (false, true) => {
                    let what = format!("the lease of item {} was opened again", entry.seq.0);
                    done.violations.push(("LEASE-EXCLUSIVE", what));
                }
                _ => {}
            }
        }
        let new = LeaseRow { open: row.open.clone(), ..old.clone() };
        self.leases.insert(row.id, new);
    }

    /// Finds out which deliveries began, ended or moved to another row.
    pub(super) fn settle_leases(&self, done: &mut AppliedBatch) {
        let same = |one: &LeaseEntry, other: &LeaseEntry| {
            (one.seq, one.nonce, one.delivery()) == (other.seq, other.nonce, other.delivery())
        };
        let (opened, closed) = (std::mem::take(&mut done.opened), std::mem::take(&mut done.closed));
        if !self.strict {
            return;
        }
        for entry in &opened {
            done.items.insert(entry.seq);
            let moved = closed.iter().any(|old| same(old, entry));
            done.changes.push(if moved {
                Change::Moved(entry.clone())
            } else {
                Change::Leased(entry.clone())
            });
            self.check_lease(entry, done);
        }
        for entry in closed {
            done.items.insert(entry.seq);
            if !opened.iter().any(|new| same(new, &entry)) {
                done.changes.push(Change::Closed(entry));
            }
        }
    }

    /// Compares a delivery that began with its item.
    fn check_lease(&self, entry: &LeaseEntry, done: &mut AppliedBatch) {
        let seq = entry.seq.0;
        let Some(item) = self.items.get(&entry.seq) else {
            return done.violation("LEASE-EXCLUSIVE", format!("item {seq} was leased and is missing"));
        };
        let deliveries = entry.delivery();
        let leased = (entry.topic, entry.priority, entry.rank, entry.attributes);
        let attributes = ItemAttributes { deliveries, ..item.attributes };
        if leased != (item.topic, item.key.priority, item.key.rank, attributes) {
            done.violation("LEASE-EXCLUSIVE", format!("lease {entry:?} does not describe {item:?}"));
        }
        if item.state != State::Ready {
            done.violation("TIME", format!("item {seq} was leased before its time"));
        }
        if deliveries <= item.attributes.deliveries {
            done.violation(
                "LEASE-EXCLUSIVE",
                format!("item {seq} was leased twice for delivery {deliveries}"),
            );
        }
        let open = self.leases.values().flat_map(|row| row.entries.iter().zip(&row.open));
        if open.filter(|(other, open)| **open && other.seq == entry.seq).count() > 1 {
            done.violation("LEASE-EXCLUSIVE", format!("item {seq} has two open leases"));
        }
    }
}
