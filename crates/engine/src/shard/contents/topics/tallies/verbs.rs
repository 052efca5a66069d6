//! Tallies of the topics that were there before the take-over. Deliveries don't need them, so the take-over
//! does not wait for them: they are read page by page once the shard is owned.
//!
//! Until the last page is there, the counts of a batch are added to the tally in memory. No topic's counts
//! are folded, since a fold replaces the tally that is stored, and none is forgotten.

use std::time::Duration;

use forebay_store::TopicTally;
use forebay_types::{Monotonic, TopicId};

use crate::shard::{
    OwnedShard,
    contents::topics::table::TopicTable,
    work::{TalliesAfter, TalliesRequest, TallyRows},
};

impl OwnedShard {
    /// Begins to read the next tallies, if some are missing. `read` names the read.
    pub fn begin_tallies(&mut self, read: u64, at: Monotonic) -> Option<TalliesRequest> {
        let limit = self.settings.sweep_rows.max(1);
        let load = &mut self.contents.topics.tally_load;
        load.next_wake().filter(|wake| *wake <= at)?;
        load.read = Some((read, limit));
        load.after.clone().map(|after| TalliesRequest { after, limit })
    }

    /// Whether all counts from before the take-over are in memory.
    pub fn has_tallies(&self) -> bool {
        self.contents.topics.tally_load.is_done()
    }

    /// A read of tallies ended; `None` if it failed.
    pub fn tallies_read(&mut self, read: u64, rows: Option<TallyRows>, at: Monotonic) {
        let failed_before = !self.contents.topics.tally_load.pause.is_zero();
        self.contents.topics.tallies_read(read, rows, at);
        match (failed_before, !self.contents.topics.tally_load.pause.is_zero()) {
            (false, true) => tracing::warn!(
                "what shard {} counted before it was taken over can't be read: until then it is not told",
                self.id
            ),
            (true, false) => tracing::info!("what shard {} counted before can be read again", self.id),
            _ => {}
        }
    }
}

impl TopicTable {
    fn tallies_read(&mut self, read: u64, rows: Option<TallyRows>, at: Monotonic) {
        let load = &mut self.tally_load;
        let Some((_, limit)) = load.read.take_if(|(own, _)| *own == read) else { return };
        let Some(rows) = rows else {
            return load.failed(at);
        };
        load.pause = Duration::ZERO;
        match rows {
            TallyRows::Topics(rows) => {
                let last = rows.last().map(|(id, _)| *id).filter(|_| rows.len() >= limit);
                load.after =
                    Some(last.map_or_else(|| TalliesAfter::Namespace("".into()), TalliesAfter::Topic));
                self.add_tallies(rows);
            }
            TallyRows::Namespaces(rows) => {
                let last = rows.last().filter(|_| rows.len() >= limit);
                load.after = last.map(|row| TalliesAfter::Namespace(row.namespace.clone()));
                self.forgotten.load(rows);
            }
        }
    }

    fn add_tallies(&mut self, rows: Vec<(TopicId, TopicTally)>) {
        for (id, stored) in rows {
            // A topic that a program of before made dormant may have one.
            if let Some(topic) = self.get_mut(id) {
                topic.add_stored(stored);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use forebay_store::{NamespaceTally, ShardSnapshot, Tally, TopicCounts, TopicRow};
    use forebay_types::TopicName;

    use super::*;
    use crate::shard::{
        image::{ExpectedTopics, ImageBuilder},
        tests::{at, time},
    };

    fn stored(enqueued: i64) -> TopicTally {
        TopicTally { since: time(7), tally: Tally { enqueued, ..Tally::default() } }
    }

    /// The topics of a shard that was taken over with two of them. One has counted something since its row.
    fn topics() -> TopicTable {
        let counts = TopicCounts { ready: 1, ..TopicCounts::default() };
        let row = |id| TopicRow { id: TopicId(id), name: TopicName::new("ns", format!("t{id}")), counts };
        let later = TopicTally { since: time(9), ..stored(3) };
        let snapshot = ShardSnapshot {
            topics: vec![row(1), row(2)],
            tallies: vec![(TopicId(2), later)],
            ..ShardSnapshot::default()
        };
        let mut image = ImageBuilder::new(snapshot, ExpectedTopics::default(), at(0));
        while image.step() {}
        image.finish().topics
    }

    fn read(topics: &mut TopicTable, rows: Option<TallyRows>) {
        topics.tally_load.read = Some((1, 3));
        topics.tallies_read(1, rows, at(5));
    }

    #[test]
    fn what_is_stored_is_added_page_by_page_to_what_was_counted_since() {
        let mut topics = topics();
        let tally = |topics: &TopicTable, id| topics.get(TopicId(id)).unwrap().tally();
        assert_eq!((tally(&topics, 1), tally(&topics, 2).unwrap().tally.enqueued), (None, 3));
        let rows = vec![(TopicId(1), stored(40)), (TopicId(2), stored(40))];
        read(&mut topics, Some(TallyRows::Topics(rows)));
        assert_eq!((tally(&topics, 1), tally(&topics, 2)), (Some(stored(40)), Some(stored(43))));
        // The counts of forgotten topics come last.
        assert_eq!(topics.tally_load.after, Some(TalliesAfter::Namespace("".into())));
        let row = |name: &str| NamespaceTally {
            namespace: name.into(),
            tally: Some(stored(7)),
            deleted_through: TopicId(0),
            changed_in: 1,
        };
        read(&mut topics, Some(TallyRows::Namespaces(["a", "b", "ns"].map(row).into())));
        assert_eq!(topics.tally_load.after, Some(TalliesAfter::Namespace("ns".into())));
        read(&mut topics, Some(TallyRows::Namespaces(Vec::new())));
        assert!(topics.tally_load.is_done() && topics.tally_load.next_wake().is_none());
    }

    #[test]
    fn a_read_that_failed_is_repeated_after_a_pause_and_one_of_before_is_ignored() {
        let mut topics = topics();
        assert_eq!(topics.tally_load.next_wake(), Some(at(0)));
        read(&mut topics, None);
        assert_eq!(topics.tally_load.next_wake(), Some(at(105)));
        read(&mut topics, None);
        assert_eq!(topics.tally_load.next_wake(), Some(at(205)));
        topics.tally_load.read = Some((2, 3));
        topics.tallies_read(9, Some(TallyRows::Topics(Vec::new())), at(6));
        assert!(!topics.tally_load.is_done() && topics.tally_load.read == Some((2, 3)));
    }
}
