//! Fills windows from the store as demand needs it, inside the memory budget.

use forebay_store::ReadyRow;
use forebay_types::{Monotonic, TopicId, TopicName};

use super::{OwnedShard, prefetches::CompletedRead, ready::item::ITEM_OVERHEAD_BYTES, work::PrefetchRequest};

/// A read asks for so many items, however little memory there is.
const READ_MIN: usize = 16;
/// The most bytes of bodies that one read brings. The rest is read before it is leased.
const READ_BYTES_MAX: usize = 8 << 20;
/// Reads of one shard that the background may add to.
const BACKGROUND_READS_MAX: usize = 16;

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
        let Some(topic) = self.topics.get(id) else { return 0 };
        let known = self.leases.of_topic(id) + topic.reserved as usize + topic.window().len();
        usize::try_from(topic.counts.ready).unwrap_or(0).saturating_sub(known)
    }

    /// The window holds all that is ready, or the counts show that nothing lies behind it.
    pub fn is_fetched(&self, id: TopicId) -> bool {
        self.topics.get(id).is_none_or(|topic| topic.window().is_complete()) || self.unfetched(id) == 0
    }

    /// A read of the topic's window is under way.
    pub fn is_fetching(&self, id: TopicId) -> bool {
        self.topics.get(id).is_some_and(|topic| topic.window().is_reading())
    }

    /// The window ran empty: what is behind it has to be known. `read` names the read.
    pub fn fetch_next(&mut self, id: TopicId, read: u64, wanted: usize) -> Fetch {
        let unfetched = self.unfetched(id);
        let Some(topic) = self.topics.get_mut(id) else { return Fetch::Complete };
        if topic.window().is_complete() {
            return Fetch::Complete;
        }
        if topic.window().is_reading() {
            return Fetch::UnderWay;
        }
        if unfetched == 0 {
            self.topics.set_complete(id);
            return Fetch::Complete;
        }
        topic.grow_fill();
        self.begin_prefetch(id, read, wanted).map_or(Fetch::UnderWay, Fetch::Begin)
    }

    /// Fills the window before it runs empty.
    pub fn top_up(&mut self, id: TopicId, read: u64) -> Option<PrefetchRequest> {
        let topic = self.topics.get(id)?;
        let low = topic.window().len() < usize::from(topic.fill) / 2;
        let needed = low && !topic.window().is_reading() && !self.is_fetched(id);
        if needed { self.begin_prefetch(id, read, 0) } else { None }
    }

    /// Reads a head that somebody wants to know, unless many reads are under way already.
    pub fn fetch_head(&mut self, id: TopicId, read: u64) -> Option<PrefetchRequest> {
        let possible = self.prefetches.under_way() < BACKGROUND_READS_MAX && !self.is_fetching(id);
        if possible { self.begin_prefetch(id, read, 0) } else { None }
    }

    /// Reads the heads of topics that were there when the shard was taken over, a few at a time.
    pub fn next_head(&mut self, read: u64) -> Option<PrefetchRequest> {
        while self.prefetches.under_way() < BACKGROUND_READS_MAX
            && let Some(id) = self.prefetches.heads.pop_front()
        {
            let empty = self.topics.get(id).is_some_and(|topic| topic.window().len() == 0);
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
        let topic = self.topics.get(id)?;
        let limit = usize::from(topic.fill).max(wanted).min((room / ITEM_OVERHEAD_BYTES).max(READ_MIN));
        // A topic of few items needs no more room than these.
        let rows = limit.min(usize::try_from(topic.counts.ready).unwrap_or(0));
        let max_bytes = room.saturating_sub(rows * ITEM_OVERHEAD_BYTES);
        let max_bytes = max_bytes.min(READ_BYTES_MAX).min(rows * self.settings.limits.body_bytes());
        let after = self.topics.begin_read(id, read, limit)?;
        self.prefetches.begin(read, rows * ITEM_OVERHEAD_BYTES + max_bytes);
        metrics::counter!("forebay_prefetch_reads_total").increment(1);
        Some(PrefetchRequest { topic: id, after, limit, max_bytes })
    }

    /// Bytes that the next read may bring: a quarter of what is free, and all reads together bring no more
    /// than a quarter of the budget.
    fn read_room(&self) -> usize {
        let free = self.index_budget.saturating_sub(self.held_bytes()) / 4;
        free.min((self.index_budget / 4).saturating_sub(self.prefetches.reserved_bytes()))
    }

    /// Bytes of the windows, and of what is being read for them.
    pub(super) fn held_bytes(&self) -> usize {
        self.topics.index_bytes() + self.prefetches.reserved_bytes()
    }

    /// A demand waits for the topic's head. Returns until when.
    pub fn outstanding_until(&mut self, id: TopicId, at: Monotonic) -> Monotonic {
        let since = self.topics.get_mut(id).map_or(at, |topic| *topic.outstanding_since.get_or_insert(at));
        since.plus(self.settings.head_timeout)
    }

    /// A read ended; `None` if it failed. Returns the topics whose windows have changed.
    pub fn prefetched(&mut self, topic: TopicId, read: u64, rows: Option<Vec<ReadyRow>>) -> Vec<TopicName> {
        self.prefetches.completed.push(CompletedRead { topic, read, rows });
        self.apply_prefetches()
    }

    /// Uses what was read, once no batch is in flight that the reads may have seen half of.
    pub(super) fn apply_prefetches(&mut self) -> Vec<TopicName> {
        if self.in_flight.is_some() {
            return Vec::new();
        }
        let mut names = Vec::new();
        for CompletedRead { topic, read, rows } in std::mem::take(&mut self.prefetches.completed) {
            self.prefetches.end(read);
            let (leases, reserved) = (&self.leases, &self.reserved);
            let is_out = |seq| leases.get(seq).is_some() || reserved.contains(&seq);
            names.extend(self.topics.end_read(topic, read, rows, is_out));
        }
        self.evict();
        names
    }
}
