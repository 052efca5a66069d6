//! The loop around the sweeps that scan by time: when to look, what a scan may miss, how far the checkpoint
//! moves. What is done with the rows stands in `sweep_due.rs` and `sweep_expiry.rs`.

use std::time::Duration;

use forebay_store::{DueRow, Sweep};
use forebay_types::{Monotonic, Seq, Timestamp};
use rustc_hash::FxHashSet;

use crate::{
    form::InFlight,
    io::Reads,
    op::Page,
    planted::{Bug, on},
    shard::Owned,
};

/// Rows of one page.
pub(crate) const PAGE: usize = 250;
/// How long a sweep waits after it had to leave a row for later.
const PAUSE: Duration = Duration::from_millis(20);

/// A sweep of one shard.
#[derive(Debug)]
pub(crate) struct Sweeper {
    pub sweep: Sweep,
    /// No row lies below it. Committed.
    pub checkpoint: Timestamp,
    /// No row lies below it, as far as is known; `MAX`: there is none.
    pub next: Timestamp,
    pub not_before: Monotonic,
    pub scan: Option<Scan>,
    pub moved: u64,
}

/// A scan under way, or its page on the way to a batch.
#[derive(Debug)]
pub(crate) struct Scan {
    pub id: u64,
    pub to: Timestamp,
    /// Items whose rows a commit changed since the scan began: the page may be wrong about them.
    pub touched: FxHashSet<Seq>,
    /// The earliest time of a row that was added, or left alone, since the scan began.
    pub low: Timestamp,
}

impl Sweeper {
    pub fn new(sweep: Sweep, checkpoint: Timestamp) -> Self {
        Self { sweep, checkpoint, next: checkpoint, not_before: Monotonic::default(), scan: None, moved: 0 }
    }

    /// Begins a scan if one is due, and tells from where and how far. `open`: the earliest time of a row that
    /// an unresolved batch adds, which a scan must not pass.
    pub fn begin(
        &mut self,
        id: u64,
        now: Timestamp,
        at: Monotonic,
        open: Timestamp,
    ) -> Option<(Timestamp, Timestamp)> {
        let now = if on(Bug::DueEarly) { now.plus(Duration::from_secs(1)) } else { now };
        let open = if on(Bug::ScanPastOpenBatch) { Timestamp::MAX } else { open };
        let to = Timestamp::from_micros(now.as_micros().min(open.as_micros().saturating_sub(1)));
        if self.scan.is_some() || self.next > to || at < self.not_before {
            return None;
        }
        self.scan = Some(Scan { id, to, touched: FxHashSet::default(), low: Timestamp::MAX });
        Some((self.checkpoint, to))
    }

    /// A row was committed.
    pub fn added(&mut self, time: Timestamp) {
        self.next = self.next.min(time);
        if let Some(scan) = &mut self.scan {
            scan.low = scan.low.min(time);
        }
    }

    /// An item's row was removed or changed by a commit.
    pub fn touch(&mut self, seq: Seq) {
        if let Some(scan) = &mut self.scan {
            scan.touched.insert(seq);
        }
    }

    /// The scan failed: look again soon.
    pub fn failed(&mut self, at: Monotonic) {
        self.scan = None;
        self.not_before = at.plus(PAUSE * 5);
    }

    /// The scan found nothing. `next` is the earliest row behind it.
    pub fn nothing(&mut self, next: Option<Timestamp>) {
        let low = self.scan.take().map_or(Timestamp::MAX, |scan| scan.low);
        self.next = next.unwrap_or(Timestamp::MAX).min(low);
    }

    /// Where the checkpoint will stand once a page is committed, given the earliest row that was left alone.
    pub fn target(&self, page: &Page, left: Timestamp) -> Timestamp {
        let end = match page.rows.last() {
            Some(last) if page.full => last.at,
            _ => page.to,
        };
        let low = self.scan.as_ref().map_or(Timestamp::MAX, |scan| scan.low);
        // The two defences cover each other: the bug is to have neither.
        let low = if on(Bug::ScanPastOpenBatch) { Timestamp::MAX } else { low };
        if on(Bug::CheckpointPastLive) { end } else { end.min(left).min(low) }
    }

    /// A page was committed, and with it the checkpoint.
    pub fn committed(&mut self, checkpoint: Timestamp, moved: usize, left_some: bool, at: Monotonic) {
        self.scan = None;
        self.checkpoint = checkpoint;
        self.next = checkpoint;
        self.moved += moved as u64;
        if left_some {
            self.not_before = at.plus(PAUSE);
        }
    }
}

impl Owned {
    /// Begins the scans that are due. The two sweeps take turns: only one has a scan or a page at a time.
    pub fn sweep(&mut self, reads: &Reads, read: u64, now: Timestamp, at: Monotonic) {
        if self.due.scan.is_some() || self.expiry.scan.is_some() {
            return;
        }
        let open = |pick: fn(&InFlight) -> Timestamp| self.in_flight.as_ref().map_or(Timestamp::MAX, pick);
        let (due, expiry) = (open(|batch| batch.schedule_min), open(|batch| batch.expiry_min));
        // Whichever has waited longer goes first.
        let sweepers = if self.due.next <= self.expiry.next {
            [(&mut self.due, due), (&mut self.expiry, expiry)]
        } else {
            [(&mut self.expiry, expiry), (&mut self.due, due)]
        };
        for (sweeper, open) in sweepers {
            if let Some((from, to)) = sweeper.begin(read, now, at, open) {
                reads.scan(sweeper.sweep, read, from, to, PAGE);
                return;
            }
        }
    }

    pub fn scanned(
        &mut self,
        sweep: Sweep,
        read: u64,
        found: Option<(Vec<DueRow>, Option<Timestamp>)>,
        at: Monotonic,
    ) {
        let sweeper = match sweep {
            Sweep::Due => &mut self.due,
            Sweep::Expiry => &mut self.expiry,
        };
        let Some(scan) = sweeper.scan.as_ref().filter(|scan| scan.id == read) else { return };
        match found {
            None => sweeper.failed(at),
            Some((rows, next)) if rows.is_empty() => sweeper.nothing(next),
            Some((rows, _)) => {
                let full = rows.len() >= PAGE;
                self.page = Some(Page { sweep, rows, full, to: scan.to });
            }
        }
    }
}
