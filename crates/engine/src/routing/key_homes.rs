//! Where dedupe keys and request ids have their homes: on the shard that rendezvous hashing names among *all*
//! shards that take new items, whether they answer or not. When that set changes, some keys get a new home;
//! until the longest window has passed their old home is asked first.
//!
//! Every shard records, under its fence, the sets that its owners knew of. Keys are stored once all shards
//! have recorded the current set, and all earlier ones that matter. So whoever is configured later with any
//! of these shards knows of all these sets. [`KeyHomes::is_complete`] says when it is so, and what it leaves
//! out where a shard does not answer.
//!
//! Nodes may learn of a new set at different times. The crate's README.md says why that is harmless.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use forebay_store::ShardTopology;
use forebay_types::{Monotonic, ShardId, Timestamp};

use crate::{
    planted::{Bug, on},
    routing::rendezvous::best,
    shard::work::{KeyHash, NextRecord},
};

/// The time at which a set ended is rounded up to such a part of the longest window. While a shard's former
/// owner still lives, the others then record that anew a few times in a window, and not with each look at it.
const ENDED_PARTS: u32 = 8;

/// The sets of shards among which keys have, or had, their homes, as far as the node knows.
pub(crate) struct KeyHomes {
    /// The shards that take new items, in order.
    current: Vec<ShardId>,
    /// Shards that are drained. They are no homes, but they record the set too: from then on they store no
    /// key any more.
    draining: BTreeSet<ShardId>,
    /// Earlier sets, and when each ended.
    earlier: BTreeMap<Vec<ShardId>, Timestamp>,
    /// The records of the shards that were read.
    records: BTreeMap<ShardId, ShardTopology>,
    /// Shards that have not recorded every set that matters, as far as is known.
    unrecorded: BTreeSet<ShardId>,
    /// From then on no earlier set matters any more, whether its record was read or not.
    complete_at: Monotonic,
    /// The longest dedupe window.
    window: Duration,
    /// Shards that were removed while the node ran: their keys are forgotten.
    removed: BTreeSet<ShardId>,
    /// Earlier homes that are not listed any more, and that the log has named.
    named: BTreeSet<ShardId>,
}

impl KeyHomes {
    /// Of a node that has just started, and has no shards yet.
    pub fn new(window: Duration, at: Monotonic) -> Self {
        Self {
            current: Vec::new(),
            draining: BTreeSet::new(),
            earlier: BTreeMap::new(),
            records: BTreeMap::new(),
            unrecorded: BTreeSet::new(),
            complete_at: at.plus(window),
            window,
            removed: BTreeSet::new(),
            named: BTreeSet::new(),
        }
    }

    /// The node begins with these shards, and has read none of them.
    pub fn begin(&mut self, mut active: Vec<ShardId>, draining: Vec<ShardId>) {
        active.sort_unstable();
        self.unrecorded = active.iter().chain(&draining).copied().collect();
        (self.current, self.draining) = (active, draining.into_iter().collect());
    }

    /// The shards are these from now on. If others take new items than before, the last set has ended.
    pub fn change(
        &mut self,
        mut active: Vec<ShardId>,
        draining: Vec<ShardId>,
        now: Timestamp,
        at: Monotonic,
    ) {
        active.sort_unstable();
        let draining: BTreeSet<ShardId> = draining.into_iter().collect();
        let is_listed = |id: &ShardId| draining.contains(id) || active.binary_search(id).is_ok();
        let before = self.current.iter().chain(&self.draining).copied();
        self.removed.extend(before);
        self.removed.retain(|id| !is_listed(id));
        self.records.retain(|id, _| is_listed(id));
        if active != self.current {
            let ended = self.rounded_up(now);
            let before = std::mem::replace(&mut self.current, active);
            if !before.is_empty() {
                let known = self.earlier.entry(before).or_insert(ended);
                *known = ended.max(*known);
            }
            self.earlier.retain(|_, ended| ended.plus(self.window) > now);
            self.complete_at = at.plus(self.window);
        }
        self.draining = draining;
        self.find_unrecorded(now);
    }

    /// A shard's record was read at `now`, or this node wrote it. Returns whether it names an earlier set
    /// that was not known, or one that ended later than was known: other shards have to record that too.
    pub fn recorded(&mut self, shard: ShardId, record: ShardTopology, now: Timestamp) -> bool {
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
        if !is_new && self.unrecorded.is_empty() && self.records.get(&shard) == Some(&record) {
            return false;
        }
        self.records.insert(shard, record);
        self.find_unrecorded(now);
        is_new
    }

    fn find_unrecorded(&mut self, now: Timestamp) {
        let listed = self.current.iter().chain(&self.draining).copied();
        self.unrecorded = listed.filter(|id| !self.has_recorded(*id, now)).collect();
    }

    fn rounded_up(&self, time: Timestamp) -> Timestamp {
        let part = i64::try_from((self.window / ENDED_PARTS).as_micros()).unwrap_or(i64::MAX).max(1);
        let micros = time.as_micros();
        Timestamp::from_micros(micros.saturating_add(part - micros.rem_euclid(part)))
    }

    /// The record that a shard that was read should make next, if it has not yet.
    pub fn next_record(&self, shard: ShardId, now: Timestamp) -> Option<NextRecord> {
        let record = self.records.get(&shard).filter(|record| !self.is_whole(record, now))?;
        let is_change = record.shards != self.current;
        let since = if is_change { now } else { record.since };
        let earlier = self.earlier_sets(now).map(|(shards, ended)| (shards.clone(), ended)).collect();
        let topology = ShardTopology { shards: self.current.clone(), since, earlier };
        Some(NextRecord { topology, is_change })
    }

    /// Whether a record names all the sets that matter.
    fn is_whole(&self, record: &ShardTopology, now: Timestamp) -> bool {
        let names = |(shards, ended)| record.earlier.get(shards).is_some_and(|known| *known >= ended);
        record.shards == self.current && self.earlier_sets(now).all(names)
    }

    /// The earlier sets under which a key may have been stored whose window is not over, and when they ended.
    fn earlier_sets(&self, now: Timestamp) -> impl Iterator<Item = (&Vec<ShardId>, Timestamp)> {
        let sets = self.earlier.iter().map(|(shards, ended)| (shards, *ended));
        sets.filter(move |(shards, ended)| **shards != self.current && ended.plus(self.window) > now)
    }

    /// Whether a shard's record was read.
    pub fn is_read(&self, shard: ShardId) -> bool {
        self.records.contains_key(&shard)
    }

    /// Whether a shard was read, and has recorded the current set and all earlier ones that matter.
    pub fn has_recorded(&self, shard: ShardId, now: Timestamp) -> bool {
        self.records.get(&shard).is_some_and(|record| self.is_whole(record, now))
    }

    /// Whether keys can be stored: every earlier set that matters is known, and whoever comes later will know
    /// of this one. It is so in each of these cases:
    ///
    /// - Every shard has recorded every set that matters. A drained shard that is `silent` is left out: its
    ///   server may never answer again, and the keys whose earlier home it is are refused in any case.
    /// - The set has been the same for the longest window, since the node began. An earlier set ended before
    ///   that, so every window under it has passed.
    /// - At least half of the shards were read, and all of these recorded the current set longer ago than the
    ///   longest window. A shard records a set with the first batch under it, which its owner commits as soon
    ///   as it has the shard. So under a later set that has one of these shards, that shard would name the
    ///   later set. And any earlier set ended when the current one was recorded: every window under it has
    ///   passed, whatever the shards record that were not read.
    ///
    /// Two things escape the last two cases: shards that never recorded the current set, while the others
    /// were used, and are later configured without any of these within the window. One escapes the last
    /// alone: a set without any shard that was read, so with less than half of the current ones, that came
    /// and went within the window.
    pub fn is_complete(&self, now: Timestamp, at: Monotonic, silent: impl Fn(ShardId) -> bool) -> bool {
        let long_ago =
            |record: &ShardTopology| record.shards == self.current && record.since.plus(self.window) <= now;
        let read = self.current.iter().filter(|id| self.is_read(**id)).count();
        self.unrecorded.iter().all(|id| self.draining.contains(id) && silent(*id))
            || at >= self.complete_at
            || 2 * read >= self.current.len() && self.records.values().all(long_ago)
    }

    /// Not listed, although no operator has removed it while the node ran.
    fn is_missing(&self, shard: ShardId) -> bool {
        let listed = self.draining.contains(&shard) || self.current.binary_search(&shard).is_ok();
        !listed && !self.removed.contains(&shard)
    }

    /// Earlier homes of keys that are not listed any more, and until when keys may be remembered there.
    pub fn missing(&self, now: Timestamp) -> BTreeMap<ShardId, Timestamp> {
        let mut missing = BTreeMap::new();
        for (shards, ended) in self.earlier_sets(now) {
            for shard in shards.iter().filter(|shard| self.is_missing(**shard)) {
                let until = missing.entry(*shard).or_insert(Timestamp::MIN);
                *until = ended.plus(self.window).max(*until);
            }
        }
        missing
    }

    /// Until when keys may be remembered in a shard that is no home any more.
    pub fn keys_until(&self, shard: ShardId, now: Timestamp) -> Option<Timestamp> {
        // Mostly it is a home. To compare whole sets for each of a thousand shards takes a millisecond.
        if self.current.binary_search(&shard).is_ok() {
            return None;
        }
        let sets = self.earlier_sets(now).filter(|(shards, _)| shards.contains(&shard));
        sets.map(|(_, ended)| ended.plus(self.window)).max()
    }

    /// Whether the log is to name an earlier home that is not listed any more: it does that once.
    pub fn is_to_be_named(&mut self, missing: ShardId) -> bool {
        self.named.insert(missing)
    }

    /// The shards among which keys have their homes.
    pub fn current(&self) -> &[ShardId] {
        &self.current
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
        homes.filter(|home| !self.removed.contains(home)).collect()
    }
}

#[cfg(test)]
mod tests;
