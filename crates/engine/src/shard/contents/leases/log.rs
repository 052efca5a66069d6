//! The open leases of one shard: the lease log as its owner holds it.

use std::{collections::BTreeSet, time::Duration};

use forebay_store::{LeaseChange, LeaseEntry, LeaseRow};
use forebay_types::{Seq, Timestamp, TopicId};

use super::ends::Ends;
use crate::{invariant::broken, striped::StripedMap};

/// A row with at most one open delivery in so many is rewritten.
const SPARSE: usize = 16;

/// One row of the lease log.
#[derive(Debug)]
struct Row {
    row: LeaseRow,
    /// How many of its deliveries are open.
    open: usize,
}

/// Where an open delivery is in the lease log.
#[derive(Debug, Clone, Copy)]
pub(in crate::shard) struct LeasePosition {
    /// The row.
    pub row: u64,
    /// The delivery's position in the row.
    pub position: usize,
}

/// The open deliveries of one shard.
#[derive(Debug, Default)]
pub(in crate::shard) struct Leases {
    /// Every row with an open delivery, by its number.
    rows: StripedMap<u64, Row>,
    /// Where each leased item's delivery is.
    positions: StripedMap<Seq, LeasePosition>,
    /// When each open delivery ends. Those that began before a step of the shard's time are apart, so that a
    /// step costs the same however many there are.
    ends: Ends,
    /// Open deliveries of each topic.
    per_topic: StripedMap<TopicId, usize>,
    /// Rows most of whose deliveries are over.
    sparse: BTreeSet<u64>,
}

impl Leases {
    pub fn len(&self) -> usize {
        self.positions.len()
    }

    pub fn of_topic(&self, topic: TopicId) -> usize {
        self.per_topic.get(&topic).copied().unwrap_or(0)
    }

    pub fn get(&self, seq: Seq) -> Option<&LeaseEntry> {
        let at = self.positions.get(&seq)?;
        self.rows.get(&at.row).map(|row| &row.row.entries[at.position])
    }

    /// A batch was committed, and with it the deliveries that it begins.
    pub fn begin(&mut self, batch: u64, entries: Vec<LeaseEntry>) {
        if !entries.is_empty() {
            self.insert(LeaseRow { id: batch, open: vec![true; entries.len()], entries });
        }
    }

    /// A row as it is stored.
    pub fn insert(&mut self, row: LeaseRow) {
        for (position, entry) in row.entries.iter().enumerate().filter(|(position, _)| row.open[*position]) {
            self.positions.insert(entry.seq, LeasePosition { row: row.id, position });
            self.ends.insert(row.id, entry.deadline, entry.seq);
            *self.per_topic.or_default(entry.topic) += 1;
        }
        let open = row.open.iter().filter(|open| **open).count();
        self.rows.insert(row.id, Row { row, open });
    }

    /// A delivery ended; the end is committed. Returns its topic.
    pub fn close(&mut self, seq: Seq) -> Option<TopicId> {
        let Some(LeasePosition { row: id, position }) = self.positions.remove(&seq) else {
            broken("a delivery that ends is open");
            return None;
        };
        let Some(row) = self.rows.get_mut(&id) else {
            broken("an open delivery has its row");
            return None;
        };
        row.row.open[position] = false;
        row.open -= 1;
        let LeaseEntry { deadline, topic, .. } = row.row.entries[position];
        if row.open == 0 {
            self.rows.remove(&id);
            self.sparse.remove(&id);
        } else if row.open * SPARSE <= row.row.open.len() {
            self.sparse.insert(id);
        }
        self.ends.remove(id, deadline, seq);
        if let Some(count) = self.per_topic.get_mut(&topic) {
            *count -= 1;
            if *count == 0 {
                self.per_topic.remove(&topic);
            }
        }
        Some(topic)
    }

    /// The end of a delivery can't be stored: it is tried again after `deadline`. The store has the old one.
    pub fn postpone(&mut self, seq: Seq, deadline: Timestamp) {
        let Some(LeasePosition { row, position }) = self.positions.get(&seq).copied() else { return };
        let Some(of_row) = self.rows.get_mut(&row) else { return broken("an open delivery has its row") };
        let old = std::mem::replace(&mut of_row.row.entries[position].deadline, deadline);
        self.ends.remove(row, old, seq);
        self.ends.insert(row, deadline, seq);
    }

    /// The change of a row once these positions are closed as well. There is no bitmap if none is left open.
    pub fn after_closing(&self, id: u64, closing: &[usize]) -> Option<LeaseChange> {
        let Row { row, open: left } = self.rows.get(&id)?;
        let partly = *left < row.open.len();
        if closing.len() >= *left {
            return Some(LeaseChange { id, partly, open: Vec::new() });
        }
        let mut open = row.open.clone();
        for position in closing {
            open[*position] = false;
        }
        Some(LeaseChange { id, partly, open })
    }

    /// The shard's time has stepped. The deliveries that were open move with it, but for those that had
    /// ended. `number`: rows from this one on begin after it.
    pub fn step(&mut self, number: u64, before: Timestamp, by: Duration) {
        self.ends.step(number, before, by);
    }

    /// The next row has this number.
    pub fn next_row(&mut self, number: u64) {
        self.ends.next_row(number);
    }

    /// Where an open delivery is in the log, and its entry there.
    pub fn find(&self, seq: Seq) -> Option<(LeasePosition, &LeaseEntry)> {
        let at = *self.positions.get(&seq)?;
        let row = self.rows.get(&at.row)?;
        Some((at, &row.row.entries[at.position]))
    }

    /// An open delivery with its end, which steps may have moved since it was written.
    pub fn as_of_now(&self, (at, entry): (LeasePosition, &LeaseEntry)) -> LeaseEntry {
        LeaseEntry { deadline: self.ends.end_of(at.row, entry.deadline), ..entry.clone() }
    }

    /// A row that is mostly closed, so that few open deliveries keep a long row alive.
    pub fn sparse(&self) -> Option<&LeaseRow> {
        self.sparse.first().and_then(|id| self.rows.get(id)).map(|row| &row.row)
    }

    /// The deliveries that have ended without an ack by `now`, first end first.
    pub fn timed_out(&self, now: Timestamp) -> impl Iterator<Item = &LeaseEntry> {
        let ended = self.ends.behind((Timestamp::MIN, Seq(0))).take_while(move |(end, _)| *end <= now);
        ended.filter_map(|(_, seq)| self.get(seq))
    }

    /// Open deliveries and their ends, by these, behind one of them.
    pub fn behind(&self, after: (Timestamp, Seq)) -> impl Iterator<Item = (Timestamp, &LeaseEntry)> {
        self.ends.behind(after).filter_map(|(end, seq)| Some((end, self.get(seq)?)))
    }

    /// When the next lease ends.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        self.ends.first()
    }

    /// Whether every account agrees with the rows. Checked in tests.
    pub fn check(&self) -> Result<(), String> {
        let mut open = 0;
        for (id, row) in self.rows.iter() {
            let bits = row.row.open.iter().filter(|open| **open).count();
            if bits != row.open || bits == 0 {
                return Err(format!("lease row {id} has {bits} open bits, its account says {}", row.open));
            }
            open += bits;
        }
        let accounts =
            [self.positions.len(), self.ends.len(), self.per_topic.iter().map(|(_, open)| open).sum()];
        if accounts.iter().any(|count| *count != open) {
            return Err(format!("{open} deliveries are open; positions, deadlines, topics say {accounts:?}"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shard::tests::{T, check::wrong, items, shard, store_leased, time};

    #[test]
    fn a_row_whose_open_deliveries_are_miscounted_is_found() {
        let what = wrong(|shard| shard.contents.leases.rows.get_mut(&2).unwrap().open -= 1);
        assert_eq!(what, "lease row 2 has 3 open bits, its account says 2");
    }

    #[test]
    fn a_row_without_an_open_delivery_is_found() {
        let what = wrong(|shard| {
            let row = shard.contents.leases.rows.get_mut(&2).unwrap();
            row.row.open.fill(false);
            row.open = 0;
        });
        assert_eq!(what, "lease row 2 has 0 open bits, its account says 0");
    }

    #[test]
    fn a_delivery_that_an_account_forgot_is_found() {
        let positions = wrong(|shard| {
            shard.contents.leases.positions.remove(&Seq(1));
        });
        assert_eq!(positions, "3 deliveries are open; positions, deadlines, topics say [2, 3, 3]");
        let deadlines = wrong(|shard| {
            shard.contents.leases.ends.remove(2, time(1_000), Seq(1));
        });
        assert_eq!(deadlines, "3 deliveries are open; positions, deadlines, topics say [3, 2, 3]");
        let topics = wrong(|shard| *shard.contents.leases.per_topic.get_mut(&T).unwrap() -= 1);
        assert_eq!(topics, "3 deliveries are open; positions, deadlines, topics say [3, 3, 2]");
    }

    #[test]
    fn closing_a_delivery_updates_every_account() {
        let mut shard = shard();
        let receipts = store_leased(&mut shard, 0, items(2));
        let leases = &mut shard.contents.leases;
        leases.close(receipts[0].item.seq);
        assert_eq!((leases.len(), leases.of_topic(T), leases.next_deadline()), (1, 1, Some(time(1_000))));
        assert_eq!(leases.check(), Ok(()));
        leases.close(receipts[1].item.seq);
        assert!(leases.rows.is_empty() && leases.ends.len() == 0 && leases.per_topic.is_empty());
    }

    #[test]
    #[should_panic(expected = "a delivery that ends is open")]
    fn a_delivery_ends_once() {
        let mut shard = shard();
        let receipts = store_leased(&mut shard, 0, items(2));
        shard.contents.leases.close(receipts[0].item.seq);
        shard.contents.leases.close(receipts[0].item.seq);
    }

    #[test]
    fn only_the_open_deliveries_of_a_stored_row_are_taken_over() {
        let mut shard = shard();
        store_leased(&mut shard, 0, items(3));
        let mut row = shard.contents.leases.rows.remove(&2).unwrap().row;
        row.open = vec![false, true, false];
        let mut leases = Leases::default();
        leases.insert(row);
        assert_eq!((leases.len(), leases.get(Seq(1)).is_none(), leases.check()), (1, true, Ok(())));
        assert_eq!(leases.find(Seq(2)).map(|(at, _)| (at.row, at.position)), Some((2, 1)));
    }

    #[test]
    fn deliveries_time_out_in_the_order_of_their_ends() {
        let mut shard = shard();
        store_leased(&mut shard, 500, items(1));
        store_leased(&mut shard, 100, items(1));
        let ended =
            |ms| shard.contents.leases.timed_out(time(ms)).map(|lease| lease.seq.0).collect::<Vec<_>>();
        assert_eq!((ended(1_099), ended(9_000).len()), (vec![], 2));
        assert!(shard.contents.leases.timed_out(time(9_000)).is_sorted_by_key(|lease| lease.deadline));
    }
}
