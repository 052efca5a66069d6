//! The costs of rows, by kind, and how a batch in which others wait is cut by them.
//!
//! A thousand rows of a dear kind take a database as long as ten thousand of a cheap one, and whoever waits
//! for a single row waits as long. So where tenants share a shard, a batch is as long as its rows take, by
//! what rows of their kinds took last. A tenant that is alone holds up nobody: its batches are counted in
//! rows.

use std::time::Duration;

use forebay_store::Sweep;

/// A batch in which others wait takes about so long at most. They wait for two: the one on its way, and
/// their own.
const SHARED_BATCH: Duration = Duration::from_millis(20);
/// Its rows have so long at least, however long the statements around them take.
const SHARED_ROWS_MIN: Duration = Duration::from_millis(3);
/// One of so many of these batches is short. Batches that are all alike do not tell the cost of their rows
/// from that of the batch itself.
const SHORT_EVERY: u64 = 8;
/// How much of the time the rows of a short batch have.
const SHORT: f64 = 0.25;

/// The most new topics of a batch in which others wait. Each has the event loop do ten times as much as an
/// item, and that serves all shards of the node: no batch's time shows what the others pay.
const SHARED_TOPICS_MAX: f64 = 32.0;

/// A kind of row, by what it costs the database. The first five are not counted as rows of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::shard) enum RowKind {
    /// The batch itself: the statements around its rows, its fence, its COMMIT.
    Batch,
    /// The row of a topic, beside that of its first item.
    Topic,
    /// The memory of a dedupe key or a request id, beside the items.
    Key,
    /// 1,024 bytes of bodies.
    Kibibyte,
    /// The counts of a topic that are written into its row.
    Fold,
    /// A new item, or one that is inserted again.
    Item,
    /// A delivery that begins.
    Lease,
    /// A delivery that goes on with another end, or moves to another row of the log.
    Extension,
    /// An item that is deleted: acked, consumed, cancelled, or expired at the end of its delivery.
    Deletion,
    /// An item that returns after a delivery.
    Return,
    /// An item that becomes a dead letter.
    DeadLetter,
    /// A scheduled item that is due.
    Due,
    /// An item that expired.
    Expiry,
    /// A dead letter that was kept for long enough.
    Retention,
    /// An item that an operation, or a caller, changes.
    Change,
    /// All that is seldom.
    Other,
}

impl RowKind {
    /// The rows that a sweep moves.
    pub const fn of_sweep(sweep: Sweep) -> Self {
        match sweep {
            Sweep::Due => Self::Due,
            Sweep::Expiry => Self::Expiry,
            Sweep::Retention => Self::Retention,
        }
    }
}

/// How many kinds there are.
const KINDS: usize = RowKind::Other as usize + 1;
/// The first of those that are counted as rows.
const FIRST_ROW: usize = RowKind::Item as usize;
/// The cost of each before a batch has shown it, in nanoseconds.
const GUESSES: [f64; KINDS] =
    [2e6, 40e3, 20e3, 2e3, 20e3, 20e3, 10e3, 15e3, 15e3, 60e3, 80e3, 50e3, 30e3, 30e3, 60e3, 30e3];
/// The least that a kind costs, in guesses.
const LEAST: f64 = 0.05;
/// The most that a row costs, in guesses.
const ROW_MOST: f64 = 100.0;
/// The most that the batch itself costs, in guesses: a second.
const BATCH_MOST: f64 = 500.0;
/// How far off the guess of the batch itself may be, in guesses: disks differ by more than processors.
const BATCH_SPREAD: f64 = 4.0;
/// The same of a row.
const ROW_SPREAD: f64 = 2.0;
/// How much batches of the same rows differ, in the time that they should take.
const NOISE: f64 = 0.4;
/// How much what is around the rows changes from one batch to the next, in what it took last.
const DRIFT: f64 = 0.1;
/// How much of what was learned of a row is forgotten with each batch.
const FORGOTTEN: f64 = 0.02;
/// One batch changes no more than if it were so many standard deviations off.
const OUTLIER: f64 = 2.0;

/// How many rows of each kind a batch has.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RowCounts([u32; KINDS]);

impl RowCounts {
    /// A batch has so many more of a kind.
    pub(in crate::shard) fn add(&mut self, kind: RowKind, count: usize) {
        let counted = &mut self.0[kind as usize];
        *counted = counted.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
    }
}

/// The time that rows took last, by kind.
///
/// A batch tells one sum. Which of its parts took longer than expected is known by how sure each is: this is
/// a Kalman filter, and the costs are its state. What was learned of rows goes back to the guesses in time.
/// So rows that were taken for dear, of which batches then have one or two, are tried in numbers again.
#[derive(Debug)]
pub(in crate::shard) struct RowCosts {
    /// In nanoseconds.
    nanos: [f64; KINDS],
    /// How far off they may be, and how they are off together.
    covariance: [[f64; KINDS]; KINDS],
}

impl Default for RowCosts {
    fn default() -> Self {
        let mut covariance = [[0.0; KINDS]; KINDS];
        for (kind, guess) in GUESSES.into_iter().enumerate() {
            let spread = if kind == RowKind::Batch as usize { BATCH_SPREAD } else { ROW_SPREAD };
            covariance[kind][kind] = (guess * spread).powi(2);
        }
        Self { nanos: GUESSES, covariance }
    }
}

impl RowCosts {
    /// A batch was committed. So long after it was built its callers were told.
    pub fn learn(&mut self, mut counts: RowCounts, took: Duration) {
        counts.0[RowKind::Batch as usize] = 1;
        let counts = counts.0.map(f64::from);
        self.forget();
        let doubts = self.covariance.map(|row| dot(&row, &counts));
        let expected = dot(&self.nanos, &counts);
        let variance = dot(&doubts, &counts) + (NOISE * expected).powi(2);
        let outlier = OUTLIER * variance.sqrt();
        let off = (took.as_secs_f64() * 1e9 - expected).clamp(-outlier, outlier);
        for kind in 0..KINDS {
            let most = if kind == RowKind::Batch as usize { BATCH_MOST } else { ROW_MOST };
            let learned = self.nanos[kind] + doubts[kind] / variance * off;
            self.nanos[kind] = learned.clamp(LEAST * GUESSES[kind], most * GUESSES[kind]);
            for other in 0..KINDS {
                self.covariance[kind][other] -= doubts[kind] * doubts[other] / variance;
            }
        }
    }

    /// Makes the estimates less sure, and draws those of rows to the guesses.
    fn forget(&mut self) {
        let batch = RowKind::Batch as usize;
        let mut kept = [1.0 - FORGOTTEN; KINDS];
        kept[batch] = 1.0;
        for kind in 0..KINDS {
            let (nanos, guess) = (self.nanos[kind], GUESSES[kind]);
            self.nanos[kind] = guess + kept[kind] * (nanos - guess);
            for other in 0..KINDS {
                self.covariance[kind][other] *= kept[kind] * kept[other];
            }
            self.covariance[kind][kind] += if kind == batch {
                (DRIFT * nanos).powi(2)
            } else {
                // Less than in proportion to its cost: else dear rows would take the blame for all.
                (1.0 - kept[kind].powi(2)) * ROW_SPREAD.powi(2) * guess * nanos.max(guess)
            };
        }
    }

    /// How long the rows of a batch may take in which others wait, in nanoseconds: three quarters of what is
    /// around them, as far as the whole is no longer than it may be.
    fn budget(&self) -> f64 {
        let overhead = self.nanos[RowKind::Batch as usize];
        let [whole, least] = [SHARED_BATCH, SHARED_ROWS_MIN].map(|span| span.as_secs_f64() * 1e9);
        (0.75 * overhead).min(whole - overhead).max(least)
    }

    /// How many rows that a sweep moves take half of a batch in which others wait.
    pub fn page_rows(&self, sweep: Sweep) -> usize {
        (self.budget() / 2.0 / self.nanos[RowKind::of_sweep(sweep) as usize]).max(1.0) as usize
    }

    /// The prices in the batch of this number, of so many units, all of which the cheapest kinds may use up
    /// one by one.
    pub fn prices(&self, number: u64, units: usize) -> Prices {
        let part = if number.is_multiple_of(SHORT_EVERY) { SHORT } else { 1.0 };
        let budget = self.budget();
        let unit = part * budget / units.max(1) as f64;
        let mut nanos = self.nanos;
        let topic = &mut nanos[RowKind::Topic as usize];
        *topic = topic.max(budget / SHARED_TOPICS_MAX);
        let mut of = nanos.map(|nanos| (nanos / unit).round() as usize);
        of[FIRST_ROW..].iter_mut().for_each(|price| *price = (*price).max(1));
        Prices { of, byte: self.nanos[RowKind::Kibibyte as usize] / 1_024.0 / unit }
    }
}

/// The prices of rows, in units of which a batch has as many as it may have rows.
#[derive(Debug, Clone, Copy)]
pub(in crate::shard) struct Prices {
    /// One row of each kind.
    of: [usize; KINDS],
    /// A byte of a body.
    byte: f64,
}

impl Prices {
    /// In a batch that nobody else waits for: only rows count, and all alike.
    pub fn by_row() -> Self {
        let mut of = [1; KINDS];
        of[..FIRST_ROW].fill(0);
        Self { of, byte: 0.0 }
    }

    /// Of one of a kind.
    pub fn of(&self, kind: RowKind) -> usize {
        self.of[kind as usize]
    }

    /// Of a new topic, beside its item. Its counts are folded by a later batch.
    pub fn of_new_topic(&self) -> usize {
        self.of(RowKind::Topic) + self.of(RowKind::Fold)
    }

    /// Of bodies.
    pub fn of_bytes(&self, bytes: usize) -> usize {
        (self.byte * bytes as f64).round() as usize
    }

    /// Of the dearest end of a delivery.
    pub fn of_settlement(&self) -> usize {
        let kinds = [RowKind::Deletion, RowKind::Return, RowKind::Extension];
        kinds.map(|kind| self.of(kind)).into_iter().max().unwrap_or(1)
    }
}

fn dot(left: &[f64; KINDS], right: &[f64; KINDS]) -> f64 {
    left.iter().zip(right).map(|(left, right)| left * right).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: usize = 1_000;

    /// Rows of one kind.
    fn rows(kind: RowKind, count: usize) -> RowCounts {
        let mut counts = RowCounts::default();
        counts.add(kind, count);
        counts
    }

    /// How many rows of a kind a shared batch has, at these costs.
    fn room(costs: &RowCosts, kind: RowKind) -> usize {
        room_in(1, costs, kind)
    }

    /// How many of them the batch of a number has.
    fn room_in(number: u64, costs: &RowCosts, kind: RowKind) -> usize {
        ROWS / costs.prices(number, ROWS).of(kind)
    }

    #[test]
    fn a_shared_batch_has_as_many_rows_as_their_kind_takes_in_its_time() {
        let mut costs = RowCosts::default();
        for _ in 0..30 {
            costs.learn(rows(RowKind::Other, 0), Duration::from_millis(2));
            costs.learn(rows(RowKind::Return, ROWS), Duration::from_millis(202));
            costs.learn(rows(RowKind::Deletion, ROWS), Duration::from_millis(12));
        }
        // 3 ms at 200 µs, and at 10 µs each.
        assert!((12..=20).contains(&room(&costs, RowKind::Return)), "{costs:?}");
        assert!((200..=400).contains(&room(&costs, RowKind::Deletion)), "{costs:?}");
    }

    #[test]
    fn costs_follow_the_database_within_a_few_batches() {
        let mut costs = RowCosts::default();
        let mut after = |batches: usize, micros: u64| {
            for _ in 0..batches {
                let rows = 500;
                costs.learn(super::tests::rows(RowKind::Return, rows), Duration::from_micros(micros * 500));
            }
            costs.nanos[RowKind::Return as usize] / 1e3
        };
        assert!((250.0..=310.0).contains(&after(8, 300)));
        assert!((10.0..=40.0).contains(&after(12, 30)));
    }

    #[test]
    fn one_batch_that_waited_for_something_else_changes_little() {
        let mut costs = RowCosts::default();
        let mut after = |batches: usize, took: Duration| {
            (0..batches).for_each(|_| costs.learn(rows(RowKind::Return, ROWS), took));
            costs.nanos[RowKind::Return as usize] / 1e3
        };
        let before = after(30, Duration::from_millis(62));
        let changed = after(1, Duration::from_secs(30)) / before;
        assert!((1.0..=2.0).contains(&changed), "{changed}");
    }

    /// Batches as full as they may be. Returns how many rows each had.
    fn run(costs: &mut RowCosts, batches: u64, around_us: u64, row_us: u64) -> Vec<usize> {
        let batch = |number| {
            let count = room_in(number, costs, RowKind::Item);
            costs.learn(rows(RowKind::Item, count), Duration::from_micros(around_us + row_us * count as u64));
            count
        };
        (1..=batches).map(batch).collect()
    }

    #[test]
    fn full_batches_tell_their_rows_from_what_is_around_them() {
        for (around_us, row_us, least, most) in
            [(2_000, 20, 100, 250), (2_000, 200, 10, 25), (20_000, 20, 80, 250), (20_000, 200, 8, 70)]
        {
            let mut costs = RowCosts::default();
            run(&mut costs, 150, around_us, row_us);
            let (full, range) = (room(&costs, RowKind::Item), least..=most);
            assert!(range.contains(&full), "{around_us} + {row_us} µs a row: {full}");
        }
    }

    #[test]
    fn rows_that_were_taken_for_dear_are_tried_again() {
        let mut costs = RowCosts::default();
        run(&mut costs, 50, 20_000, 20);
        // The database is out of breath for a while.
        run(&mut costs, 50, 20_000, 2_000);
        assert!(room(&costs, RowKind::Item) < 100, "{costs:?}");
        let after = run(&mut costs, 400, 20_000, 20);
        let short = after.iter().filter(|rows| **rows < 100).count();
        assert!(short < 100, "{after:?}");
    }

    #[test]
    fn however_long_a_batch_itself_takes_its_rows_have_their_time() {
        let mut costs = RowCosts::default();
        run(&mut costs, 100, 100_000, 10);
        assert!((3e6..=4e6).contains(&costs.budget()), "{costs:?}");
        // Short batches tell what the batch itself takes.
        (0..40).for_each(|_| costs.learn(rows(RowKind::Item, 1), Duration::from_millis(4)));
        assert!((3e6..=4e6).contains(&costs.budget()), "{costs:?}");
    }
}
