//! Topics that the store has when a shard is taken over. Their places in memory may be made ahead of that.

use forebay_store::{TopicCounts, TopicRow, TopicTally};
use forebay_types::Monotonic;

use super::{state::TopicState, table::TopicTable};
use crate::shard::contents::ready::window::Window;

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
}
