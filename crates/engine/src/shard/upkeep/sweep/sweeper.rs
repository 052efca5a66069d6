//! The loop around the sweeps that scan by time: when to look, what a scan may miss, how far the checkpoint
//! moves. `batch/sweep_due.rs`, `batch/sweep_expiry.rs` and `batch/sweep_retention.rs` say what is done with
//! the rows.

use std::time::Duration;

use forebay_store::{DueRow, Sweep};
use forebay_types::{Monotonic, Seq, Timestamp, TopicId};
use rustc_hash::FxHashSet;

use crate::{
    clock::Moment,
    planted::{Bug, on},
    shard::{
        commit::in_flight::{InFlight, PlannedPage},
        work::{ScanRequest, SweepPage},
    },
};

/// How long a sweep waits after it had to leave a row for later.
const LEFT_OVER_PAUSE: Duration = Duration::from_millis(20);
/// How long a sweep waits after a scan failed.
const FAILED_PAUSE: Duration = Duration::from_millis(100);

/// A sweep of one shard.
#[derive(Debug)]
pub(in crate::shard) struct Sweeper {
    /// The sweep's kind.
    pub sweep: Sweep,
    /// No row lies below it. Committed.
    pub checkpoint: Timestamp,
    /// Scans begin here: below it are only rows that are left alone. Never before the checkpoint.
    cursor: Timestamp,
    /// No other row lies below it, as far as is known; `MAX`: there is none.
    next: Timestamp,
    /// Items whose rows can't be stored, or not be read. They are left alone until the shard is taken over
    /// anew.
    parked: FxHashSet<Seq>,
    /// The next scan begins no sooner.
    not_before: Monotonic,
    /// The scan under way, or whose page is on the way to a batch.
    scan: Option<Scan>,
    /// Rows moved since the shard was taken over.
    pub moved: u64,
    /// A scan has ended: before that the checkpoint says nothing of the first row.
    has_looked: bool,
}

/// A scan under way, or its page on the way to a batch.
#[derive(Debug)]
struct Scan {
    /// Names the read.
    id: u64,
    /// How far it looks.
    to: Timestamp,
    /// At most so many rows.
    limit: usize,
    /// Items that a commit changed since the scan began: the page may show their past.
    invalidated: FxHashSet<Seq>,
    /// The earliest time of a row that was added since the scan began.
    low: Timestamp,
}

impl Sweeper {
    fn new(sweep: Sweep, checkpoint: Timestamp) -> Self {
        Self {
            sweep,
            checkpoint,
            cursor: checkpoint,
            next: checkpoint,
            parked: FxHashSet::default(),
            not_before: Monotonic::default(),
            scan: None,
            moved: 0,
            has_looked: false,
        }
    }

    /// Begins a scan if one is due. `in_flight_min`: the earliest time of a row that the batch in flight
    /// adds, which a scan must not pass.
    fn begin(
        &mut self,
        id: u64,
        moment: Moment,
        in_flight_min: Timestamp,
        limit: usize,
    ) -> Option<ScanRequest> {
        let Moment { now, at } = moment;
        let now = if on(Bug::DueEarly) { now.plus(Duration::from_secs(1)) } else { now };
        let open = if on(Bug::ScanPastOpenBatch) { Timestamp::MAX } else { in_flight_min };
        let to = Timestamp::from_micros(now.as_micros().min(open.as_micros().saturating_sub(1)));
        if self.scan.is_some() || self.next > to || at < self.not_before {
            return None;
        }
        self.scan = Some(Scan { id, to, limit, invalidated: FxHashSet::default(), low: Timestamp::MAX });
        Some(ScanRequest { sweep: self.sweep, from: self.cursor, to, limit })
    }

    /// A row was committed.
    fn added(&mut self, time: Timestamp) {
        self.next = self.next.min(time);
        self.cursor = self.cursor.min(time);
        if let Some(scan) = &mut self.scan {
            scan.low = scan.low.min(time);
        }
    }

    /// An item's row was removed or changed by a commit.
    fn invalidate(&mut self, seq: Seq) {
        if let Some(scan) = &mut self.scan {
            scan.invalidated.insert(seq);
        }
    }

    /// The scan failed: look again soon.
    fn failed(&mut self, at: Monotonic) {
        self.scan = None;
        self.not_before = at.plus(FAILED_PAUSE);
    }

    /// The time of the first row that it has not moved, of those that it can. `None`: there is none, or it
    /// has not looked yet.
    pub fn next(&self) -> Option<Timestamp> {
        Some(self.next).filter(|next| self.has_looked && *next != Timestamp::MAX)
    }

    /// The scan found nothing. `next` is the earliest row behind it.
    fn nothing(&mut self, next: Option<Timestamp>) {
        let low = self.scan.take().map_or(Timestamp::MAX, |scan| scan.low);
        self.next = next.unwrap_or(Timestamp::MAX).min(low);
        self.has_looked = true;
    }

    /// The scan named `read`, if it is the one under way.
    fn scan(&self, read: u64) -> Option<&Scan> {
        self.scan.as_ref().filter(|scan| scan.id == read)
    }

    /// The checkpoint once a page is committed, given the earliest row that was left alone.
    pub fn target(&self, page: &SweepPage, left: Timestamp) -> Timestamp {
        let end = match page.rows.last() {
            Some(last) if page.full && !on(Bug::FullPageTakenForAll) => last.at,
            _ => page.to,
        };
        let low = self.scan.as_ref().map_or(Timestamp::MAX, |scan| scan.low);
        // The two defences cover each other: the bug is to have neither.
        let low = if on(Bug::ScanPastOpenBatch) { Timestamp::MAX } else { low };
        if on(Bug::CheckpointPastLive) { end } else { end.min(left).min(low) }
    }

    /// A page was committed, and with it the checkpoint.
    fn committed(&mut self, planned: &PlannedPage, moved: usize, left_some: bool, at: Monotonic) {
        self.scan = None;
        self.checkpoint = planned.checkpoint;
        self.cursor = planned.cursor;
        self.next = planned.cursor;
        self.has_looked = true;
        self.moved += moved as u64;
        if left_some {
            self.not_before = at.plus(LEFT_OVER_PAUSE);
        }
    }

    /// The row of this item can't be stored. Its page is forgotten, and the scan is made again without it.
    fn park(&mut self, seq: Option<Seq>, at: Monotonic) {
        self.parked.extend(seq);
        self.failed(at);
    }

    /// The row of this item can't be stored.
    pub fn is_parked(&self, seq: Seq) -> bool {
        self.parked.contains(&seq)
    }

    /// The scan may show the past of this item.
    pub fn is_invalidated(&self, seq: Seq) -> bool {
        self.scan.as_ref().is_some_and(|scan| scan.invalidated.contains(&seq))
    }
}

/// The sweeps of one shard. They take turns: only one has a scan or a page at a time.
#[derive(Debug)]
pub(in crate::shard) struct Sweeps {
    /// Items that waited for their time.
    pub due: Sweeper,
    /// Items whose time to live is over.
    pub expiry: Sweeper,
    /// Dead letters.
    pub retention: Sweeper,
    /// The sweep that had its turn last.
    last: Option<Sweep>,
    /// The page that waits for a batch.
    page: Option<SweepPage>,
}

impl Sweeps {
    /// Each continues at its checkpoint.
    pub fn new(checkpoint: impl Fn(Sweep) -> Timestamp) -> Self {
        let sweeper = |sweep| Sweeper::new(sweep, checkpoint(sweep));
        let (due, expiry) = (sweeper(Sweep::Due), sweeper(Sweep::Expiry));
        Self { due, expiry, retention: sweeper(Sweep::Retention), last: None, page: None }
    }

    pub fn all(&self) -> [&Sweeper; 3] {
        [&self.due, &self.expiry, &self.retention]
    }

    pub fn get(&self, sweep: Sweep) -> &Sweeper {
        match sweep {
            Sweep::Due => &self.due,
            Sweep::Expiry => &self.expiry,
            Sweep::Retention => &self.retention,
        }
    }

    fn get_mut(&mut self, sweep: Sweep) -> &mut Sweeper {
        match sweep {
            Sweep::Due => &mut self.due,
            Sweep::Expiry => &mut self.expiry,
            Sweep::Retention => &mut self.retention,
        }
    }

    /// Begins the scan that is due, if none is under way. `id` names the read, `kinds` are the sweeps that
    /// may, and `limit` gives the most rows of a page of each.
    pub fn begin(
        &mut self,
        id: u64,
        in_flight: Option<&InFlight>,
        moment: Moment,
        kinds: &[Sweep],
        limit: impl Fn(Sweep) -> usize,
    ) -> Option<ScanRequest> {
        if self.is_scanning() {
            return None;
        }
        let mut sweepers = [&mut self.due, &mut self.expiry, &mut self.retention];
        // The one that has waited longest is first, but a backlog of one holds up no other.
        sweepers.sort_by_key(|sweeper| (Some(sweeper.sweep) == self.last, sweeper.next));
        let scan =
            sweepers.into_iter().filter(|sweeper| kinds.contains(&sweeper.sweep)).find_map(|sweeper| {
                let open = in_flight.map_or(Timestamp::MAX, |batch| batch.added.of(sweeper.sweep));
                sweeper.begin(id, moment, open, limit(sweeper.sweep))
            })?;
        self.last = Some(scan.sweep);
        Some(scan)
    }

    fn is_scanning(&self) -> bool {
        self.all().iter().any(|sweeper| sweeper.scan.is_some())
    }

    /// A scan found rows.
    pub fn scanned(&mut self, sweep: Sweep, read: u64, rows: Vec<DueRow>, next: Option<Timestamp>) {
        let sweeper = self.get_mut(sweep);
        let Some(&Scan { to, limit, .. }) = sweeper.scan(read) else { return };
        if rows.is_empty() {
            sweeper.nothing(next);
            return;
        }
        // Nothing is known of them but their times: they stay, and below the checkpoint.
        sweeper.parked.extend(rows.iter().filter(|row| row.item.is_unreadable()).map(|row| row.seq));
        let full = rows.len() >= limit;
        self.page = Some(SweepPage { sweep, rows, full, to });
    }

    /// A scan failed: look again soon.
    pub fn scan_failed(&mut self, sweep: Sweep, read: u64, at: Monotonic) {
        let sweeper = self.get_mut(sweep);
        if sweeper.scan(read).is_some() {
            sweeper.failed(at);
        }
    }

    /// Whether a page waits for a batch.
    pub fn has_page(&self) -> bool {
        self.page.is_some()
    }

    /// Rows of the page that waits for a batch.
    pub fn page_rows(&self) -> usize {
        self.page.as_ref().map_or(0, |page| page.rows.len())
    }

    /// The sweep whose page waits for a batch.
    pub fn page_sweep(&self) -> Option<Sweep> {
        self.page.as_ref().map(|page| page.sweep)
    }

    /// The topics of its rows.
    pub fn page_topics(&self) -> impl Iterator<Item = TopicId> {
        self.page.iter().flat_map(|page| &page.rows).map(|row| row.topic)
    }

    /// Takes the page that waits for a batch.
    pub fn take_page(&mut self) -> Option<SweepPage> {
        self.page.take()
    }

    /// The batch did not happen: the page waits for the next one.
    pub fn put_back(&mut self, page: SweepPage) {
        self.page = Some(page);
    }

    /// An item's row was removed or changed by a commit.
    pub fn invalidate(&mut self, seq: Seq) {
        self.due.invalidate(seq);
        self.expiry.invalidate(seq);
        self.retention.invalidate(seq);
    }

    /// A batch was committed that lowers checkpoints, or adds rows.
    pub fn apply(&mut self, batch: &InFlight) {
        for lowered in &batch.lowered {
            self.get_mut(lowered.sweep).checkpoint = lowered.at;
        }
        for sweep in Sweep::ALL {
            let earliest = batch.added.of(sweep);
            if earliest < Timestamp::MAX {
                self.get_mut(sweep).added(earliest);
            }
        }
    }

    /// A page was committed, and with it the checkpoint.
    pub fn page_committed(&mut self, planned: &PlannedPage, moved: usize, left_some: bool, at: Monotonic) {
        self.get_mut(planned.page.sweep).committed(planned, moved, left_some, at);
    }

    /// The row of this item can't be stored: it is left alone. The sweep's page is forgotten.
    pub fn park(&mut self, sweep: Sweep, seq: Option<Seq>, at: Monotonic) {
        self.get_mut(sweep).park(seq, at);
    }

    /// When [`Sweeps::begin`] has something to do for these. `None`: a scan is under way, or nothing waits
    /// for its time.
    pub fn next_wake(&self, moment: Moment, kinds: &[Sweep]) -> Option<Monotonic> {
        if self.is_scanning() {
            return None;
        }
        let due = |sweeper: &&Sweeper| sweeper.next < Timestamp::MAX && kinds.contains(&sweeper.sweep);
        let wakes = self.all().into_iter().filter(due);
        wakes.map(|sweeper| moment.when(sweeper.next).max(sweeper.not_before)).min()
    }

    /// Whether only one sweep has a scan, and a page is that scan's. Checked in tests.
    pub fn check(&self) -> Result<(), String> {
        if self.all().iter().filter(|sweeper| sweeper.scan.is_some()).count() > 1 {
            return Err("two sweeps scan at once".to_owned());
        }
        match &self.page {
            Some(page) if self.get(page.sweep).scan.is_none() => {
                Err("a page waits without its scan".to_owned())
            }
            _ => Ok(()),
        }
    }
}
