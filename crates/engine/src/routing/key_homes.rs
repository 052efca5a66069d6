//! Where dedupe keys and request ids have their homes: on the shard that rendezvous hashing names among
//! *all* configured shards, whether they answer or not. When the configuration names other shards than
//! before, some keys get a new home; until the longest window has passed their old home is asked first.
//!
//! Every shard records, under its fence, the history it has been part of. [`KeyHomes::is_complete`] says when
//! a node knows all of it that matters.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use forebay_store::ShardTopology;
use forebay_types::{Monotonic, ShardId, Timestamp};

use crate::{
    index::ShardIndex,
    planted::{Bug, on},
    routing::rendezvous::best,
    shard::work::KeyHash,
};

/// What the node knows of the sets of shards among which keys have, or had, their homes.
pub(crate) struct KeyHomes {
    /// The configured shards, in order.
    current: Vec<ShardId>,
    /// Earlier sets, and until when a key that was stored under them counts.
    earlier: BTreeMap<Vec<ShardId>, Timestamp>,
    /// Shards whose records have been read, and since when the last set of each is the current one; `None` if
    /// it is another.
    seen: BTreeMap<ShardIndex, Option<Timestamp>>,
    /// From then on no earlier set matters any more, whether its record was read or not.
    complete_at: Monotonic,
    /// The longest dedupe window.
    window: Duration,
}

impl KeyHomes {
    /// Of a node that has just started.
    pub fn new(shards: impl Iterator<Item = ShardId>, window: Duration, at: Monotonic) -> Self {
        let mut current: Vec<ShardId> = shards.collect();
        current.sort_unstable();
        Self {
            current,
            earlier: BTreeMap::new(),
            seen: BTreeMap::new(),
            complete_at: at.plus(window),
            window,
        }
    }

    /// A shard's records were read, at `now`.
    pub fn record_read(&mut self, shard: ShardIndex, history: &[ShardTopology], now: Timestamp) {
        let last = history.last().filter(|last| last.shards == self.current);
        self.seen.insert(shard, last.map(|last| last.since));
        for (number, topology) in history.iter().enumerate() {
            // A set ended when the next one began, or ends now.
            let ended = history.get(number + 1).map_or(now, |next| next.since);
            let until = ended.plus(self.window);
            if topology.shards != self.current && until > now {
                let known = self.earlier.entry(topology.shards.clone()).or_insert(until);
                *known = until.max(*known);
            }
        }
    }

    /// What a shard should record, if it does not yet: the sets that some window still reaches, then the
    /// current one.
    pub fn record(
        &self,
        history: &[ShardTopology],
        batch: u64,
        now: Timestamp,
    ) -> Option<Vec<ShardTopology>> {
        if history.last().is_some_and(|last| last.shards == self.current) {
            return None;
        }
        let ends = history.iter().skip(1).map(|next| next.since).chain([now]);
        let kept = history.iter().zip(ends).filter(|(_, end)| end.plus(self.window) > now);
        let mut record: Vec<ShardTopology> = kept.map(|(topology, _)| topology.clone()).collect();
        record.push(ShardTopology { batch, since: now, shards: self.current.clone() });
        Some(record)
    }

    /// Whether a shard's records were read.
    pub fn is_read(&self, shard: ShardIndex) -> bool {
        self.seen.contains_key(&shard)
    }

    /// Whether every earlier set that matters is known. It is in each of these cases:
    ///
    /// - The record of every configured shard was read.
    /// - The node has run for the longest window. An earlier set ended before the node began, so every window
    ///   under it has passed.
    /// - At least half of the shards were read, and all of these recorded the current set as their last one,
    ///   longer ago than the longest window. A shard records a set with the first batch under it, which its
    ///   owner commits as soon as it has the shard. So under a later set that has one of these shards, that
    ///   shard would name the later set. And any earlier set ended when the current one was recorded: every
    ///   window under it has passed, whatever the shards record that were not read.
    ///
    /// What the last case cannot see: a set without any shard that was read, so with less than half of the
    /// current ones, that came and went within the window.
    pub fn is_complete(&self, now: Timestamp, at: Monotonic) -> bool {
        let long_ago = |since: &Option<Timestamp>| since.is_some_and(|since| since.plus(self.window) <= now);
        self.seen.len() == self.current.len()
            || at >= self.complete_at
            || 2 * self.seen.len() >= self.current.len() && self.seen.values().all(long_ago)
    }

    /// The home shard of a key.
    pub fn home(&self, key: &KeyHash) -> Option<ShardId> {
        best(key, &self.current)
    }

    /// The shards to be asked for these keys before their home shard is.
    pub fn earlier_homes(&self, keys: &[KeyHash], now: Timestamp) -> BTreeSet<ShardId> {
        let matters = |until: &Timestamp| *until > now && !on(Bug::EarlierHomesForgotten);
        let sets = self.earlier.iter().filter(|(_, until)| matters(until));
        let homes = sets.flat_map(|(shards, _)| {
            keys.iter().filter_map(move |key| {
                best(key, shards).filter(|earlier| best(key, &self.current) != Some(*earlier))
            })
        });
        homes.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(batch: u64, second: i64, shards: &[u32]) -> ShardTopology {
        let since = Timestamp::from_micros(second * 1_000_000);
        ShardTopology { batch, since, shards: shards.iter().copied().map(ShardId).collect() }
    }

    fn homes(shards: &[u32]) -> KeyHomes {
        let shards = shards.iter().copied().map(ShardId);
        KeyHomes::new(shards, Duration::from_secs(600), Monotonic::default())
    }

    #[test]
    fn a_changed_list_sends_moved_keys_to_their_old_home_until_the_window_ends() {
        let mut homes = homes(&[1, 2, 3]);
        let now = Timestamp::from_micros(1_000_000_000);
        homes.record_read(ShardIndex(0), &[list(1, 10, &[1, 2])], now);
        let keys: Vec<KeyHash> = (0..100_u8).map(|key| [key; 16]).collect();
        let moved = keys.iter().filter(|key| !homes.earlier_homes(&[**key], now).is_empty()).count();
        assert!((15..55).contains(&moved), "{moved}: about a third of the keys moves to the new shard");
        assert!(homes.earlier_homes(&keys, now.plus(Duration::from_secs(600))).is_empty());
    }

    #[test]
    fn a_list_that_ended_long_ago_matters_no_more() {
        let mut homes = homes(&[1, 2, 3]);
        let now = Timestamp::from_micros(1_000_000_000);
        homes.record_read(ShardIndex(0), &[list(1, 10, &[1, 2]), list(9, 300, &[1, 2, 3])], now);
        assert!(homes.earlier.is_empty());
        assert_eq!(homes.record(&[list(9, 300, &[1, 2, 3])], 10, now), None);
    }

    #[test]
    fn it_knows_enough_once_every_shard_was_seen_or_the_window_has_passed() {
        let mut homes = homes(&[1, 2]);
        let (now, at) = (Timestamp::MIN, Monotonic::default());
        assert!(!homes.is_complete(now, at));
        assert!(homes.is_complete(now, at.plus(Duration::from_secs(600))));
        homes.record_read(ShardIndex(0), &[], now);
        assert!(!homes.is_complete(now, at));
        homes.record_read(ShardIndex(1), &[], now);
        assert!(homes.is_complete(now, at));
    }

    #[test]
    fn it_knows_enough_if_half_of_the_shards_have_recorded_the_current_set_for_long() {
        let second = |second: i64| Timestamp::from_micros(second * 1_000_000);
        let complete = |records: &[&[ShardTopology]], now| {
            let mut homes = homes(&[1, 2, 3, 4]);
            let indexes = (0..).map(ShardIndex);
            indexes.zip(records).for_each(|(index, record)| homes.record_read(index, record, now));
            homes.is_complete(now, Monotonic::default())
        };
        let long_ago: &[_] = &[list(1, 100, &[1, 2]), list(9, 300, &[1, 2, 3, 4])];
        assert!(complete(&[long_ago, long_ago], second(900)));
        assert!(!complete(&[long_ago, long_ago], second(899)), "a window may still reach the set before");
        assert!(!complete(&[long_ago], second(900)), "too few were seen");
        let recent: &[_] = &[list(9, 600, &[1, 2, 3, 4])];
        let other: &[_] = &[list(9, 100, &[1, 2, 3, 4]), list(10, 200, &[1, 2, 3])];
        for record in [recent, other, &[]] {
            assert!(!complete(&[long_ago, long_ago, record], second(900)), "{record:?}");
        }
    }

    #[test]
    fn the_current_list_is_recorded_once() {
        let homes = homes(&[2, 1]);
        let now = Timestamp::from_micros(1_000_000_000);
        let record = homes.record(&[list(1, 10, &[1])], 5, now).unwrap();
        assert_eq!(record, [list(1, 10, &[1]), list(5, 1_000, &[1, 2])]);
        assert_eq!(homes.record(&record, 6, now), None);
    }
}
