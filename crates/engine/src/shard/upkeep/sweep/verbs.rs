//! The sweeps of a shard: what to scan, and what was found.

use forebay_store::{DueRow, Sweep};
use forebay_types::{Monotonic, Timestamp};

use crate::{
    clock::Moment,
    shard::{OwnedShard, work::ScanRequest},
};

impl OwnedShard {
    /// Begins the sweep's scan that is due, if any. `read` names the read.
    pub fn begin_scan(&mut self, read: u64, node: Moment) -> Option<ScanRequest> {
        let moment = self.tenure.time.moment(node);
        let limits = Sweep::ALL.map(|sweep| self.page_rows_max(sweep, moment.at));
        let kinds = self.sweeps_due();
        self.upkeep
            .sweeps
            .begin(read, self.commit.in_flight.as_ref(), moment, kinds, |sweep| limits[sweep as usize])
    }

    /// The sweeps that may scan. A dead letter that goes is counted by its namespace, once that is known.
    pub(in crate::shard) fn sweeps_due(&self) -> &'static [Sweep] {
        if self.has_tallies() { &Sweep::ALL } else { &[Sweep::Due, Sweep::Expiry] }
    }

    /// A sweep's scan ended.
    pub fn scanned(&mut self, sweep: Sweep, read: u64, rows: Vec<DueRow>, next: Option<Timestamp>) {
        self.commit.disk.set_fertile();
        self.upkeep.sweeps.scanned(sweep, read, rows, next);
    }

    /// A sweep's scan failed.
    pub fn scan_failed(&mut self, sweep: Sweep, read: u64, at: Monotonic) {
        self.upkeep.sweeps.scan_failed(sweep, read, at);
    }
}
