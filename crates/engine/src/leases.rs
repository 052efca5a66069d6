//! The open leases of one shard: the lease log as its owner holds it.

use std::collections::BTreeSet;

use forebay_store::{LeaseChange, LeaseEntry, LeaseRow};
use forebay_types::{Seq, Timestamp, TopicId};
use rustc_hash::FxHashMap;

/// A row with at most one open delivery in so many is rewritten.
const SPARSE: usize = 16;

#[derive(Debug)]
struct Row {
    row: LeaseRow,
    /// How many of its deliveries are open.
    left: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Leases {
    rows: FxHashMap<u64, Row>,
    at: FxHashMap<Seq, (u64, usize)>,
    deadlines: BTreeSet<(Timestamp, Seq)>,
    per_topic: FxHashMap<TopicId, usize>,
    /// Rows most of whose deliveries are over.
    sparse: BTreeSet<u64>,
}

impl Leases {
    pub fn len(&self) -> usize {
        self.at.len()
    }

    pub fn of_topic(&self, topic: TopicId) -> usize {
        self.per_topic.get(&topic).copied().unwrap_or(0)
    }

    pub fn get(&self, seq: Seq) -> Option<&LeaseEntry> {
        let (row, place) = self.at.get(&seq)?;
        self.rows.get(row).map(|held| &held.row.entries[*place])
    }

    /// A batch was committed, and with it the deliveries that it begins.
    pub fn begin(&mut self, batch: u64, entries: Vec<LeaseEntry>) {
        if !entries.is_empty() {
            self.insert(LeaseRow { id: batch, open: vec![true; entries.len()], entries });
        }
    }

    /// A row as it is stored.
    pub fn insert(&mut self, row: LeaseRow) {
        for (place, entry) in row.entries.iter().enumerate().filter(|(place, _)| row.open[*place]) {
            self.at.insert(entry.seq, (row.id, place));
            self.deadlines.insert((entry.deadline, entry.seq));
            *self.per_topic.entry(entry.topic).or_default() += 1;
        }
        let left = row.open.iter().filter(|open| **open).count();
        self.rows.insert(row.id, Row { row, left });
    }

    /// A delivery ended; the end is committed.
    pub fn close(&mut self, seq: Seq) {
        let Some((id, place)) = self.at.remove(&seq) else { return };
        let Some(held) = self.rows.get_mut(&id) else { return };
        held.row.open[place] = false;
        held.left -= 1;
        let LeaseEntry { deadline, topic, .. } = held.row.entries[place];
        if held.left == 0 {
            self.rows.remove(&id);
            self.sparse.remove(&id);
        } else if held.left * SPARSE <= held.row.open.len() {
            self.sparse.insert(id);
        }
        self.deadlines.remove(&(deadline, seq));
        if let Some(count) = self.per_topic.get_mut(&topic) {
            *count -= 1;
            if *count == 0 {
                self.per_topic.remove(&topic);
            }
        }
    }

    /// Where a lease stands in the log: row and place.
    pub fn place(&self, seq: Seq) -> Option<(u64, usize)> {
        self.at.get(&seq).copied()
    }

    /// A row as it will be once these places are closed too. A row that is closed whole comes without bits.
    pub fn without(&self, id: u64, closing: &[usize]) -> Option<LeaseChange> {
        let Row { row, left } = self.rows.get(&id)?;
        let partly = *left < row.open.len();
        if closing.len() >= *left {
            return Some(LeaseChange { id, partly, open: Vec::new() });
        }
        let mut open = row.open.clone();
        for place in closing {
            open[*place] = false;
        }
        Some(LeaseChange { id, partly, open })
    }

    /// A row that is mostly closed, so that few open deliveries keep a long row alive.
    pub fn sparse(&self) -> Option<&LeaseRow> {
        self.sparse.first().and_then(|id| self.rows.get(id)).map(|held| &held.row)
    }

    /// The leases that end first, up to and including `now`.
    pub fn lapsed(&self, now: Timestamp) -> impl Iterator<Item = &LeaseEntry> {
        self.deadlines
            .iter()
            .take_while(move |(deadline, _)| *deadline <= now)
            .filter_map(|(_, seq)| self.get(*seq))
    }

    /// When the next lease ends.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }
}
