//! What a shard knows of dedupe keys and request ids: which are in flight, and in which tables they are
//! stored.

use std::collections::VecDeque;

use forebay_types::{Monotonic, Timestamp};

use super::{
    OwnedShard,
    generations::GenerationChange,
    work::{KeyHash, ShardEnqueue},
};
use crate::clock::Moment;

impl OwnedShard {
    /// The time that new dedupe keys are stored with, at least.
    pub fn key_time(&self, node_now: Timestamp) -> Timestamp {
        self.tenure.marks.time.max(node_now)
    }

    /// Whether an enqueue with these keys has to wait: another one holds one of them, or no generation takes
    /// keys yet.
    pub fn must_wait_for_keys(&self, keys: &[KeyHash], node_now: Timestamp) -> bool {
        self.keys.is_held(keys) || self.generations.current(self.key_time(node_now)).is_none()
    }

    /// An enqueue waits until another one releases a key, or until a generation takes keys.
    pub fn wait_for_keys(&mut self, part: ShardEnqueue) {
        self.keys.wait(part);
    }

    /// Takes the enqueues that wait for keys: they try again.
    pub fn take_waiting_for_keys(&mut self) -> VecDeque<ShardEnqueue> {
        self.keys.take_waiting()
    }

    /// These keys are in flight from now on.
    pub fn hold_keys(&mut self, keys: &[KeyHash]) {
        self.keys.hold(keys);
    }

    /// An enqueue's keys, which are held, are looked up by the read `read`.
    pub fn begin_lookup(&mut self, read: u64, part: ShardEnqueue) {
        self.keys.begin_lookup(read, part);
    }

    /// The enqueue whose lookup ended.
    pub fn end_lookup(&mut self, read: u64) -> Option<ShardEnqueue> {
        self.keys.end_lookup(read)
    }

    /// The configured set of shards is about to be recorded. Until that is committed, keys whose earlier home
    /// this shard is have to wait.
    pub fn is_recording_topology(&self) -> bool {
        self.new_topology.is_some()
    }

    /// The generations of the dedupe table, oldest first.
    pub fn generations(&self) -> Vec<u64> {
        self.generations.live().to_vec()
    }

    /// A change of generations ended; `None` if it failed.
    pub fn generations_changed(&mut self, live: Option<Vec<u64>>, retry_at: Monotonic) {
        self.generations.end_change(live, retry_at);
    }

    /// Generations to be created and dropped now, if any.
    pub fn begin_generation_change(&mut self, node: Moment) -> Option<GenerationChange> {
        let Moment { now, at } = self.time.moment(node);
        self.generations.begin_change(&self.settings, now, at)
    }
}
