//! The open leases of one shard: the lease log as its owner holds it.

use std::collections::{BTreeSet, HashMap};

use forebay_store::{LeaseEntry, LeaseRow};
use forebay_types::{Seq, Timestamp, TopicId};

#[derive(Debug, Default)]
pub(crate) struct Leases {
    rows: HashMap<u64, LeaseRow>,
    at: HashMap<Seq, (u64, usize)>,
    deadlines: BTreeSet<(Timestamp, Seq)>,
    per_topic: HashMap<TopicId, usize>,
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
        self.rows.get(row).map(|row| &row.entries[*place])
    }

    /// A committed row begins its deliveries.
    pub fn insert(&mut self, row: LeaseRow) {
        for (place, entry) in row.entries.iter().enumerate().filter(|(place, _)| row.open[*place]) {
            self.at.insert(entry.seq, (row.id, place));
            self.deadlines.insert((entry.deadline, entry.seq));
            *self.per_topic.entry(entry.topic).or_default() += 1;
        }
        self.rows.insert(row.id, row);
    }

    /// A delivery ended; the end is committed.
    pub fn close(&mut self, seq: Seq) -> Option<LeaseEntry> {
        let (id, place) = self.at.remove(&seq)?;
        let row = self.rows.get_mut(&id)?;
        row.open[place] = false;
        let entry = row.entries[place].clone();
        if !row.open.contains(&true) {
            self.rows.remove(&id);
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
        let row = self.rows.get(&id)?;
        let open: Vec<bool> =
            row.open.iter().enumerate().map(|(place, open)| *open && !closing.contains(&place)).collect();
        if open.contains(&true) {
            Some(LeaseRow { id, entries: row.entries.clone(), open })
        } else {
            Some(LeaseRow { id, entries: Vec::new(), open: Vec::new() })
        }
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
