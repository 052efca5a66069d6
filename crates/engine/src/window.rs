//! The ready index of one topic in one shard: its deliverable items up to a horizon.
//!
//! Invariant: the window holds *every* ready item at or below its horizon that is neither leased nor
//! reserved. What lies above the horizon is only in the store, and [`Window::begin_read`] reads on from there.

use std::collections::BTreeMap;

use forebay_store::{LeaseEntry, ReadyRow};
use forebay_types::{Body, DeliveryPolicy, Horizon, ItemAttributes, Key, Seq, Timestamp};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::{
    op::Placed,
    planted::{Bug, on},
};

/// What an entry costs beside its body: its share of the tree's nodes and the allocator's overhead.
pub(crate) const ENTRY_BYTES: usize = 320;

/// A deliverable item.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub enqueued_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    pub lease_ms: u32,
    pub max_attempts: u32,
    pub policy: DeliveryPolicy,
    pub deliveries: u32,
    pub failures: u32,
    /// Bytes of the body, cached or not.
    pub bytes: u32,
    /// The body, while the memory budget allows it.
    pub body: Option<Body>,
}

impl Entry {
    /// An item that was just enqueued, without its body.
    pub fn of_new(item: &Placed) -> Self {
        Self {
            enqueued_at: item.arrived,
            expires_at: item.expires_at,
            lease_ms: item.lease_ms,
            max_attempts: item.max_attempts,
            policy: item.policy,
            deliveries: 0,
            failures: 0,
            bytes: u32::try_from(item.body.bytes()).unwrap_or(u32::MAX),
            body: None,
        }
    }

    /// An item that comes back from a lease: its body stayed in the store.
    pub fn from_lease(lease: &LeaseEntry, failures: u32) -> Self {
        Self { failures, ..Self::of(lease.attributes, lease.bytes, None) }
    }

    fn of(attributes: ItemAttributes, bytes: u32, body: Option<Body>) -> Self {
        Self {
            enqueued_at: attributes.enqueued_at,
            expires_at: attributes.expires_at,
            lease_ms: attributes.lease_ms,
            max_attempts: attributes.max_attempts,
            policy: attributes.policy,
            deliveries: attributes.deliveries,
            failures: attributes.failures,
            bytes,
            body,
        }
    }

    pub fn attributes(&self) -> ItemAttributes {
        ItemAttributes {
            enqueued_at: self.enqueued_at,
            expires_at: self.expires_at,
            lease_ms: self.lease_ms,
            max_attempts: self.max_attempts,
            policy: self.policy,
            deliveries: self.deliveries,
            failures: self.failures,
        }
    }

    /// An item as the store has it.
    pub fn from_row(row: ReadyRow) -> (Key, Self) {
        (row.key, Self::of(row.attributes, row.bytes, row.body))
    }

    fn cost(&self) -> usize {
        ENTRY_BYTES + self.body.as_ref().map_or(0, Body::bytes)
    }

    pub fn expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }
}

/// A read of the store that is under way, and what happened to the topic meanwhile.
#[derive(Debug)]
struct Read {
    id: u64,
    limit: usize,
    /// Items that a commit, a reservation or an open batch touched since the read began: what the read says of
    /// them may be old.
    touched: FxHashSet<Seq>,
    /// Items that became ready since the read began, and still are.
    added: FxHashMap<Seq, (Key, Entry)>,
    /// The window was cut, or a batch failed that the read may have seen: its result is worth nothing.
    void: bool,
}

/// The ready index of one topic in one shard.
#[derive(Debug)]
pub(crate) struct Window {
    entries: BTreeMap<Key, Entry>,
    horizon: Horizon,
    cost: usize,
    read: Option<Read>,
}

impl Window {
    /// Of a topic that has nothing ready.
    pub fn complete() -> Self {
        Self { entries: BTreeMap::new(), horizon: Horizon::End, cost: 0, read: None }
    }

    /// Of a topic that nothing is known about.
    pub fn unread() -> Self {
        Self { horizon: Horizon::Through(Key::MIN), ..Self::complete() }
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Bytes that it holds in memory.
    pub fn cost(&self) -> usize {
        self.cost
    }

    /// Nothing ready lies beyond the window.
    pub fn is_complete(&self) -> bool {
        self.horizon == Horizon::End
    }

    pub fn is_reading(&self) -> bool {
        self.read.is_some()
    }

    /// The best item, with its key.
    pub fn first(&self) -> Option<(Key, &Entry)> {
        self.entries.first_key_value().map(|(key, entry)| (*key, entry))
    }

    /// Reserves the best item: it leaves the window.
    pub fn pop(&mut self) -> Option<(Key, Entry)> {
        let (key, entry) = self.entries.pop_first()?;
        self.cost -= entry.cost();
        self.touch(key.seq);
        Some((key, entry))
    }

    /// Whether [`Window::add`] has a use for an entry with this key.
    pub fn wants(&self, key: Key) -> bool {
        self.horizon.covers(key) || self.read.is_some()
    }

    /// An item became ready. Beyond the horizon it stays in the store alone.
    pub fn add(&mut self, key: Key, entry: Entry) {
        self.touch(key.seq);
        if self.horizon.covers(key) {
            self.insert(key, entry);
        } else if let Some(read) = &mut self.read {
            read.added.insert(key.seq, (key, entry));
        }
    }

    /// An item is ready no more, or was leased or removed by a committed batch.
    pub fn remove(&mut self, key: Key) {
        if let Some(entry) = self.entries.remove(&key) {
            self.cost -= entry.cost();
        }
        self.touch(key.seq);
    }

    /// A leased or scheduled item was removed or moved: what a read under way says of it may be old.
    pub fn touch(&mut self, seq: Seq) {
        if let Some(read) = &mut self.read {
            read.touched.insert(seq);
            read.added.remove(&seq);
        }
    }

    /// Nothing lies beyond the window, as the counts show: there is no need to read.
    pub fn set_complete(&mut self) {
        if self.read.is_none() {
            self.horizon = Horizon::End;
        }
    }

    /// Begins to read on. Returns the key to read after, or `None` if a read is under way or there is no need.
    pub fn begin_read(&mut self, id: u64, limit: usize) -> Option<Key> {
        let Horizon::Through(after) = self.horizon else { return None };
        if self.read.is_some() {
            return None;
        }
        self.read =
            Some(Read { id, limit, touched: FxHashSet::default(), added: FxHashMap::default(), void: false });
        Some(after)
    }

    /// The read under way, if any, must not be used: what it saw may be undone.
    pub fn void_read(&mut self) {
        if let Some(read) = &mut self.read {
            read.void = true;
        }
    }

    /// A read ended. `is_out` tells which items are leased or reserved. Returns whether the window moved on.
    ///
    /// Every batch that was open while the read ran must be resolved by now.
    pub fn end_read(&mut self, id: u64, rows: Option<Vec<ReadyRow>>, is_out: impl Fn(Seq) -> bool) -> bool {
        if self.read.as_ref().is_none_or(|read| read.id != id) {
            return false;
        }
        let Some(read) = self.read.take() else { return false };
        let Some(rows) = rows.filter(|_| !read.void) else { return false };
        let horizon = match rows.last() {
            Some(last) if rows.len() >= read.limit => Horizon::Through(last.key),
            _ => Horizon::End,
        };
        for row in rows {
            if (!read.touched.contains(&row.key.seq) || on(Bug::PrefetchResurrects)) && !is_out(row.key.seq) {
                let (key, entry) = Entry::from_row(row);
                self.insert(key, entry);
            }
        }
        for (key, entry) in read.added.into_values() {
            if horizon.covers(key) && !on(Bug::PrefetchLoses) {
                self.insert(key, entry);
            }
        }
        self.horizon = horizon;
        true
    }

    /// Drops what lies furthest back: all but the first `keep` entries. Returns the bytes that came free.
    pub fn shed(&mut self, keep: usize) -> usize {
        let Some(cut) = self.entries.keys().nth(keep).copied() else { return 0 };
        let before = self.cost;
        let dropped = self.entries.split_off(&cut);
        self.cost -= dropped.values().map(Entry::cost).sum::<usize>();
        let last = Seq(cut.seq.0 - u64::from(!on(Bug::HorizonOffByOne)));
        self.horizon = Horizon::Through(Key { seq: last, ..cut });
        self.void_read();
        before - self.cost
    }

    /// Drops the bodies; they are read again before their items are leased.
    pub fn strip(&mut self) {
        for entry in self.entries.values_mut() {
            self.cost -= entry.body.take().map_or(0, |body| body.bytes());
        }
    }

    fn insert(&mut self, key: Key, entry: Entry) {
        self.cost += entry.cost();
        if let Some(old) = self.entries.insert(key, entry) {
            self.cost -= old.cost();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(rank: i64) -> Key {
        Key { priority: 0, rank, seq: Seq(rank as u64) }
    }

    fn row(rank: i64) -> ReadyRow {
        ReadyRow {
            key: key(rank),
            attributes: ItemAttributes {
                enqueued_at: Timestamp::from_micros(rank),
                expires_at: None,
                lease_ms: 1_000,
                max_attempts: 16,
                policy: DeliveryPolicy::AtLeastOnce,
                deliveries: 0,
                failures: 0,
            },
            bytes: 0,
            body: None,
        }
    }

    fn entry(rank: i64) -> Entry {
        Entry::from_row(row(rank)).1
    }

    fn ranks(window: &Window) -> Vec<i64> {
        window.entries.keys().map(|key| key.rank).collect()
    }

    #[test]
    fn a_full_page_moves_the_horizon_and_a_short_one_ends_it() {
        let mut window = Window::unread();
        assert_eq!(window.begin_read(1, 2), Some(Key::MIN));
        assert!(window.end_read(1, Some(vec![row(1), row(2)]), |_| false));
        window.add(key(3), entry(3));
        assert_eq!(ranks(&window), [1, 2], "beyond the horizon an item stays in the store");
        assert_eq!(window.begin_read(2, 2), Some(key(2)));
        assert!(window.end_read(2, Some(vec![row(3)]), |_| false));
        assert!(window.is_complete());
        assert_eq!(ranks(&window), [1, 2, 3]);
    }

    #[test]
    fn what_happens_during_a_read_wins_over_what_it_saw() {
        let mut window = Window::unread();
        window.begin_read(1, 10);
        window.add(key(4), entry(4)); // enqueued, and not seen by the read
        window.touch(Seq(2)); // acked, and still seen by the read
        assert!(window.end_read(1, Some(vec![row(1), row(2), row(3)]), |seq| seq == Seq(3)));
        assert_eq!(ranks(&window), [1, 4]);
    }

    #[test]
    fn a_void_read_is_thrown_away() {
        let mut window = Window::unread();
        window.begin_read(1, 10);
        window.void_read();
        assert!(!window.end_read(1, Some(vec![row(1)]), |_| false));
        assert_eq!(window.begin_read(2, 10), Some(Key::MIN));
    }

    #[test]
    fn shedding_keeps_the_head_and_reads_on_from_the_cut() {
        let mut window = Window::complete();
        for rank in 1..=4 {
            window.add(key(rank), entry(rank));
        }
        let freed = window.shed(2);
        assert_eq!(freed, 2 * ENTRY_BYTES);
        assert_eq!(ranks(&window), [1, 2]);
        window.add(key(3), entry(3));
        assert_eq!(ranks(&window), [1, 2]);
        window.begin_read(1, 10);
        assert!(window.end_read(1, Some(vec![row(3), row(4)]), |_| false));
        assert_eq!(ranks(&window), [1, 2, 3, 4]);
        assert_eq!(window.cost(), 4 * ENTRY_BYTES);
    }
}
