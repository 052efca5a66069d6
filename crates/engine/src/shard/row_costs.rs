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
const SHARED_ROWS_MIN: Duration = Duration::from_millis(5);

/// A kind of row, by what it costs the database. The first four are not counted as rows of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowKind {
    /// The batch itself: the statements around its rows, its fence, its COMMIT.
    Batch,
    /// The row of a topic, beside that of its first item.
    Topic,
    /// The memory of a dedupe key or a request id, beside the items.
    Key,
    /// 1,024 bytes of bodies.
    Kibibyte,
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
    [2e6, 40e3, 20e3, 2e3, 20e3, 10e3, 15e3, 15e3, 60e3, 80e3, 50e3, 30e3, 30e3, 60e3, 30e3];
/// The least and the most that one costs, in nanoseconds.
const BOUNDS: (f64, f64) = (100.0, 1e9);
/// How much a batch counts against those before it.
const WEIGHT: f64 = 0.5;

/// How many rows of each kind a batch has.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RowCounts([u32; KINDS]);

impl RowCounts {
    /// A batch has so many more of a kind.
    pub(super) fn add(&mut self, kind: RowKind, count: usize) {
        let counted = &mut self.0[kind as usize];
        *counted = counted.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
    }
}

/// The time that rows took last, by kind.
#[derive(Debug)]
pub(super) struct RowCosts {
    /// In nanoseconds.
    nanos: [f64; KINDS],
}

impl Default for RowCosts {
    fn default() -> Self {
        Self { nanos: GUESSES }
    }
}

impl RowCosts {
    /// A batch was committed, and took so long. What it took beyond, or less than, what was expected is laid
    /// on the kinds that made up most of it. One batch that had to wait for something else changes little.
    pub fn learn(&mut self, mut counts: RowCounts, took: Duration) {
        counts.0[RowKind::Batch as usize] = 1;
        let parts = counts.0.iter().zip(&self.nanos).map(|(count, nanos)| f64::from(*count) * nanos);
        let expected: f64 = parts.sum();
        let off = (took.as_secs_f64() * 1e9 / expected).clamp(0.5, 2.0) - 1.0;
        for (count, nanos) in counts.0.iter().zip(&mut self.nanos) {
            let share = f64::from(*count) * *nanos / expected;
            *nanos = (*nanos * (1.0 + WEIGHT * share * off)).clamp(BOUNDS.0, BOUNDS.1);
        }
        // No batch takes less than what is around its rows. Where all are alike, nothing else tells it.
        let overhead = &mut self.nanos[RowKind::Batch as usize];
        *overhead = overhead.min(took.as_secs_f64() * 1e9).max(BOUNDS.0);
    }

    /// How long the rows of a batch may take in which others wait, in nanoseconds: twice as long as what is
    /// around them, as far as the whole is no longer than it may be.
    fn budget(&self) -> f64 {
        let overhead = self.nanos[RowKind::Batch as usize];
        let [whole, least] = [SHARED_BATCH, SHARED_ROWS_MIN].map(|span| span.as_secs_f64() * 1e9);
        (2.0 * overhead).min(whole - overhead).max(least)
    }

    /// How many rows that a sweep moves take half of a batch in which others wait.
    pub fn page_rows(&self, sweep: Sweep) -> usize {
        (self.budget() / 2.0 / self.nanos[RowKind::of_sweep(sweep) as usize]).max(1.0) as usize
    }

    /// The prices in a batch of so many units, all of which the cheapest kinds may use up one by one.
    pub fn prices(&self, units: usize) -> Prices {
        let unit = self.budget() / units.max(1) as f64;
        let mut of = self.nanos.map(|nanos| (nanos / unit).round() as usize);
        of[FIRST_ROW..].iter_mut().for_each(|price| *price = (*price).max(1));
        Prices { of, byte: self.nanos[RowKind::Kibibyte as usize] / 1_024.0 / unit }
    }
}

/// The prices of rows, in units of which a batch has as many as it may have rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Prices {
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
        ROWS / costs.prices(ROWS).of(kind)
    }

    #[test]
    fn a_shared_batch_has_as_many_rows_as_their_kind_takes_in_its_time() {
        let mut costs = RowCosts::default();
        for _ in 0..30 {
            costs.learn(rows(RowKind::Other, 0), Duration::from_millis(2));
            costs.learn(rows(RowKind::Return, ROWS), Duration::from_millis(202));
            costs.learn(rows(RowKind::Deletion, ROWS), Duration::from_millis(12));
        }
        // 5 ms at 200 µs, and at 10 µs each.
        assert!((20..=32).contains(&room(&costs, RowKind::Return)), "{costs:?}");
        assert!((400..=600).contains(&room(&costs, RowKind::Deletion)), "{costs:?}");
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
        assert!((25.0..=40.0).contains(&after(12, 30)));
    }

    #[test]
    fn one_batch_that_waited_for_something_else_changes_little() {
        let mut costs = RowCosts::default();
        costs.learn(rows(RowKind::Return, ROWS), Duration::from_secs(30));
        let changed = costs.nanos[RowKind::Return as usize] / GUESSES[RowKind::Return as usize];
        assert!((1.3..=1.5).contains(&changed), "{changed}");
    }

    #[test]
    fn however_long_a_batch_itself_takes_its_rows_have_their_time() {
        let mut costs = RowCosts::default();
        for _ in 0..50 {
            costs.learn(rows(RowKind::Deletion, 500), Duration::from_millis(100 + 5));
        }
        assert!((5e6..=15e6).contains(&costs.budget()), "{costs:?}");
        // A short batch tells what the batch itself takes.
        costs.learn(rows(RowKind::Deletion, 1), Duration::from_millis(3));
        assert!((5e6..=6e6).contains(&costs.budget()), "{costs:?}");
    }
}
