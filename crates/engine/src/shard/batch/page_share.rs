//! How much of a sweep's page a batch takes.

use forebay_types::Timestamp;

use crate::shard::work::SweepPage;

/// The rows that a batch takes of a sweep's page.
pub(super) struct PageShare {
    /// Rows that it deals with, in the order of the page.
    pub done: Vec<bool>,
    /// The earliest time of the others.
    pub left_min: Timestamp,
    /// The earliest time of those that can't be stored and are left alone.
    pub parked_min: Timestamp,
}

impl PageShare {
    /// Of a page of which nothing is decided yet.
    pub fn new(page: &SweepPage) -> Self {
        let done = Vec::with_capacity(page.rows.len());
        Self { done, left_min: Timestamp::MAX, parked_min: Timestamp::MAX }
    }

    /// The next row has to be looked at again.
    pub fn leave(&mut self, at: Timestamp) {
        self.done.push(false);
        self.left_min = self.left_min.min(at);
    }

    /// The next row can't be stored and is left alone.
    pub fn park(&mut self, at: Timestamp) {
        self.done.push(false);
        self.parked_min = self.parked_min.min(at);
    }
}
