//! When the open deliveries of a shard end, in order, over steps of its time.
//!
//! A delivery that began before a step ends later by as much. The ends as they are stored stay as they are:
//! those of before a step are a list of their own, and what is added to them is noted beside it. So a step
//! costs the same however many deliveries are open.

use std::{collections::BTreeSet, iter::Peekable, ops::Bound, time::Duration};

use forebay_types::{Seq, Timestamp};

/// The most lists. Beyond that the deliveries do not move with a step.
const LISTS_MAX: usize = 64;

/// A step of the shard's time.
#[derive(Debug, Clone, Copy)]
struct Step {
    /// The shard's time before it. What had ended by then does not move.
    before: Timestamp,
    /// How far it was.
    by: Duration,
}

impl Step {
    fn moved(self, end: Timestamp) -> Timestamp {
        if end > self.before { end.plus(self.by) } else { end }
    }

    /// The latest time that does not move behind this one.
    fn back(self, end: Timestamp) -> Timestamp {
        end.minus(self.by).max(end.min(self.before))
    }
}

/// The deliveries that began between two steps.
#[derive(Debug, Default)]
struct List {
    /// The number of the first row of the lease log that may be in it.
    first_row: u64,
    /// When each ends, by the time as it was.
    ends: BTreeSet<(Timestamp, Seq)>,
    /// The step that ended it.
    step: Option<Step>,
}

/// When the open deliveries of a shard end.
#[derive(Debug)]
pub(super) struct Ends {
    /// In the order of their rows. There is always one.
    lists: Vec<List>,
}

impl Default for Ends {
    fn default() -> Self {
        Self { lists: vec![List::default()] }
    }
}

impl Ends {
    pub fn insert(&mut self, row: u64, end: Timestamp, seq: Seq) {
        let list = self.list_of(row);
        self.lists[list].ends.insert((end, seq));
    }

    pub fn remove(&mut self, row: u64, end: Timestamp, seq: Seq) {
        let list = self.list_of(row);
        self.lists[list].ends.remove(&(end, seq));
    }

    /// The shard's time has stepped. Rows from `number` on begin after it.
    pub fn step(&mut self, number: u64, before: Timestamp, by: Duration) {
        let over = self.lists.iter().take_while(|list| list.ends.is_empty()).count();
        self.lists.drain(..over.min(self.lists.len() - 1));
        if self.lists.len() >= LISTS_MAX {
            tracing::warn!("the time has stepped {LISTS_MAX} times while leases lasted: they may end early");
            return;
        }
        if let Some(last) = self.lists.last_mut() {
            last.step = Some(Step { before, by });
        }
        self.lists.push(List { first_row: number, ..List::default() });
    }

    /// The next row has this number. One that was on its way at a step, and did not happen, has left its own.
    pub fn next_row(&mut self, number: u64) {
        let above = self.lists.iter_mut().rev().take_while(|list| list.first_row > number);
        above.for_each(|list| list.first_row = number);
    }

    /// When a delivery of this row ends by the present time, given when it is stored to.
    pub fn end_of(&self, row: u64, end: Timestamp) -> Timestamp {
        self.steps(self.list_of(row)).fold(end, |end, step| step.moved(end))
    }

    /// The first end.
    pub fn first(&self) -> Option<Timestamp> {
        let first = |(at, list): (usize, &List)| {
            let (end, _) = list.ends.first()?;
            Some(self.steps(at).fold(*end, |end, step| step.moved(end)))
        };
        self.lists.iter().enumerate().filter_map(first).min()
    }

    /// Ends behind this one, in order.
    pub fn behind(&self, after: (Timestamp, Seq)) -> impl Iterator<Item = (Timestamp, Seq)> {
        let of_list = |at: usize| {
            let steps: Vec<Step> = self.steps(at).collect();
            let from = steps.iter().rev().fold(after.0, |end, step| step.back(end));
            // With equal ends it is the item that counts, so those are looked at again.
            let ends = self.lists[at].ends.range((Bound::Included((from, Seq(0))), Bound::Unbounded));
            let moved = move |end: Timestamp| steps.iter().fold(end, |end, step| step.moved(end));
            ends.map(move |(end, seq)| (moved(*end), *seq)).skip_while(move |end| *end <= after)
        };
        MergedLists { lists: (0..self.lists.len()).map(|at| of_list(at).peekable()).collect() }
    }

    pub fn len(&self) -> usize {
        self.lists.iter().map(|list| list.ends.len()).sum()
    }

    fn list_of(&self, row: u64) -> usize {
        // There is mostly one.
        self.lists.iter().rposition(|list| list.first_row <= row).unwrap_or(0)
    }

    /// The steps since a list's deliveries began.
    fn steps(&self, list: usize) -> impl Iterator<Item = Step> {
        self.lists[list..].iter().filter_map(|list| list.step)
    }
}

/// Several lists in order, as one.
struct MergedLists<I: Iterator> {
    lists: Vec<Peekable<I>>,
}

impl<T: Ord + Copy, I: Iterator<Item = T>> Iterator for MergedLists<I> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        let heads = self.lists.iter_mut().enumerate();
        let (_, first) = heads.filter_map(|(at, list)| Some((*list.peek()?, at))).min()?;
        self.lists[first].next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shard::tests::time;

    const HOUR: Duration = Duration::from_secs(3_600);

    /// Ends in milliseconds since the beginning, and items.
    fn listed(ends: &Ends, after: (Timestamp, Seq)) -> Vec<(u64, u64)> {
        ends.behind(after).map(|(end, seq)| (end.since(time(0)).as_millis() as u64, seq.0)).collect()
    }

    #[test]
    fn open_deliveries_move_with_a_step_and_those_that_had_ended_do_not() {
        let mut ends = Ends::default();
        for (ms, seq) in [(900, 1), (1_000, 2), (1_500, 3)] {
            ends.insert(1, time(ms), Seq(seq));
        }
        ends.step(2, time(1_000), HOUR);
        ends.insert(2, time(3_601_200), Seq(4));
        let all = (Timestamp::MIN, Seq(0));
        assert_eq!(listed(&ends, all), [(900, 1), (1_000, 2), (3_601_200, 4), (3_601_500, 3)]);
        assert_eq!((ends.end_of(1, time(1_500)), ends.first()), (time(3_601_500), Some(time(900))));
        ends.remove(1, time(900), Seq(1));
        ends.remove(1, time(1_000), Seq(2));
        assert_eq!((ends.first(), ends.len()), (Some(time(3_601_200)), 2));
    }

    #[test]
    fn who_goes_on_behind_an_end_meets_each_once() {
        let mut ends = Ends::default();
        (1..=9).for_each(|seq| ends.insert(1, time(1_000 * (seq / 3)), Seq(seq)));
        ends.step(2, time(1_500), Duration::from_secs(10));
        (11..=15).for_each(|seq| ends.insert(2, time(12_000), Seq(seq)));
        ends.step(3, time(11_700), Duration::from_secs(7));
        (21..=22).for_each(|seq| ends.insert(3, time(19_000), Seq(seq)));
        let all = listed(&ends, (Timestamp::MIN, Seq(0)));
        assert!(all.is_sorted() && all.len() == 16, "{all:?}");
        for cut in 0..all.len() {
            let (end, seq) = all[cut];
            assert_eq!(listed(&ends, (time(end), Seq(seq))), all[cut + 1..]);
        }
    }

    #[test]
    fn lists_without_a_delivery_are_forgotten() {
        let mut ends = Ends::default();
        for step in 1..1_000 {
            ends.step(step, time(step), HOUR);
        }
        assert!(ends.lists.len() < 3);
        ends.insert(1_000, time(5_000), Seq(1));
        assert_eq!(ends.end_of(1_000, time(5_000)), time(5_000));
    }
}
