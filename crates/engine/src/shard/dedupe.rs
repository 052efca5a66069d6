//! A shard's dedupe keys and request ids: which are in flight, and in which tables they are stored.

use forebay_store::ShardTopology;
use forebay_types::{Monotonic, Seq, Timestamp};

use super::{
    OwnedShard,
    dedupe_keys::Duplicate,
    generations::GenerationChange,
    work::{KeyHash, NextRecord, ShardEnqueue},
};
use crate::clock::Moment;

impl OwnedShard {
    /// The time that new dedupe keys are stored with, at least.
    pub fn key_time(&self, node_now: Timestamp) -> Timestamp {
        self.tenure.marks.time.max(node_now)
    }

    /// Whether a program of the release before may have stored a key here that counts still: since this one
    /// owns the shard, for less than the longest window.
    pub fn may_hold_older_keys(&self, now: Timestamp) -> bool {
        self.spans.elapsed(self.tenure.began_at, now) < self.settings.longest_dedupe_window()
    }

    /// Whether an item that was enqueued then may have a dedupe key whose window is not over. It may have
    /// waited for a batch before it was stored, though no longer than for a window.
    pub fn may_be_keyed(&self, enqueued_at: Timestamp, now: Timestamp) -> bool {
        let window = self.settings.longest_dedupe_window();
        self.spans.elapsed(self.tenure.keyed_at, now) < window
            && self.spans.elapsed(enqueued_at, now) < window * 2
    }

    /// The key for which an enqueue with these keys has to wait: another one holds it. One that has not
    /// waited yet also waits behind those that do.
    pub fn key_to_wait_for(&self, keys: &[KeyHash], has_waited: bool) -> Option<KeyHash> {
        self.keys.held(keys).or_else(|| if has_waited { None } else { self.keys.line(keys) })
    }

    /// Whether a generation takes keys.
    pub fn takes_keys(&self, node_now: Timestamp) -> bool {
        self.generations.current(self.key_time(node_now)).is_some()
    }

    /// An enqueue waits in the line of a key.
    pub fn wait_for_key(&mut self, key: KeyHash, part: ShardEnqueue) {
        self.keys.wait_for(key, part);
    }

    /// An enqueue waits until [`OwnedShard::resume_keys`].
    pub fn pause_for_keys(&mut self, part: ShardEnqueue) {
        self.keys.pause(part);
    }

    /// A generation may take keys now, or keys may be looked up: the enqueues that waited for that try again.
    pub fn resume_keys(&mut self) {
        self.keys.resume();
    }

    /// Takes the next enqueue that tries again; see [`OwnedShard::tried_keys`].
    pub fn next_resumed(&mut self) -> Option<ShardEnqueue> {
        self.keys.next_resumed()
    }

    /// An enqueue with these keys tried again. Where it left one of them free, the next in line tries.
    pub fn tried_keys(&mut self, keys: &[KeyHash]) {
        self.keys.resume_lines(keys);
    }

    /// An item is stored under a key: those in its line are answered with it.
    pub(super) fn answer_line(&mut self, key: KeyHash, seq: Seq, duplicates: &mut Vec<Duplicate>) {
        let Self { keys, budget, tenure, .. } = self;
        let first_at = tenure.marks.time;
        keys.stored(key, |part, item| {
            budget.release(&part.namespace, item.charge());
            let namespace = part.namespace.clone();
            duplicates.push(Duplicate { namespace, call: part.call, index: item.index, seq, first_at });
        });
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

    /// The sets of shards that a batch of their own is to record next, if they have to be recorded.
    pub fn set_next_record(&mut self, next: Option<NextRecord>) {
        self.next_record = next;
    }

    /// The present set of shards is about to be recorded. Until that is committed, keys whose earlier home
    /// this shard is have to wait.
    pub fn is_recording_topology(&self) -> bool {
        self.next_record.is_some()
    }

    /// Another set than the recorded one is to be recorded. Keys that were taken under that one are stored
    /// before, and no others.
    pub fn changes_homes(&self) -> bool {
        self.next_record.as_ref().is_some_and(|next| next.is_change)
    }

    /// The sets of shards, if they are to be recorded now.
    pub(super) fn record_due(&self, at: Monotonic) -> Option<&ShardTopology> {
        let keys_are_stored = self.keys.in_flight_count() == 0;
        let next = self.next_record.as_ref().filter(|next| keys_are_stored || !next.is_change)?;
        (at >= self.topology_after).then_some(&next.topology)
    }

    /// The generations of the dedupe table, oldest first.
    pub fn generations(&self) -> Vec<u64> {
        self.generations.live().to_vec()
    }

    /// A change of generations ended, with these. What could not be done is tried again after `retry_at`.
    pub fn generations_changed(&mut self, live: Vec<u64>, retry_at: Option<Monotonic>) {
        self.generations.end_change(live, retry_at);
    }

    /// Generations to be created and dropped now, if any.
    pub fn begin_generation_change(&mut self, node: Moment) -> Option<GenerationChange> {
        let Moment { now, at } = self.time.moment(node);
        self.generations.begin_change(&self.settings, now, at)
    }
}
