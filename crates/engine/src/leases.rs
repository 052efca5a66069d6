//! The open leases of one shard: the lease log as its owner holds it.

use std::collections::{BTreeSet, HashMap};

use forebay_store::{LeaseEntry, LeaseRow};
use forebay_types::{Seq, Timestamp, TopicId};

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
    rows: HashMap<u64, Row>,
    at: HashMap<Seq, (u64, usize)>,
    deadlines: BTreeSet<(Timestamp, Seq)>,
    per_topic: HashMap<TopicId, usize>,
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

    /// A committed row begins its deliveries.
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
    pub fn close(&mut self, seq: Seq) -> Option<LeaseEntry> {
        let (id, place) = self.at.remove(&seq)?;
        let held = self.rows.get_mut(&id)?;
        held.row.open[place] = false;
        held.left -= 1;
        let entry = held.row.entries[place].clone();
        if held.left == 0 {
            self.rows.remove(&id);
            self.sparse.remove(&id);
        } else if held.left * SPARSE <= held.row.open.len() {
            self.sparse.insert(id);
        }
        self.deadlines.remove(&(entry.deadline, seq));
        if let Some(count) = self.per_topic.get_mut(&entry.topic) {
            *count -= 1;
            if *count == 0 {
                self.per_topic.remove(&entry.topic);
            }
        }
        Some(entry)
    }

    /// Where a lease stands in the log: row and place.
    pub fn place(&self, seq: Seq) -> Option<(u64, usize)> {
        self.at.get(&seq).copied()
    }

    /// A row as it will be once these places are closed too. A row that is closed whole comes without entries.
    pub fn without(&self, id: u64, closing: &[usize]) -> Option<LeaseRow> {
        let Row { row, left } = self.rows.get(&id)?;
        if closing.len() >= *left {
            return Some(LeaseRow { id, entries: Vec::new(), open: Vec::new() });
        }
        let mut open = row.open.clone();
        for place in closing {
            open[*place] = false;
        }
        Some(LeaseRow { id, entries: row.entries.clone(), open })
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
