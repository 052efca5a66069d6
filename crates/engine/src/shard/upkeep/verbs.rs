//! The tables of dedupe keys, and the record of the sets of shards: keys have their homes by these.

use forebay_store::ShardTopology;
use forebay_types::Monotonic;

use super::generations::GenerationChange;
use crate::{
    clock::Moment,
    shard::{OwnedShard, work::NextRecord},
};

impl OwnedShard {
    /// The sets of shards that a batch of their own is to record next, if they have to be recorded.
    pub fn set_next_record(&mut self, next: Option<NextRecord>) {
        self.upkeep.next_record = next;
    }

    /// The present set of shards is about to be recorded. Until that is committed, keys whose earlier home
    /// this shard is have to wait.
    pub fn is_recording_topology(&self) -> bool {
        self.upkeep.next_record.is_some()
    }

    /// Another set than the recorded one is to be recorded. Keys that were taken under that one are stored
    /// before, and no others.
    pub fn changes_homes(&self) -> bool {
        self.upkeep.next_record.as_ref().is_some_and(|next| next.is_change)
    }

    /// The sets of shards, if they are to be recorded now.
    pub(in crate::shard) fn record_due(&self, at: Monotonic) -> Option<&ShardTopology> {
        let keys_are_stored = self.intake.keys.in_flight_count() == 0;
        let next = self.upkeep.next_record.as_ref().filter(|next| keys_are_stored || !next.is_change)?;
        (at >= self.upkeep.topology_after).then_some(&next.topology)
    }

    /// The generations of the dedupe table, oldest first.
    pub fn generations(&self) -> Vec<u64> {
        self.upkeep.generations.live().to_vec()
    }

    /// A change of generations ended, with these. What could not be done is tried again after `retry_at`.
    pub fn generations_changed(&mut self, live: Vec<u64>, retry_at: Option<Monotonic>) {
        self.upkeep.generations.end_change(live, retry_at);
    }

    /// Generations to be created and dropped now, if any.
    pub fn begin_generation_change(&mut self, node: Moment) -> Option<GenerationChange> {
        let Moment { now, at } = self.tenure.time.moment(node);
        self.upkeep.generations.begin_change(&self.settings, now, at)
    }
}
