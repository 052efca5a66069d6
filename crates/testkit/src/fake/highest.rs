//! The highest numbers in a shard's rows.

use forebay_store::Fence;

use super::tables::Tables;

impl Tables {
    /// Raises the fence's numbers to those of the rows.
    pub(super) fn raise_fence(&mut self) {
        let batch = self.leases.keys().last().max(self.deltas.keys().last()).copied();
        let seq = self.items.keys().last().max(self.dead.keys().last()).copied();
        let topic = self.topics.keys().last().copied();
        let Fence { batch: last, marks, .. } = &mut self.fence;
        *last = batch.unwrap_or(0).max(*last);
        marks.seq = seq.unwrap_or(marks.seq).max(marks.seq);
        marks.topic = topic.unwrap_or(marks.topic).max(marks.topic);
    }
}
