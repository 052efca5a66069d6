//! Where dedupe keys and request ids have their homes: on the shard that rendezvous hashing names among
//! *all* configured shards, whether they answer or not. When the configuration names other shards than
//! before, some keys get a new home; until the longest window has passed their old home is asked first.
//!
//! Every shard records, under its fence, the sets that its owners knew of. Keys are stored once all shards
//! have recorded the current set, and all earlier ones that matter. So whoever is configured later with any
//! of these shards knows of all these sets. [`KeyHomes::is_complete`] says when it is so, and what it leaves
//! out where a shard does not answer.

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

/// The time at which a set ended is rounded up to such a part of the longest window. While a shard's former
/// owner still lives, the others then record that anew a few times in a window, and not with each look at it.
const ENDED_PARTS: u32 = 8;

/// What the node knows of the sets of shards among which keys have, or had, their homes.
pub(crate) struct KeyHomes {
    /// The configured shards, in order.
    current: Vec<ShardId>,
    /// Earlier sets, and when each ended.
    earlier: BTreeMap<Vec<ShardId>, Timestamp>,
    /// What shards have recorded, of those that were read.
    records: BTreeMap<ShardIndex, ShardTopology>,
    /// Every shard has recorded every set that matters.
    all_recorded: bool,
    /// From then on no earlier set matters any more, whether its record was read or not.
    complete_at: Monotonic,
    /// The longest dedupe window.
    window: Duration,
    /// Earlier homes that are not configured any more, and that the log has named.
    named: BTreeSet<ShardId>,
}

impl KeyHomes {
    /// Of a node that has just started.
    pub fn new(shards: impl Iterator<Item = ShardId>, window: Duration, at: Monotonic) -> Self {
        let mut current: Vec<ShardId> = shards.collect();
        current.sort_unstable();
        Self {
            current,
            earlier: BTreeMap::new(),
            records: BTreeMap::new(),
            all_recorded: false,
            complete_at: at.plus(window),
            window,
            named: BTreeSet::new(),
        }
    }

    /// A shard's record was read at `now`, or this node wrote it. Returns whether it names an earlier set
    /// that was not known, or one that ended later than was known: other shards have to record that too.
    pub fn recorded(&mut self, shard: ShardIndex, record: ShardTopology, now: Timestamp) -> bool {
        // Until this node has recorded the current set, the shard's own may still be in use.
        let own = (!record.shards.is_empty()).then(|| (&record.shards, self.rounded_up(now)));
        let ended = record.earlier.iter().map(|(shards, ended)| (shards, *ended)).chain(own);
        let mut is_new = false;
        for (shards, ended) in ended.filter(|(shards, _)| **shards != self.current) {
            let known = self.earlier.entry(shards.clone()).or_insert(Timestamp::MIN);
            is_new |= ended > *known;
            *known = ended.max(*known);
        }
        // Most looks show what the last one did. Then nothing can become incomplete, because sets matter for
        // a while only, and there is no need to go through all records.
        if !is_new && self.all_recorded && self.records.get(&shard) == Some(&record) {
            return false;
        }
        self.records.insert(shard, record);
        let mut records = self.records.values();
        self.all_recorded =
            self.records.len() == self.current.len() && records.all(|record| self.is_whole(record, now));
        is_new
    }

    fn rounded_up(&self, time: Timestamp) -> Timestamp {
        let part = i64::try_from((self.window / ENDED_PARTS).as_micros()).unwrap_or(i64::MAX).max(1);
        let micros = time.as_micros();
        Timestamp::from_micros(micros.saturating_add(part - micros.rem_euclid(part)))
    }

    /// What a shard that was read should record, if it has not yet.
    pub fn to_record(&self, shard: ShardIndex, now: Timestamp) -> Option<ShardTopology> {
        let record = self.records.get(&shard).filter(|record| !self.is_whole(record, now))?;
        let since = if record.shards == self.current { record.since } else { now };
        let earlier = self.earlier_sets(now).map(|(shards, ended)| (shards.clone(), ended)).collect();
        Some(ShardTopology { shards: self.current.clone(), since, earlier })
    }

    /// Whether a record names all the sets that matter.
    fn is_whole(&self, record: &ShardTopology, now: Timestamp) -> bool {
        let names = |(shards, ended)| record.earlier.get(shards).is_some_and(|known| *known >= ended);
        record.shards == self.current && self.earlier_sets(now).all(names)
    }

    /// The earlier sets under which a key may have been stored whose window is not over, and when they ended.
    fn earlier_sets(&self, now: Timestamp) -> impl Iterator<Item = (&Vec<ShardId>, Timestamp)> {
        let sets = self.earlier.iter().map(|(shards, ended)| (shards, *ended));
        sets.filter(move |(_, ended)| ended.plus(self.window) > now)
    }

    /// Whether a shard's record was read.
    pub fn is_read(&self, shard: ShardIndex) -> bool {
        self.records.contains_key(&shard)
    }

    /// Whether a shard was read, and has recorded the current set and all earlier ones that matter.
    pub fn has_recorded(&self, shard: ShardIndex, now: Timestamp) -> bool {
        self.records.get(&shard).is_some_and(|record| self.is_whole(record, now))
    }

    /// Whether keys can be stored: every earlier set that matters is known, and whoever comes later will know
    /// of this one. It is so in each of these cases:
    ///
    /// - Every configured shard has recorded every set that matters.
    /// - The node has run for the longest window. An earlier set ended before the node began, so every window
    ///   under it has passed.
    /// - At least half of the shards were read, and all of these recorded the current set longer ago than the
    ///   longest window. A shard records a set with the first batch under it, which its owner commits as soon
    ///   as it has the shard. So under a later set that has one of these shards, that shard would name the
    ///   later set. And any earlier set ended when the current one was recorded: every window under it has
    ///   passed, whatever the shards record that were not read.
    ///
    /// What the last two cases cannot see: shards that never recorded the current set, while the others were
    /// used, and are later configured without any of these within the window. What the last one cannot see
    /// either: a set without any shard that was read, so with less than half of the current ones, that came
    /// and went within the window.
    pub fn is_complete(&self, now: Timestamp, at: Monotonic) -> bool {
        let long_ago =
            |record: &ShardTopology| record.shards == self.current && record.since.plus(self.window) <= now;
        self.all_recorded
            || at >= self.complete_at
            || 2 * self.records.len() >= self.current.len() && self.records.values().all(long_ago)
    }

    /// Earlier homes of keys that are not configured any more, and until when keys may be remembered there.
    pub fn missing(&self, now: Timestamp) -> BTreeMap<ShardId, Timestamp> {
        let mut missing = BTreeMap::new();
        for (shards, ended) in self.earlier_sets(now) {
            for shard in shards.iter().filter(|shard| self.current.binary_search(shard).is_err()) {
                let until = missing.entry(*shard).or_insert(Timestamp::MIN);
                *until = ended.plus(self.window).max(*until);
            }
        }
        missing
    }

    /// Whether the log is to name an earlier home that is not configured any more: it does that once.
    pub fn is_to_be_named(&mut self, missing: ShardId) -> bool {
        self.named.insert(missing)
    }

    /// The home shard of a key.
    pub fn home(&self, key: &KeyHash) -> Option<ShardId> {
        best(key, &self.current)
    }

    /// The shards to be asked for these keys before their home shard is.
    pub fn earlier_homes(&self, keys: &[KeyHash], now: Timestamp) -> BTreeSet<ShardId> {
        let sets = self.earlier_sets(now).filter(|_| !on(Bug::EarlierHomesForgotten));
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

    const WINDOW: Duration = Duration::from_secs(800);

    fn second(second: i64) -> Timestamp {
        Timestamp::from_micros(second * 1_000_000)
    }

    fn ids(shards: &[u32]) -> Vec<ShardId> {
        shards.iter().copied().map(ShardId).collect()
    }

    fn record(shards: &[u32], since: i64, earlier: &[(&[u32], i64)]) -> ShardTopology {
        let earlier = earlier.iter().map(|(shards, ended)| (ids(shards), second(*ended))).collect();
        ShardTopology { shards: ids(shards), since: second(since), earlier }
    }

    fn homes(shards: &[u32]) -> KeyHomes {
        KeyHomes::new(ids(shards).into_iter(), WINDOW, Monotonic::default())
    }

    /// A node takes over all shards one after the other, and each records what is known then.
    fn take_over(homes: &mut KeyHomes, records: &mut BTreeMap<u32, ShardTopology>, now: Timestamp) {
        for (index, id) in homes.current.clone().into_iter().enumerate() {
            let index = ShardIndex(index);
            homes.recorded(index, records.get(&id.0).cloned().unwrap_or_default(), now);
            // Those taken over before may have to record more.
            for (index, id) in homes.current.clone().into_iter().enumerate() {
                let index = ShardIndex(index);
                if let Some(new) = homes.to_record(index, now) {
                    records.insert(id.0, new.clone());
                    homes.recorded(index, new, now);
                }
            }
        }
    }

    #[test]
    fn a_changed_set_sends_moved_keys_to_their_old_home_until_the_window_ends() {
        let mut homes = homes(&[1, 2, 3]);
        let now = second(1_000);
        homes.recorded(ShardIndex(0), record(&[1, 2], 10, &[]), now);
        let keys: Vec<KeyHash> = (0..100_u8).map(|key| [key; 16]).collect();
        let moved = keys.iter().filter(|key| !homes.earlier_homes(&[**key], now).is_empty()).count();
        assert!((15..55).contains(&moved), "{moved}: about a third of the keys moves to the new shard");
        assert!(!homes.earlier_homes(&keys, now.plus(WINDOW)).is_empty());
        assert!(homes.earlier_homes(&keys, now.plus(WINDOW + WINDOW / ENDED_PARTS)).is_empty());
    }

    #[test]
    fn an_earlier_home_that_is_not_configured_is_missing_until_the_last_window_under_it_ends() {
        let mut homes = homes(&[2, 3]);
        let now = second(1_000);
        homes.recorded(ShardIndex(0), record(&[2, 3], 900, &[(&[1, 2], 300), (&[1, 2, 3], 900)]), now);
        assert_eq!(homes.missing(now), BTreeMap::from([(ShardId(1), second(1_700))]));
        assert!(homes.missing(second(1_700)).is_empty());
        assert!(homes.is_to_be_named(ShardId(1)) && !homes.is_to_be_named(ShardId(1)));
    }

    #[test]
    fn a_set_that_ended_long_ago_matters_no_more() {
        let mut homes = homes(&[1, 2, 3]);
        let now = second(1_100);
        homes.recorded(ShardIndex(0), record(&[1, 2, 3], 300, &[(&[1, 2], 300)]), now);
        let keys: Vec<KeyHash> = (0..100_u8).map(|key| [key; 16]).collect();
        assert!(homes.earlier_homes(&keys, now).is_empty());
        assert_eq!(homes.to_record(ShardIndex(0), now), None);
        homes.recorded(ShardIndex(1), ShardTopology::default(), now);
        assert_eq!(homes.to_record(ShardIndex(1), now), Some(record(&[1, 2, 3], 1_100, &[])));
    }

    #[test]
    fn every_set_of_two_changes_within_a_window_is_known_to_shards_of_the_last_one_alone() {
        let mut records = BTreeMap::new();
        for (now, shards) in [(100, &[1, 2][..]), (200, &[1, 2, 3, 4]), (300, &[3, 4])] {
            let mut homes = homes(shards);
            take_over(&mut homes, &mut records, second(now));
            assert!(homes.is_complete(second(now), Monotonic::default()));
        }
        let earlier: &[(&[u32], i64)] = &[(&[1, 2], 300), (&[1, 2, 3, 4], 400)];
        assert_eq!(records[&3], record(&[3, 4], 300, earlier));
        assert_eq!(records[&4], records[&3]);
    }

    #[test]
    fn a_set_that_is_seen_to_last_is_recorded_anew_a_few_times_in_a_window() {
        let mut homes = homes(&[1, 2]);
        homes.recorded(ShardIndex(1), ShardTopology::default(), second(100));
        assert!(homes.recorded(ShardIndex(0), record(&[1], 10, &[]), second(100)));
        let recorded = homes.to_record(ShardIndex(1), second(100)).unwrap();
        assert_eq!(recorded, record(&[1, 2], 100, &[(&[1], 200)]));
        homes.recorded(ShardIndex(1), recorded, second(100));
        assert!(!homes.recorded(ShardIndex(0), record(&[1], 10, &[]), second(199)));
        assert_eq!(homes.to_record(ShardIndex(1), second(199)), None);
        assert!(homes.recorded(ShardIndex(0), record(&[1], 10, &[]), second(200)), "its owner still lives");
        let recorded = homes.to_record(ShardIndex(1), second(201)).unwrap();
        assert_eq!(recorded, record(&[1, 2], 100, &[(&[1], 300)]));
    }

    #[test]
    fn keys_are_taken_once_every_shard_has_recorded_the_set_or_the_window_has_passed() {
        let mut homes = homes(&[1, 2]);
        let (now, at) = (second(100), Monotonic::default());
        assert!(!homes.is_complete(now, at));
        assert!(homes.is_complete(now, at.plus(WINDOW)));
        let mine = record(&[1, 2], 100, &[]);
        homes.recorded(ShardIndex(0), mine.clone(), now);
        assert!(!homes.is_complete(now, at), "one was not read");
        homes.recorded(ShardIndex(1), ShardTopology::default(), now);
        assert!(
            !homes.is_complete(now, at),
            "who is configured with shard 2 alone would not know of shard 1"
        );
        assert!(homes.has_recorded(ShardIndex(0), now) && !homes.has_recorded(ShardIndex(1), now));
        homes.recorded(ShardIndex(1), mine, now);
        assert!(homes.is_complete(now, at));
    }

    #[test]
    fn it_knows_enough_if_half_of_the_shards_have_recorded_the_current_set_for_long() {
        let complete = |records: &[&ShardTopology], now| {
            let mut homes = homes(&[1, 2, 3, 4]);
            for (index, record) in records.iter().enumerate() {
                homes.recorded(ShardIndex(index), (*record).clone(), now);
            }
            homes.is_complete(now, Monotonic::default())
        };
        let long_ago = &record(&[1, 2, 3, 4], 300, &[(&[1, 2], 300)]);
        assert!(complete(&[long_ago, long_ago], second(1_100)));
        assert!(!complete(&[long_ago, long_ago], second(1_099)), "a window may still reach the set before");
        assert!(!complete(&[long_ago], second(1_100)), "too few were seen");
        let recent = record(&[1, 2, 3, 4], 600, &[]);
        let other = record(&[1, 2, 3], 200, &[(&[1, 2, 3, 4], 200)]);
        for record in [recent, other, ShardTopology::default()] {
            assert!(!complete(&[long_ago, long_ago, &record], second(1_100)), "{record:?}");
        }
    }
}
