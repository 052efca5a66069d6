//! Which dedupe keys and request ids of the shard are in flight, and who waits for them.

use forebay_types::{Seq, Timestamp};

use super::keys::Duplicate;
use crate::shard::{
    OwnedShard,
    work::{KeyHash, ShardEnqueue},
};

impl OwnedShard {
    /// The time that new dedupe keys are stored with, at least.
    pub fn key_time(&self, node_now: Timestamp) -> Timestamp {
        self.tenure.marks.time.max(node_now)
    }

    /// Whether a program of the release before may have stored a key here that counts still: since this one
    /// owns the shard, for less than the longest window.
    pub fn may_hold_older_keys(&self, now: Timestamp) -> bool {
        self.tenure.spans.elapsed(self.tenure.began_at, now) < self.settings.longest_dedupe_window()
    }

    /// Whether an item that was enqueued then may have a dedupe key whose window is not over. It may have
    /// waited for a batch before it was stored, though no longer than for a window.
    pub fn may_be_keyed(&self, enqueued_at: Timestamp, now: Timestamp) -> bool {
        let window = self.settings.longest_dedupe_window();
        self.tenure.spans.elapsed(self.tenure.keyed_at, now) < window
            && self.tenure.spans.elapsed(enqueued_at, now) < window * 2
    }

    /// The key for which an enqueue with these keys has to wait: another one holds it. One that has not
    /// waited yet also waits behind those that do.
    pub fn key_to_wait_for(&self, keys: &[KeyHash], has_waited: bool) -> Option<KeyHash> {
        self.intake.keys.held(keys).or_else(|| if has_waited { None } else { self.intake.keys.line(keys) })
    }

    /// Whether a generation takes keys.
    pub fn takes_keys(&self, node_now: Timestamp) -> bool {
        self.upkeep.generations.current(self.key_time(node_now)).is_some()
    }

    /// An enqueue waits in the line of a key.
    pub fn wait_for_key(&mut self, key: KeyHash, part: ShardEnqueue) {
        self.intake.keys.wait_for(key, part);
    }

    /// An enqueue waits until [`OwnedShard::resume_keys`].
    pub fn pause_for_keys(&mut self, part: ShardEnqueue) {
        self.intake.keys.pause(part);
    }

    /// A generation may take keys now, or keys may be looked up: the enqueues that waited for that try again.
    pub fn resume_keys(&mut self) {
        self.intake.keys.resume();
    }

    /// Takes the next enqueue that tries again; see [`OwnedShard::tried_keys`].
    pub fn next_resumed(&mut self) -> Option<ShardEnqueue> {
        self.intake.keys.next_resumed()
    }

    /// An enqueue with these keys tried again. Where it left one of them free, the next in line tries.
    pub fn tried_keys(&mut self, keys: &[KeyHash]) {
        self.intake.keys.resume_lines(keys);
    }

    /// An item is stored under a key: those in its line are answered with it.
    pub(in crate::shard) fn answer_line(&mut self, key: KeyHash, seq: Seq, duplicates: &mut Vec<Duplicate>) {
        let (keys, budget) = (&mut self.intake.keys, &mut self.intake.budget);
        let first_at = self.tenure.marks.time;
        keys.stored(key, |part, item| {
            budget.release(&part.namespace, item.charge());
            let namespace = part.namespace.clone();
            duplicates.push(Duplicate { namespace, call: part.call, index: item.index, seq, first_at });
        });
    }

    /// These keys are in flight from now on.
    pub fn hold_keys(&mut self, keys: &[KeyHash]) {
        self.intake.keys.hold(keys);
    }

    /// An enqueue's keys, which are held, are looked up by the read `read`.
    pub fn begin_lookup(&mut self, read: u64, part: ShardEnqueue) {
        self.intake.keys.begin_lookup(read, part);
    }

    /// The enqueue whose lookup ended.
    pub fn end_lookup(&mut self, read: u64) -> Option<ShardEnqueue> {
        self.intake.keys.end_lookup(read)
    }
}
