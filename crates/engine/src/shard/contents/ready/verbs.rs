//! Fills windows from the store as demand needs it, and keeps the ready index within its budget.
//!
//! An item of the index may not be in the store. An owner that was replaced without knowing it meets many of
//! these: the new owner has delivered them. So nothing is said before the claim is renewed once more.

use forebay_store::ReadyRow;
use forebay_types::{ItemId, Monotonic, Seq, TopicId, TopicName};

use super::prefetches::CompletedRead;
use crate::{
    planted::{Bug, on},
    shard::{
        OwnedShard,
        work::{ITEM_OVERHEAD_BYTES, PrefetchRequest, ReservedItem},
    },
};

/// A read asks for so many items, however little memory there is.
const READ_MIN: usize = 16;
/// The most bytes of bodies that one read brings. The rest is read before it is leased.
const READ_BYTES_MAX: usize = 8 << 20;
/// Reads of one shard that the background may add to.
const BACKGROUND_READS_MAX: usize = 16;

/// Windows that are cut at once: of very many small ones each frees little.
const CUTS_MAX: usize = 500;

/// Whether there is more to fetch of a topic.
pub(crate) enum Fetch {
    /// No: the window holds all that is ready.
    Complete,
    /// Yes, and a read is under way.
    UnderWay,
    /// Yes, by this read.
    Begin(PrefetchRequest),
}

impl OwnedShard {
    /// Items of a topic that could be leased and are not in its window.
    fn unfetched(&self, id: TopicId) -> usize {
        let Some(topic) = self.contents.topics.get(id) else { return 0 };
        let known = self.contents.leases.of_topic(id) + topic.reserved as usize + topic.window().len();
        usize::try_from(topic.counts.ready).unwrap_or(0).saturating_sub(known)
    }

    /// The window holds all that is ready, or the counts show that nothing lies behind it.
    pub fn is_fetched(&self, id: TopicId) -> bool {
        self.contents.topics.get(id).is_none_or(|topic| topic.window().is_complete())
            || self.unfetched(id) == 0
    }

    /// A read of the topic's window is under way.
    pub fn is_fetching(&self, id: TopicId) -> bool {
        self.contents.topics.get(id).is_some_and(|topic| topic.window().is_reading())
    }

    /// The window ran empty: what is behind it has to be known. `read` names the read.
    pub fn fetch_next(&mut self, id: TopicId, read: u64, wanted: usize) -> Fetch {
        let unfetched = self.unfetched(id);
        let Some(topic) = self.contents.topics.get_mut(id) else { return Fetch::Complete };
        if topic.window().is_complete() {
            return Fetch::Complete;
        }
        if topic.window().is_reading() {
            return Fetch::UnderWay;
        }
        if unfetched == 0 {
            self.contents.topics.set_complete(id);
            return Fetch::Complete;
        }
        topic.grow_fill();
        self.begin_prefetch(id, read, wanted).map_or(Fetch::UnderWay, Fetch::Begin)
    }

    /// Fills the window before it runs empty.
    pub fn top_up(&mut self, id: TopicId, read: u64) -> Option<PrefetchRequest> {
        let topic = self.contents.topics.get(id)?;
        let low = topic.window().len() < usize::from(topic.fill) / 2;
        let needed = low && !topic.window().is_reading() && !self.is_fetched(id);
        if needed { self.begin_prefetch(id, read, 0) } else { None }
    }

    /// Reads a head that somebody wants to know, unless many reads are under way already.
    pub fn fetch_head(&mut self, id: TopicId, read: u64) -> Option<PrefetchRequest> {
        let possible = self.contents.prefetches.under_way() < BACKGROUND_READS_MAX && !self.is_fetching(id);
        if possible { self.begin_prefetch(id, read, 0) } else { None }
    }

    /// Reads the heads of topics that were there when the shard was taken over, a few at a time.
    pub fn next_head(&mut self, read: u64) -> Option<PrefetchRequest> {
        while self.contents.prefetches.under_way() < BACKGROUND_READS_MAX
            && let Some(id) = self.contents.prefetches.heads.pop_front()
        {
            let empty = self.contents.topics.get(id).is_some_and(|topic| topic.window().len() == 0);
            if empty
                && !self.is_fetched(id)
                && let Some(request) = self.begin_prefetch(id, read, 0)
            {
                return Some(request);
            }
        }
        None
    }

    /// Reads on behind a window: at least `wanted` items where the memory allows it.
    fn begin_prefetch(&mut self, id: TopicId, read: u64, wanted: usize) -> Option<PrefetchRequest> {
        let room = self.read_room();
        let topic = self.contents.topics.get(id)?;
        let limit = usize::from(topic.fill).max(wanted).min((room / ITEM_OVERHEAD_BYTES).max(READ_MIN));
        // A topic of few items needs no more room than these.
        let rows = limit.min(usize::try_from(topic.counts.ready).unwrap_or(0));
        let max_bytes = room.saturating_sub(rows * ITEM_OVERHEAD_BYTES);
        let max_bytes = max_bytes.min(READ_BYTES_MAX).min(rows * self.settings.limits.body_bytes());
        let after = self.contents.topics.begin_read(id, read, limit)?;
        self.contents.prefetches.begin(read, rows * ITEM_OVERHEAD_BYTES + max_bytes);
        metrics::counter!("forebay_prefetch_reads_total").increment(1);
        Some(PrefetchRequest { topic: id, after, limit, max_bytes })
    }

    /// Bytes that the next read may bring: a quarter of what is free, and all reads together bring no more
    /// than a quarter of the budget.
    fn read_room(&self) -> usize {
        let free = self.contents.index_budget.saturating_sub(self.held_bytes()) / 4;
        free.min((self.contents.index_budget / 4).saturating_sub(self.contents.prefetches.reserved_bytes()))
    }

    /// Bytes of the windows, and of what is being read for them.
    pub(in crate::shard) fn held_bytes(&self) -> usize {
        self.contents.topics.index_bytes() + self.contents.prefetches.reserved_bytes()
    }

    /// A demand waits for the topic's head. Returns until when.
    pub fn outstanding_until(&mut self, id: TopicId, at: Monotonic) -> Monotonic {
        let since =
            self.contents.topics.get_mut(id).map_or(at, |topic| *topic.outstanding_since.get_or_insert(at));
        since.plus(self.settings.head_timeout)
    }

    /// A read ended; `None` if it failed. Returns the topics whose windows have changed.
    pub fn prefetched(&mut self, topic: TopicId, read: u64, rows: Option<Vec<ReadyRow>>) -> Vec<TopicName> {
        self.contents.prefetches.completed.push(CompletedRead { topic, read, rows });
        self.apply_prefetches()
    }

    /// Uses what was read, once no batch is in flight that the reads may have seen half of.
    pub(in crate::shard) fn apply_prefetches(&mut self) -> Vec<TopicName> {
        if self.commit.in_flight.is_some() {
            return Vec::new();
        }
        let mut names = Vec::new();
        for CompletedRead { topic, read, rows } in std::mem::take(&mut self.contents.prefetches.completed) {
            self.contents.prefetches.end(read);
            let (leases, reserved) = (&self.contents.leases, &self.contents.reserved);
            let is_out = |seq| leases.get(seq).is_some() || reserved.contains(&seq);
            names.extend(self.contents.topics.end_read(topic, read, rows, is_out));
        }
        self.evict();
        names
    }

    /// Sets how many bytes of ready index and cached bodies it may hold from now on.
    pub fn set_index_budget(&mut self, bytes: usize) {
        self.contents.index_budget = bytes;
    }

    /// Drops what lies furthest back in the greatest windows, until the budget holds with an eighth to spare,
    /// or until many windows were cut. Then it goes on in the next turn.
    ///
    /// A head stays, without its body: else the heads of many topics would be read again and again. They are
    /// bounded by the number of topics.
    pub fn evict(&mut self) {
        let budget = self.contents.index_budget;
        if self.held_bytes() <= budget && !self.contents.evicts_on || on(Bug::NeverEvicts) {
            return;
        }
        let target = budget - budget / 8;
        self.contents.evicts_on = false;
        for _ in 0..CUTS_MAX {
            let Some(id) = self.contents.topics.largest().filter(|_| self.held_bytes() > target) else {
                return;
            };
            self.contents.topics.with_window(id, |window| match window.len() {
                0 | 1 => window.drop_bodies(),
                items => window.evict(items / 2),
            });
            if let Some(topic) = self.contents.topics.get_mut(id) {
                topic.shrink_fill();
            }
        }
        self.contents.evicts_on = true;
    }

    /// An item of the ready index is not in the store. It is not put back: it would be picked again at once.
    pub(in crate::shard) fn has_vanished(&mut self, reserved: &ReservedItem, at: Monotonic) {
        self.clear_reservation(reserved.topic, reserved.key.seq, reserved.item.bytes);
        self.contents.vanished.note(reserved.key.seq, at);
    }

    /// The claim was renewed by a call that began at `began`. Returns whether what memory knows of the shard
    /// is wrong, so that it is to be taken over anew.
    pub fn renewed(&mut self, began: Monotonic) -> bool {
        self.tenure.trust.renewed(began);
        let (sure, is_wrong) = self.contents.vanished.confirm(began);
        sure.into_iter().for_each(|seq| self.log_vanished(seq));
        if is_wrong {
            let id = self.id;
            metrics::counter!("forebay_shards_given_up_total").increment(1);
            tracing::error!(
                shard.id = id.0,
                "items of shard {id}'s ready index are not in the store; taking it over anew"
            );
        }
        is_wrong
    }

    fn log_vanished(&self, seq: Seq) {
        let item = ItemId { shard: self.id, seq };
        metrics::counter!("forebay_vanished_items_total").increment(1);
        tracing::error!(
            shard.id = self.id.0,
            %item,
            "item {item} is in the ready index but not in the store; leaving it out"
        );
    }
}

#[cfg(test)]
mod tests {
    use forebay_store::ReadyRow;
    use forebay_types::{Body, TopicId};

    use super::*;
    use crate::shard::{
        contents::topics::state::TopicState,
        tests::{T, at, items, moment, ready_row, shard, shard_with_topics, store},
        work::{ITEM_OVERHEAD_BYTES, ReadyItem},
    };

    #[test]
    fn the_greatest_window_is_cut_and_a_head_stays() {
        let mut shard = shard();
        store(&mut shard, 0, items(8));
        shard.contents.index_budget = 7 * ITEM_OVERHEAD_BYTES;
        shard.evict();
        let window = |shard: &crate::shard::OwnedShard| shard.contents.topics.get(T).unwrap().window().len();
        assert_eq!((window(&shard), shard.check()), (4, Ok(())));
        shard.contents.index_budget = 0;
        shard.evict();
        assert!(!shard.contents.evicts_on, "what is left can't be dropped");
        assert_eq!((window(&shard), shard.contents.topics.largest(), shard.check()), (1, None, Ok(())));
    }

    #[test]
    fn many_small_windows_are_cut_in_several_turns() {
        let mut shard = shard_with_topics(2 * CUTS_MAX as u32, 0);
        for id in (1..=2 * CUTS_MAX as u32).map(TopicId) {
            let body = Some(Body { payload: "body".into(), ..Body::default() });
            let (key, item) = ReadyItem::from_row(ReadyRow { body, ..ready_row(u64::from(id.0)) });
            shard.contents.topics.with_window(id, |window| window.add(key, item));
        }
        shard.contents.index_budget = 1;
        let has_body = |topic: &&TopicState| topic.window().size_class().is_some();
        let with_bodies = |shard: &OwnedShard| {
            shard.contents.topics.iter().map(|(_, topic)| topic).filter(has_body).count()
        };
        for left in [CUTS_MAX, 0] {
            shard.evict();
            assert_eq!(
                (with_bodies(&shard), shard.contents.evicts_on),
                (left, true),
                "there may be more to cut"
            );
            assert_eq!(shard.next_wake(moment(7), true), Some(at(7)));
        }
        shard.evict();
        assert!(!shard.contents.evicts_on);
    }
}
