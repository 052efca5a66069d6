//! Topics that only have dead letters. Such a topic keeps its row in the store, because its dead letters need
//! its name, and memory forgets it. Its number is never used again: a new item of the same name makes a new
//! topic.

use forebay_store::Batch;
use forebay_types::TopicId;

use super::table::TopicTable;

impl TopicTable {
    /// Writes the counts of topics into their rows for the last time. What became of their items is their
    /// namespaces' from now on.
    pub fn fold_last(&self, batch: &mut Batch, dormant: &[TopicId]) {
        let fold = |id: &TopicId| self.get(*id).map(|topic| (*id, topic.counts, None));
        batch.folds.extend(dormant.iter().filter_map(fold));
    }

    /// A batch deleted so many dead letters of dormant topics.
    pub fn lost_dormant(&mut self, dead_letters: i64) {
        self.dormant_dead -= dead_letters;
    }
}
