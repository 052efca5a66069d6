//! Dedupe keys and request ids on their way through a shard. One key is in flight once at a time: an enqueue
//! whose key another one holds waits for it.

use std::collections::{BTreeMap, HashSet, VecDeque};

use super::work::{KeyHash, ShardEnqueue};
use crate::planted::{Bug, on};

/// The keys in flight of one shard.
#[derive(Debug, Default)]
pub(super) struct DedupeKeys {
    /// Keys of enqueues that are looked up, wait for a batch, or are in one.
    in_flight: HashSet<KeyHash>,
    /// Enqueues that wait because another one holds one of their keys, or because no generation takes keys
    /// yet.
    waiting: VecDeque<ShardEnqueue>,
    /// Enqueues whose keys are being looked up, by read.
    lookups: BTreeMap<u64, ShardEnqueue>,
}

impl DedupeKeys {
    /// Whether another enqueue holds one of these keys.
    pub fn is_held(&self, keys: &[KeyHash]) -> bool {
        keys.iter().any(|key| self.in_flight.contains(key)) && !on(Bug::KeyNotHeld)
    }

    pub fn hold(&mut self, keys: &[KeyHash]) {
        self.in_flight.extend(keys);
    }

    /// Returns whether there was any key, so that others may have waited for it.
    pub fn release(&mut self, keys: &[KeyHash]) -> bool {
        for key in keys {
            self.in_flight.remove(key);
        }
        !keys.is_empty()
    }

    pub fn wait(&mut self, part: ShardEnqueue) {
        self.waiting.push_back(part);
    }

    /// Takes all that wait: they try again.
    pub fn take_waiting(&mut self) -> VecDeque<ShardEnqueue> {
        std::mem::take(&mut self.waiting)
    }

    pub fn begin_lookup(&mut self, read: u64, part: ShardEnqueue) {
        self.lookups.insert(read, part);
    }

    pub fn end_lookup(&mut self, read: u64) -> Option<ShardEnqueue> {
        self.lookups.remove(&read)
    }

    /// Takes all that are looked up: the shard is lost.
    pub fn take_lookups(&mut self) -> impl Iterator<Item = ShardEnqueue> + use<> {
        std::mem::take(&mut self.lookups).into_values()
    }

    /// Nothing waits and nothing is looked up.
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.lookups.is_empty()
    }

    /// Enqueues that wait for a key.
    pub fn waiting(&self) -> impl Iterator<Item = &ShardEnqueue> {
        self.waiting.iter()
    }

    /// Enqueues whose keys are being looked up.
    pub fn looked_up(&self) -> impl Iterator<Item = &ShardEnqueue> {
        self.lookups.values()
    }

    /// How many keys are in flight.
    pub fn in_flight_count(&self) -> usize {
        self.in_flight.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shard::tests::{items, part};

    const KEYS: [KeyHash; 2] = [[1; 16], [2; 16]];

    #[test]
    fn a_key_is_held_until_it_is_released() {
        let mut keys = DedupeKeys::default();
        keys.hold(&KEYS);
        assert!(keys.is_held(&[[9; 16], KEYS[1]]) && !keys.is_held(&[[9; 16]]) && !keys.is_held(&[]));
        assert!(keys.release(&KEYS[..1]));
        assert!(!keys.is_held(&KEYS[..1]) && keys.is_held(&KEYS));
        assert_eq!(keys.in_flight_count(), 1);
        assert!(!keys.release(&[]), "nobody can have waited");
    }

    #[test]
    fn those_that_wait_try_again_in_their_order() {
        let mut keys = DedupeKeys::default();
        assert!(keys.is_idle());
        keys.wait(part(1, items(1)));
        keys.wait(part(2, items(1)));
        assert!(!keys.is_idle() && keys.waiting().count() == 2);
        let calls: Vec<u64> = keys.take_waiting().iter().map(|part| part.call).collect();
        assert!(calls == [1, 2] && keys.is_idle());
    }

    #[test]
    fn a_lookup_ends_once_and_a_lost_shard_ends_all() {
        let mut keys = DedupeKeys::default();
        (1..=3).for_each(|read| keys.begin_lookup(read, part(read, items(1))));
        assert_eq!(keys.end_lookup(2).map(|part| part.call), Some(2));
        assert!(keys.end_lookup(2).is_none());
        assert_eq!(keys.looked_up().map(|part| part.call).collect::<Vec<_>>(), [1, 3]);
        assert_eq!(keys.take_lookups().count(), 2);
        assert!(keys.is_idle());
    }
}
