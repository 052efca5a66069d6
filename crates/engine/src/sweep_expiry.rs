//! The sweep of expired items: they go. A leased one only loses its expiry row; its lease entry carries the
//! expiry, and the end of the lease is the end of the item.

use forebay_store::DueKey;
use forebay_types::Timestamp;

use crate::{form::Former, op::Page};

impl Former<'_, '_> {
    /// Puts a page into the batch. Returns which rows it deals with, and the earliest time of the others.
    pub fn expire(&mut self, page: &Page) -> (Vec<bool>, Timestamp) {
        let mut done = Vec::with_capacity(page.rows.len());
        let mut left = Timestamp::MAX;
        for row in &page.rows {
            let seq = row.item.key.seq;
            let touched = self.owned.expiry.scan.as_ref().is_some_and(|scan| scan.touched.contains(&seq));
            if touched || self.busy.contains(&seq) || self.owned.reserved.contains(&seq) {
                left = left.min(row.at);
                done.push(false);
                continue;
            }
            done.push(true);
            self.batch.expiry_deletes.push(DueKey { at: row.at, seq });
            if self.owned.leases.get(seq).is_some() {
                continue;
            }
            self.batch.deletes.push(seq);
            self.busy.insert(seq);
            if row.scheduled {
                self.batch
                    .schedule_deletes
                    .push(DueKey { at: Timestamp::from_micros(row.item.key.rank), seq });
                self.count(row.topic, 0, -1, 0);
            } else {
                self.count(row.topic, -1, 0, 0);
            }
        }
        (done, left)
    }
}
