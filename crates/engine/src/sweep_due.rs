//! The sweep of due items: what waited for its time becomes ready.

use forebay_store::DueKey;
use forebay_types::Timestamp;

use crate::{form::Former, op::Page};

impl Former<'_, '_> {
    /// Puts a page into the batch. Returns which rows it deals with, and the earliest time of the others.
    pub fn promote(&mut self, page: &Page) -> (Vec<bool>, Timestamp) {
        // Only sweeps touch a scheduled item, and they take turns: the page is right.
        for row in &page.rows {
            self.batch.promotes.push(DueKey { at: row.at, seq: row.item.key.seq });
            self.count(row.topic, 1, -1, 0);
            self.busy.insert(row.item.key.seq);
        }
        (vec![true; page.rows.len()], Timestamp::MAX)
    }
}
