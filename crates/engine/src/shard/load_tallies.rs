//! What has become of the items of topics that were there before the take-over. Deliveries don't need it, so
//! the take-over does not wait for it: it is read page by page once the shard is owned.
//!
//! Until the last page is there, what a batch counts is added to what memory knows. No topic's counts are
//! folded, since a fold replaces the tally that is stored, and none is forgotten.

use std::time::Duration;

use forebay_store::TopicTally;
use forebay_types::{Monotonic, TopicId};

use super::{OwnedShard, topics::TopicTable};

/// Tallies of one page: the event loop adds them at once.
const PAGE: usize = 1_000;
/// The pause after a read that failed.
const FAILED_PAUSE: Duration = Duration::from_millis(100);

/// How far the tallies are read.
#[derive(Debug, Default)]
pub(super) struct TallyLoad {
    /// Those behind this topic are still to be read. `None`: all are there.
    after: Option<TopicId>,
    /// Names the read under way.
    read: Option<u64>,
    /// Nothing is read before.
    not_before: Monotonic,
}

impl TallyLoad {
    /// All are to be read.
    pub fn begin(&mut self) {
        self.after = Some(TopicId(0));
    }

    /// All are there.
    pub fn is_done(&self) -> bool {
        self.after.is_none()
    }

    /// When the next read begins.
    pub fn next_wake(&self) -> Option<Monotonic> {
        self.after.and(self.read.is_none().then_some(self.not_before))
    }
}

/// A page of tallies that is to be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TalliesRequest {
    /// Behind this topic.
    pub after: TopicId,
    /// At most so many.
    pub limit: usize,
}

impl OwnedShard {
    /// Begins to read the next tallies, if some are missing. `read` names the read.
    pub fn begin_tallies(&mut self, read: u64, at: Monotonic) -> Option<TalliesRequest> {
        let load = &mut self.topics.tally_load;
        load.next_wake().filter(|wake| *wake <= at)?;
        load.read = Some(read);
        load.after.map(|after| TalliesRequest { after, limit: PAGE })
    }

    /// What was counted before the take-over is in memory.
    pub fn has_tallies(&self) -> bool {
        self.topics.tally_load.is_done()
    }

    /// A read of tallies ended; `None` if it failed.
    pub fn tallies_read(&mut self, read: u64, rows: Option<Vec<(TopicId, TopicTally)>>, at: Monotonic) {
        self.topics.tallies_read(read, rows, at);
    }
}

impl TopicTable {
    fn tallies_read(&mut self, read: u64, rows: Option<Vec<(TopicId, TopicTally)>>, at: Monotonic) {
        let load = &mut self.tally_load;
        if load.read.take_if(|own| *own == read).is_none() {
            return;
        }
        let Some(rows) = rows else {
            load.not_before = at.plus(FAILED_PAUSE);
            return;
        };
        load.after = rows.last().map(|(id, _)| *id).filter(|_| rows.len() >= PAGE);
        for (id, stored) in rows {
            // A topic that was dropped meanwhile is nobody's business any more.
            if let Some(topic) = self.get_mut(id) {
                topic.add_stored(stored);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use forebay_store::{ShardSnapshot, Tally, TopicCounts, TopicRow};
    use forebay_types::TopicName;

    use super::*;
    use crate::shard::{
        image::ImageBuilder,
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
        let mut image = ImageBuilder::new(snapshot, at(0));
        while image.step() {}
        image.finish().topics
    }

    fn read(topics: &mut TopicTable, rows: Option<Vec<(TopicId, TopicTally)>>) {
        topics.tally_load.read = Some(1);
        topics.tallies_read(1, rows, at(5));
    }

    #[test]
    fn what_is_stored_is_added_page_by_page_to_what_was_counted_since() {
        let mut topics = topics();
        let tally = |topics: &TopicTable, id| topics.get(TopicId(id)).unwrap().tally();
        assert_eq!((tally(&topics, 1), tally(&topics, 2).unwrap().tally.enqueued), (None, 3));
        let full: Vec<_> = (1..=PAGE as u32).map(|id| (TopicId(id), stored(40))).collect();
        read(&mut topics, Some(full));
        assert_eq!((tally(&topics, 1), tally(&topics, 2)), (Some(stored(40)), Some(stored(43))));
        assert_eq!(topics.tally_load.after, Some(TopicId(PAGE as u32)), "there may be more");
        read(&mut topics, Some(Vec::new()));
        assert!(topics.tally_load.is_done() && topics.tally_load.next_wake().is_none());
    }

    #[test]
    fn a_read_that_failed_is_repeated_after_a_pause_and_one_of_before_is_ignored() {
        let mut topics = topics();
        assert_eq!(topics.tally_load.next_wake(), Some(at(0)));
        read(&mut topics, None);
        assert_eq!(topics.tally_load.next_wake(), Some(at(105)));
        topics.tallies_read(9, Some(Vec::new()), at(6));
        assert!(!topics.tally_load.is_done());
    }
}
