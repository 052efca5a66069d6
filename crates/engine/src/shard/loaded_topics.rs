//! Topics that the store has when a shard is taken over. Their places in memory may be made ahead of that.

use forebay_store::{TopicCounts, TopicRow, TopicTally};
use forebay_types::{Monotonic, TopicId};

use super::{
    ready::window::Window,
    topics::{TopicState, TopicTable},
};

impl TopicTable {
    /// A topic that was read ahead of the take-over. It counts once it is loaded.
    pub fn expect(&mut self, row: &TopicRow) {
        let mut topic = TopicState::new(row.name.clone(), TopicCounts::default(), Window::complete());
        topic.listed = false;
        self.put(row.id, topic);
    }

    /// A topic that the store had when the shard was taken over. What is ready in it has to be read first.
    /// `tally`: what is loaded of what was counted. `unfolded`: it has deltas that its row has not counted.
    pub fn add_loaded(&mut self, row: &TopicRow, tally: Option<TopicTally>, unfolded: bool, at: Monotonic) {
        if self.get(row.id).is_none() {
            self.expect(row);
        }
        if let Some(topic) = self.get_mut(row.id) {
            topic.window = if row.counts.ready > 0 { Window::unread() } else { Window::complete() };
            topic.tally = tally;
            topic.dirty_since = unfolded.then_some(0);
        }
        self.begin_counts(row.id, row.counts, at);
        // The deltas that the load added up are still rows: they may go once the topic was folded.
        self.dirty.extend(unfolded.then_some(row.id));
        self.walk.begin();
    }

    /// All topics are loaded, these ones by number. What was expected and is not among them is gone.
    pub fn end_load(&mut self, loaded: &[TopicId]) {
        if self.len() == loaded.len() {
            return;
        }
        let gone = self.iter().map(|(id, _)| id).filter(|id| loaded.binary_search(id).is_err());
        for id in gone.collect::<Vec<_>>() {
            self.remove(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use forebay_types::TopicName;

    use super::*;

    const AT: Monotonic = Monotonic::from_start(Duration::ZERO);

    fn row(id: u32, ready: i64) -> TopicRow {
        let counts = TopicCounts { ready, ..TopicCounts::default() };
        TopicRow { id: TopicId(id), name: TopicName::new("ns", format!("t{id}")), counts }
    }

    #[test]
    fn a_topic_that_was_dropped_and_made_anew_has_its_new_number() {
        let mut table = TopicTable::default();
        table.expect(&row(1, 0));
        let again = TopicRow { id: TopicId(2), ..row(1, 3) };
        table.add_loaded(&again, None, false, AT);
        table.end_load(&[TopicId(2)]);
        assert_eq!(table.check(), Ok(()));
        assert_eq!(table.id_of(&again.name), Some(TopicId(2)));
    }

    #[test]
    fn what_was_expected_counts_as_loaded_and_is_forgotten_if_it_is_gone() {
        let mut table = TopicTable::default();
        [row(1, 5), row(2, 5), row(3, 0)].iter().for_each(|row| table.expect(row));
        assert_eq!(table.sums(), TopicCounts::default());
        for (row, unfolded) in [(row(1, 7), true), (row(3, 0), false), (row(4, 2), false)] {
            table.add_loaded(&row, None, unfolded, AT);
        }
        table.end_load(&[1, 3, 4].map(TopicId));
        assert_eq!(table.check(), Ok(()));
        assert_eq!((table.len(), table.sums().ready), (3, 9));
        assert!(table.id_of(&row(2, 0).name).is_none() && table.get(TopicId(2)).is_none());
        assert!(!table.get(TopicId(1)).unwrap().window().is_complete());
    }
}
