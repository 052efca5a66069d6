//! The ready index of one topic in one shard: its deliverable items up to a horizon.
//!
//! Invariant: the window holds *every* ready item at or below its horizon that is neither leased nor
//! reserved. What lies above the horizon is only in the store, and [`Window::begin_read`] reads on from
//! there.

use forebay_store::ReadyRow;
use forebay_types::{Horizon, Key, Seq};
use rustc_hash::{FxHashMap, FxHashSet};

use super::items::Items;
use crate::{
    planted::{Bug, on},
    shard::work::{ITEM_OVERHEAD_BYTES, ReadyItem},
};

/// A read of the store that is under way, and what happened to the topic since it began.
#[derive(Debug)]
struct Read {
    /// Names it.
    id: u64,
    /// It asked for so many items. A page with fewer is the last one.
    limit: usize,
    /// Items that a commit or a reservation changed since the read began: its result may show their past.
    invalidated: FxHashSet<Seq>,
    /// Items that became ready since the read began, and still are.
    added: FxHashMap<Seq, (Key, ReadyItem)>,
    /// The window was cut, or a batch failed that the read may have seen: its result is not used.
    void: bool,
}

/// The ready index of one topic in one shard.
#[derive(Debug)]
pub(crate) struct Window {
    /// The items up to the horizon.
    items: Items,
    /// Up to where the window is complete.
    horizon: Horizon,
    /// Bytes of all items.
    cost: usize,
    /// The read under way.
    read: Option<Box<Read>>,
}

impl Window {
    /// Of a topic that has nothing ready.
    pub fn complete() -> Self {
        Self { items: Items::Empty, horizon: Horizon::End, cost: 0, read: None }
    }

    /// Of a topic that nothing is known about.
    pub fn unread() -> Self {
        Self { horizon: Horizon::Through(Key::MIN), ..Self::complete() }
    }

    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Bytes that it holds in memory.
    pub fn cost(&self) -> usize {
        self.cost
    }

    /// Its cost as a power of two, if it has something that memory can do without: more than a head without
    /// its body.
    pub fn size_class(&self) -> Option<u32> {
        let spare = self.len() > 1 || self.cost > self.len() * ITEM_OVERHEAD_BYTES;
        spare.then(|| self.cost.ilog2())
    }

    /// Nothing ready lies beyond the window.
    pub fn is_complete(&self) -> bool {
        self.horizon == Horizon::End
    }

    pub fn is_reading(&self) -> bool {
        self.read.is_some()
    }

    /// The best item, with its key.
    pub fn first(&self) -> Option<(Key, &ReadyItem)> {
        self.items.first()
    }

    /// Reserves the best item: it leaves the window.
    pub fn pop(&mut self) -> Option<(Key, ReadyItem)> {
        let (key, item) = self.items.pop_first()?;
        self.cost -= item.cost();
        self.invalidate(key.seq);
        Some((key, item))
    }

    /// Whether [`Window::add`] would keep an item with this key.
    pub fn wants(&self, key: Key) -> bool {
        self.horizon.covers(key) || self.read.is_some()
    }

    /// An item became ready. Beyond the horizon it stays in the store alone.
    pub fn add(&mut self, key: Key, item: ReadyItem) {
        self.invalidate(key.seq);
        if self.horizon.covers(key) {
            self.insert(key, item);
        } else if let Some(read) = &mut self.read {
            read.added.insert(key.seq, (key, item));
        }
    }

    /// An item is ready no more, or was leased or removed by a committed batch. Returns it, if it was known.
    pub fn remove(&mut self, key: Key) -> Option<ReadyItem> {
        let item = self.items.remove(key);
        self.cost -= item.as_ref().map_or(0, ReadyItem::cost);
        self.invalidate(key.seq);
        item
    }

    /// An item changed: the read under way, if any, may show its past.
    pub fn invalidate(&mut self, seq: Seq) {
        if let Some(read) = &mut self.read {
            read.invalidated.insert(seq);
            read.added.remove(&seq);
        }
    }

    /// Nothing lies beyond the window, as the counts show: there is no need to read.
    pub fn set_complete(&mut self) {
        if self.read.is_none() {
            self.horizon = Horizon::End;
        }
    }

    /// Begins to read on. Returns the key to read after, or `None` if a read is under way or there is no
    /// need.
    pub fn begin_read(&mut self, id: u64, limit: usize) -> Option<Key> {
        let Horizon::Through(after) = self.horizon else { return None };
        if self.read.is_some() {
            return None;
        }
        self.read = Some(Box::new(Read {
            id,
            limit,
            invalidated: FxHashSet::default(),
            added: FxHashMap::default(),
            void: false,
        }));
        Some(after)
    }

    /// The read under way, if any, must not be used: what it saw may be undone.
    pub fn void_read(&mut self) {
        if let Some(read) = &mut self.read {
            read.void = true;
        }
    }

    /// A read ended; `rows` is `None` if it failed. `is_out` tells which items are leased or reserved.
    ///
    /// Every batch that was in flight while the read ran must be resolved by now.
    pub fn end_read(&mut self, id: u64, rows: Option<Vec<ReadyRow>>, is_out: impl Fn(Seq) -> bool) {
        let Some(read) = self.read.take_if(|read| read.id == id) else { return };
        let Some(rows) = rows.filter(|_| !read.void) else { return };
        let horizon = match rows.last() {
            Some(last) if rows.len() >= read.limit => Horizon::Through(last.key),
            _ => Horizon::End,
        };
        for row in rows {
            if !row.unreadable
                && (!read.invalidated.contains(&row.key.seq) || on(Bug::PrefetchResurrects))
                && !is_out(row.key.seq)
            {
                let (key, item) = ReadyItem::from_row(row);
                self.insert(key, item);
            }
        }
        for (key, item) in read.added.into_values() {
            if horizon.covers(key) && !on(Bug::PrefetchLoses) {
                self.insert(key, item);
            }
        }
        self.horizon = horizon;
    }

    /// Drops all but the first `keep` items. They stay in the store.
    pub fn evict(&mut self, keep: usize) {
        let Some(cut) = self.items.key_at(keep) else { return };
        let dropped = self.items.split_off(cut);
        self.cost -= dropped.iter().map(|(_, item)| item.cost()).sum::<usize>();
        let last = Seq(cut.seq.0 - u64::from(!on(Bug::HorizonOffByOne)));
        self.horizon = Horizon::Through(Key { seq: last, ..cut });
        self.void_read();
    }

    /// Drops the bodies; they are read again before their items are leased.
    pub fn drop_bodies(&mut self) {
        for item in self.items.values_mut() {
            self.cost -= item.body.take().map_or(0, |body| body.bytes());
        }
    }

    /// Whether `cost` is what the items cost, and no item lies beyond the horizon. Checked in tests.
    pub fn check(&self, is_out: impl Fn(Seq) -> bool) -> Result<(), String> {
        let cost: usize = self.items.iter().map(|(_, item)| item.cost()).sum();
        if cost != self.cost {
            return Err(format!("a window's items cost {cost} bytes, its account says {}", self.cost));
        }
        let mut keys = self.items.iter().map(|(key, _)| key);
        if let Some(key) = keys.find(|key| !self.horizon.covers(*key)) {
            return Err(format!("{key:?} lies beyond the horizon {:?}", self.horizon));
        }
        match self.items.iter().find(|(key, _)| is_out(key.seq)) {
            Some((key, _)) => Err(format!("{key:?} is in its window, and leased or reserved")),
            None => Ok(()),
        }
    }

    fn insert(&mut self, key: Key, item: ReadyItem) {
        self.cost += item.cost();
        if let Some(old) = self.items.insert(key, item) {
            self.cost -= old.cost();
        }
    }
}

#[cfg(test)]
mod tests {
    use forebay_types::{DeliveryPolicy, ItemAttributes, Timestamp};

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
                redrives: 0,
                updated_by: 0,
                waits: forebay_types::Waits::Unsaid,
            },
            bytes: 0,
            body: None,
            unreadable: false,
        }
    }

    fn item(rank: i64) -> ReadyItem {
        ReadyItem::from_row(row(rank)).1
    }

    fn ranks(window: &Window) -> Vec<i64> {
        window.items.iter().map(|(key, _)| key.rank).collect()
    }

    #[test]
    fn a_full_page_moves_the_horizon_and_a_short_one_ends_it() {
        let mut window = Window::unread();
        assert_eq!(window.begin_read(1, 2), Some(Key::MIN));
        window.end_read(1, Some(vec![row(1), row(2)]), |_| false);
        window.add(key(3), item(3));
        assert_eq!(ranks(&window), [1, 2], "beyond the horizon an item stays in the store");
        assert_eq!(window.begin_read(2, 2), Some(key(2)));
        window.end_read(2, Some(vec![row(3)]), |_| false);
        assert!(window.is_complete());
        assert_eq!(ranks(&window), [1, 2, 3]);
    }

    #[test]
    fn a_row_that_cannot_be_read_is_left_out_and_read_past() {
        let mut window = Window::unread();
        window.begin_read(1, 2);
        window.end_read(1, Some(vec![row(1), ReadyRow { unreadable: true, ..row(2) }]), |_| false);
        assert_eq!((ranks(&window), window.is_complete()), (vec![1], false));
        assert_eq!(window.begin_read(2, 2), Some(key(2)), "what is behind it comes");
        window.end_read(2, Some(vec![row(3)]), |_| false);
        assert_eq!((ranks(&window), window.is_complete()), (vec![1, 3], true));
    }

    #[test]
    fn what_happens_during_a_read_wins_over_what_it_saw() {
        let mut window = Window::unread();
        window.begin_read(1, 10);
        window.add(key(4), item(4)); // enqueued, and not seen by the read
        window.invalidate(Seq(2)); // acked, and still seen by the read
        window.end_read(1, Some(vec![row(1), row(2), row(3)]), |seq| seq == Seq(3));
        assert_eq!(ranks(&window), [1, 4]);
    }

    #[test]
    fn a_void_read_is_thrown_away() {
        let mut window = Window::unread();
        window.begin_read(1, 10);
        window.void_read();
        window.end_read(1, Some(vec![row(1)]), |_| false);
        assert!(ranks(&window).is_empty());
        assert_eq!(window.begin_read(2, 10), Some(Key::MIN));
    }

    #[test]
    fn eviction_keeps_the_head_and_reads_on_from_the_cut() {
        let mut window = Window::complete();
        for rank in 1..=4 {
            window.add(key(rank), item(rank));
        }
        window.evict(2);
        assert_eq!(window.cost(), 2 * ITEM_OVERHEAD_BYTES);
        assert_eq!(ranks(&window), [1, 2]);
        window.add(key(3), item(3));
        assert_eq!(ranks(&window), [1, 2]);
        window.begin_read(1, 10);
        window.end_read(1, Some(vec![row(3), row(4)]), |_| false);
        assert_eq!(ranks(&window), [1, 2, 3, 4]);
        assert_eq!(window.cost(), 4 * ITEM_OVERHEAD_BYTES);
    }

    /// The error that the check finds in a window of two items after this change.
    fn wrong(corrupt: impl FnOnce(&mut Window)) -> String {
        let mut window = Window::complete();
        (1..=2).for_each(|rank| window.add(key(rank), item(rank)));
        assert_eq!(window.check(|_| false), Ok(()));
        corrupt(&mut window);
        window.check(|seq| seq == Seq(9)).unwrap_err()
    }

    #[test]
    fn a_window_whose_accounts_are_wrong_is_found() {
        assert_eq!(wrong(|window| window.cost += 1), "a window's items cost 640 bytes, its account says 641");
        let beyond = wrong(|window| window.horizon = Horizon::Through(key(1)));
        assert!(beyond.contains("lies beyond the horizon"), "{beyond}");
        let out = wrong(|window| window.add(key(9), item(9)));
        assert!(out.contains("is in its window, and leased or reserved"), "{out}");
    }
}
