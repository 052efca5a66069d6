//! Dedupe keys and request ids on their way through a shard. One key is in flight once at a time: an enqueue
//! whose key another one holds waits in the line of that key. Once the key is stored, those in line whose
//! item it names are answered with it; once it is free, the first in line tries again.

use std::collections::{BTreeMap, HashSet, VecDeque};

use forebay_types::{Namespace, Seq, Timestamp};

use crate::{
    planted::{Bug, on},
    shard::work::{AdmittedItem, KeyHash, ShardEnqueue},
};

/// The keys in flight of one shard.
#[derive(Debug, Default)]
pub(in crate::shard) struct DedupeKeys {
    /// Keys of enqueues that are looked up, wait for a batch, or are in one.
    in_flight: HashSet<KeyHash>,
    /// Enqueues that wait for a key that another one holds, first come first. No line is empty.
    lines: BTreeMap<KeyHash, VecDeque<ShardEnqueue>>,
    /// Enqueues that wait until a generation takes keys, or until the set of shards is recorded.
    paused: VecDeque<ShardEnqueue>,
    /// Enqueues that may try again.
    resumed: VecDeque<ShardEnqueue>,
    /// Enqueues whose keys are being looked up, by read.
    lookups: BTreeMap<u64, ShardEnqueue>,
}

/// An item whose key was stored by another enqueue while it waited for that.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Duplicate {
    /// Its tenant.
    pub namespace: Namespace,
    /// Its call.
    pub call: u64,
    /// Its position in the call.
    pub index: usize,
    /// The item that is stored under its key.
    pub seq: Seq,
    /// When it was stored.
    pub first_at: Timestamp,
}

impl DedupeKeys {
    /// The first of these keys that another enqueue holds.
    pub fn held(&self, keys: &[KeyHash]) -> Option<KeyHash> {
        keys.iter().find(|key| self.in_flight.contains(*key)).copied().filter(|_| !on(Bug::KeyNotHeld))
    }

    /// The first of these keys for which others wait already.
    pub fn line(&self, keys: &[KeyHash]) -> Option<KeyHash> {
        if self.lines.is_empty() {
            return None;
        }
        keys.iter().find(|key| self.lines.contains_key(*key)).copied()
    }

    pub fn hold(&mut self, keys: &[KeyHash]) {
        self.in_flight.extend(keys);
    }

    /// These keys are free again: the first in the line of each tries again.
    pub fn release(&mut self, keys: &[KeyHash]) {
        for key in keys {
            self.in_flight.remove(key);
        }
        self.resume_lines(keys);
    }

    /// An enqueue waits for a key.
    pub fn wait_for(&mut self, key: KeyHash, part: ShardEnqueue) {
        self.lines.entry(key).or_default().push_back(part);
    }

    /// An enqueue waits until [`DedupeKeys::resume`].
    pub fn pause(&mut self, part: ShardEnqueue) {
        self.paused.push_back(part);
    }

    /// All that are paused try again.
    pub fn resume(&mut self) {
        self.resumed.append(&mut self.paused);
    }

    /// Whether an enqueue may try again.
    pub fn has_resumed(&self) -> bool {
        !self.resumed.is_empty()
    }

    /// Takes the next enqueue that tries again. Afterwards [`DedupeKeys::resume_lines`] has to be called with
    /// its keys: it may have left one of them free.
    pub fn next_resumed(&mut self) -> Option<ShardEnqueue> {
        self.resumed.pop_front()
    }

    /// The first in the line of each key that is free tries again.
    pub fn resume_lines(&mut self, keys: &[KeyHash]) {
        if self.lines.is_empty() {
            return;
        }
        for key in keys.iter().filter(|key| !self.in_flight.contains(*key)) {
            let Some(line) = self.lines.get_mut(key) else { continue };
            self.resumed.extend(line.pop_front());
            if line.is_empty() {
                self.lines.remove(key);
            }
        }
    }

    /// An item is stored under this key. Items in its line are duplicates of it: they leave their enqueues,
    /// and `each` is called with them. What else their enqueues have tries again.
    pub fn stored(&mut self, key: KeyHash, mut each: impl FnMut(&ShardEnqueue, AdmittedItem)) {
        let Some(line) = self.lines.remove(&key) else { return };
        for mut part in line {
            // A request id in line is looked up: its call has one answer for all of its items.
            let items = std::mem::take(&mut part.items);
            let (same, rest): (Vec<_>, Vec<_>) =
                items.into_iter().partition(|item| item.dedupe.is_some_and(|own| own.own == key));
            same.into_iter().for_each(|item| each(&part, item));
            part.items = rest;
            if !part.items.is_empty() {
                self.resumed.push_back(part);
            }
        }
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

    /// Takes all that wait: the shard is lost.
    pub fn take_waiting(&mut self) -> impl Iterator<Item = ShardEnqueue> + use<> {
        let lines = std::mem::take(&mut self.lines).into_values().flatten();
        let (resumed, paused) = (std::mem::take(&mut self.resumed), std::mem::take(&mut self.paused));
        resumed.into_iter().chain(lines).chain(paused)
    }

    /// Nothing waits and nothing is looked up.
    pub fn is_idle(&self) -> bool {
        self.waiting().next().is_none() && self.lookups.is_empty()
    }

    /// Enqueues that wait.
    pub fn waiting(&self) -> impl Iterator<Item = &ShardEnqueue> {
        self.resumed.iter().chain(self.lines.values().flatten()).chain(&self.paused)
    }

    /// Enqueues whose keys are being looked up.
    pub fn looked_up(&self) -> impl Iterator<Item = &ShardEnqueue> {
        self.lookups.values()
    }

    /// How many keys are in flight.
    pub fn in_flight_count(&self) -> usize {
        self.in_flight.len()
    }

    /// Whether somebody will resume each line. Checked in tests.
    pub fn check(&self) -> Result<(), String> {
        let trying: HashSet<KeyHash> =
            self.resumed.iter().chain(&self.paused).flat_map(|part| part.keys()).collect();
        let orphan = |key: &KeyHash| !self.in_flight.contains(key) && !trying.contains(key);
        match self.lines.iter().find(|(key, line)| line.is_empty() || orphan(key)) {
            Some((key, line)) => Err(format!("{} enqueues wait for key {key:x?}, which is free", line.len())),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shard::tests::{check::wrong, items, key, part, request};

    const KEYS: [KeyHash; 2] = [[1; 16], [2; 16]];

    /// An enqueue of items with these keys.
    fn keyed(call: u64, keys: &[KeyHash]) -> ShardEnqueue {
        let mut part = part(call, items(keys.len()));
        part.items.iter_mut().zip(keys).for_each(|(item, own)| item.dedupe = key(own[0]));
        part
    }

    fn resumed(keys: &mut DedupeKeys) -> Vec<u64> {
        std::iter::from_fn(|| keys.next_resumed()).map(|part| part.call).collect()
    }

    #[test]
    fn a_key_is_held_until_it_is_released() {
        let mut keys = DedupeKeys::default();
        keys.hold(&KEYS);
        assert_eq!((keys.held(&[[9; 16], KEYS[1]]), keys.held(&[[9; 16]])), (Some(KEYS[1]), None));
        keys.release(&KEYS[..1]);
        assert_eq!((keys.held(&KEYS[..1]), keys.held(&KEYS)), (None, Some(KEYS[1])));
        assert_eq!(keys.in_flight_count(), 1);
    }

    #[test]
    fn the_first_in_line_tries_again_when_its_key_is_free_and_nobody_else_does() {
        let mut keys = DedupeKeys::default();
        keys.hold(&KEYS);
        (1..=3).for_each(|call| keys.wait_for(KEYS[0], keyed(call, &KEYS[..1])));
        keys.wait_for(KEYS[1], keyed(4, &KEYS[1..]));
        keys.release(&KEYS[..1]);
        assert_eq!((resumed(&mut keys), keys.line(&KEYS[..1])), (vec![1], Some(KEYS[0])));
        keys.resume_lines(&KEYS);
        assert_eq!(resumed(&mut keys), [2], "the first one left the key free");
        keys.release(&KEYS);
        assert_eq!((resumed(&mut keys), keys.is_idle(), keys.check()), (vec![3, 4], true, Ok(())));
    }

    #[test]
    fn those_that_are_paused_try_again_together() {
        let mut keys = DedupeKeys::default();
        keys.pause(part(1, items(1)));
        keys.pause(part(2, items(1)));
        assert!(!keys.has_resumed() && !keys.is_idle() && keys.waiting().count() == 2);
        keys.resume();
        assert_eq!((resumed(&mut keys), keys.is_idle()), (vec![1, 2], true));
    }

    #[test]
    fn those_in_line_are_answered_with_the_item_that_was_stored() {
        let mut keys = DedupeKeys::default();
        keys.hold(&KEYS);
        keys.wait_for(KEYS[0], keyed(1, &KEYS));
        keys.wait_for(KEYS[0], keyed(2, &KEYS[..1]));
        let mut answered = Vec::new();
        keys.stored(KEYS[0], |part, item| answered.push((part.call, item.index)));
        assert_eq!(answered, [(1, 0), (2, 0)]);
        let rest = keys.next_resumed().unwrap();
        assert_eq!((rest.call, rest.keys(), keys.is_idle()), (1, vec![KEYS[1]], true));
    }

    #[test]
    fn a_request_id_in_line_is_not_answered_with_an_item() {
        let mut keys = DedupeKeys::default();
        keys.hold(&KEYS[..1]);
        keys.wait_for(KEYS[0], ShardEnqueue { request: request(1), ..part(1, items(2)) });
        keys.stored(KEYS[0], |_, _| panic!("it has no item with this key"));
        assert_eq!(resumed(&mut keys), [1]);
    }

    #[test]
    fn a_lookup_ends_once_and_a_lost_shard_ends_all() {
        let mut keys = DedupeKeys::default();
        (1..=3).for_each(|read| keys.begin_lookup(read, part(read, items(1))));
        assert_eq!(keys.end_lookup(2).map(|part| part.call), Some(2));
        assert!(keys.end_lookup(2).is_none());
        assert_eq!(keys.looked_up().map(|part| part.call).collect::<Vec<_>>(), [1, 3]);
        keys.hold(&KEYS);
        keys.wait_for(KEYS[0], keyed(4, &KEYS[..1]));
        keys.pause(part(5, items(1)));
        assert_eq!((keys.take_lookups().count(), keys.take_waiting().count()), (2, 2));
        assert!(keys.is_idle());
    }

    #[test]
    fn a_line_that_nobody_will_resume_is_found() {
        let what = wrong(|shard| {
            let part = keyed(9, &[[9; 16]]);
            shard.charge(&part.namespace, part.charge());
            shard.intake.keys.wait_for([9; 16], part);
        });
        assert!(what.contains("which is free"), "{what}");
    }
}
