//! The topics of one shard: their counts, their windows, and which of them changed.

use std::collections::{HashMap, VecDeque};

use forebay_store::{ReadyRow, TopicCounts, TopicRow};
use forebay_types::{Key, Monotonic, Seq, TopicId, TopicName};
use rustc_hash::FxHashMap;

use super::ready::window::Window;

/// How many items a refill of a window begins with.
pub(super) const FILL_MIN: usize = 64;
/// The most that a refill reads at once.
const FILL_MAX: usize = 2_000;

/// One topic of one shard.
#[derive(Debug)]
pub(crate) struct TopicState {
    /// Its name.
    pub name: TopicName,
    /// How many items it has.
    pub counts: TopicCounts,
    /// Items that have left the window, on their way to a lease.
    pub reserved: usize,
    /// Its ready index. Changed through the table alone, which keeps account of its bytes.
    window: Window,
    /// Since when a demand waits for the read under way.
    pub outstanding_since: Option<Monotonic>,
    /// How many items the next refill asks for.
    pub fill: usize,
    /// The first batch whose delta is not folded into the topic's row yet.
    pub dirty_since: Option<u64>,
    /// Since when it has been empty.
    pub idle_since: Option<Monotonic>,
    /// It is in the list of changed topics.
    changed: bool,
}

impl TopicState {
    fn new(name: TopicName, counts: TopicCounts, window: Window) -> Self {
        Self {
            name,
            counts,
            reserved: 0,
            window,
            outstanding_since: None,
            fill: FILL_MIN,
            dirty_since: None,
            idle_since: None,
            changed: false,
        }
    }

    /// Its ready index.
    pub fn window(&self) -> &Window {
        &self.window
    }

    /// The window ran empty. The faster a topic is drained, the more is read ahead.
    pub fn grow_fill(&mut self) {
        self.fill = (self.fill * 2).min(FILL_MAX);
    }

    /// The window was cut for want of memory.
    pub fn shrink_fill(&mut self) {
        self.fill = (self.fill / 2).max(FILL_MIN);
    }

    /// It has no item and no dead letter.
    pub fn is_empty(&self) -> bool {
        self.counts == TopicCounts::default()
    }
}

/// A topic that is known no more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ForgottenTopic {
    /// Its number in the shard.
    pub id: TopicId,
    /// Its name.
    pub name: TopicName,
}

/// All topics of one shard.
#[derive(Debug, Default)]
pub(super) struct TopicTable {
    /// By their number.
    by_id: FxHashMap<TopicId, TopicState>,
    /// Their numbers.
    by_name: HashMap<TopicName, TopicId>,
    /// Bytes of all windows.
    index_bytes: usize,
    /// Topics whose head or counts may have changed since the node looked.
    changed: Vec<TopicId>,
    /// Topics whose counts are not folded yet, in the order of `dirty_since`.
    pub(super) dirty: VecDeque<TopicId>,
    /// Topics to be dropped once they have been empty for long, and since when.
    pub(super) idle: VecDeque<(Monotonic, TopicId)>,
}

impl TopicTable {
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    pub fn get(&self, id: TopicId) -> Option<&TopicState> {
        self.by_id.get(&id)
    }

    pub fn get_mut(&mut self, id: TopicId) -> Option<&mut TopicState> {
        self.by_id.get_mut(&id)
    }

    /// The number of a topic.
    pub fn id_of(&self, name: &TopicName) -> Option<TopicId> {
        self.by_name.get(name).copied()
    }

    pub fn iter(&self) -> impl Iterator<Item = (TopicId, &TopicState)> {
        self.by_id.iter().map(|(id, topic)| (*id, topic))
    }

    /// Bytes of all windows.
    pub fn index_bytes(&self) -> usize {
        self.index_bytes
    }

    /// A topic that the store had when the shard was taken over. What is ready in it has to be read first.
    pub fn add_loaded(&mut self, row: TopicRow, at: Monotonic) {
        let TopicRow { id, name, counts } = row;
        let window = if counts.ready > 0 { Window::unread() } else { Window::complete() };
        let mut topic = TopicState::new(name.clone(), counts, window);
        // The deltas that the load added up are still rows: they may go once the topic was folded.
        topic.dirty_since = Some(0);
        self.dirty.push_back(id);
        if topic.is_empty() {
            topic.idle_since = Some(at);
            self.idle.push_back((at, id));
        }
        self.by_name.insert(name, id);
        self.by_id.insert(id, topic);
        self.mark_changed(id);
    }

    /// A topic that a batch created.
    pub fn add_new(&mut self, row: &TopicRow) {
        let topic = TopicState::new(row.name.clone(), row.counts, Window::complete());
        self.by_name.insert(row.name.clone(), row.id);
        self.by_id.insert(row.id, topic);
    }

    /// A batch dropped the topic.
    pub fn remove(&mut self, id: TopicId) -> Option<ForgottenTopic> {
        let topic = self.by_id.remove(&id)?;
        self.index_bytes -= topic.window.cost();
        self.by_name.remove(&topic.name);
        Some(ForgottenTopic { id, name: topic.name })
    }

    /// A batch that was to drop these topics did not happen: the next one tries again.
    pub fn keep_dropped(&mut self, ids: &[TopicId]) {
        for id in ids.iter().rev() {
            if let Some(since) = self.by_id.get(id).and_then(|topic| topic.idle_since) {
                self.idle.push_front((since, *id));
            }
        }
    }

    /// The topic's head or counts may have changed.
    pub fn mark_changed(&mut self, id: TopicId) {
        if let Some(topic) = self.by_id.get_mut(&id)
            && !topic.changed
        {
            topic.changed = true;
            self.changed.push(id);
        }
    }

    /// Every topic's head may have changed.
    pub fn mark_all_changed(&mut self) {
        let mut topics: Vec<TopicId> = self.by_id.keys().copied().collect();
        topics.sort_unstable();
        topics.into_iter().for_each(|topic| self.mark_changed(topic));
    }

    /// Names the topics that were marked since the last call.
    pub fn drain_changed(&mut self, mut each: impl FnMut(&TopicName)) {
        for id in self.changed.drain(..) {
            if let Some(topic) = self.by_id.get_mut(&id) {
                topic.changed = false;
                each(&topic.name);
            }
        }
    }

    /// Changes a topic's window, and keeps account of its bytes.
    pub fn with_window<R>(&mut self, id: TopicId, change: impl FnOnce(&mut Window) -> R) -> Option<R> {
        let topic = self.by_id.get_mut(&id)?;
        let before = topic.window.cost();
        let result = change(&mut topic.window);
        self.index_bytes = self.index_bytes + topic.window.cost() - before;
        self.mark_changed(id);
        Some(result)
    }

    /// An item changed: a read under way may show its past.
    pub fn invalidate(&mut self, id: TopicId, seq: Seq) {
        if let Some(topic) = self.by_id.get_mut(&id) {
            topic.window.invalidate(seq);
        }
    }

    /// Nothing ready lies beyond the topic's window, as its counts show.
    pub fn set_complete(&mut self, id: TopicId) {
        if let Some(topic) = self.by_id.get_mut(&id) {
            topic.window.set_complete();
        }
    }

    /// Begins to read on behind the topic's window; see [`Window::begin_read`].
    pub fn begin_read(&mut self, id: TopicId, read: u64, limit: usize) -> Option<Key> {
        self.by_id.get_mut(&id)?.window.begin_read(read, limit)
    }

    /// A read of the topic's window ended. Returns the topic's name.
    pub fn end_read(
        &mut self,
        id: TopicId,
        read: u64,
        rows: Option<Vec<ReadyRow>>,
        is_out: impl Fn(Seq) -> bool,
    ) -> Option<TopicName> {
        self.with_window(id, |window| window.end_read(read, rows, is_out))?;
        let topic = self.by_id.get_mut(&id)?;
        if !topic.window.is_reading() {
            topic.outstanding_since = None;
        }
        Some(topic.name.clone())
    }

    /// What the reads under way saw of the last batch was undone.
    pub fn void_reads(&mut self) {
        for topic in self.by_id.values_mut() {
            topic.window.void_read();
        }
    }

    /// Whether names and numbers agree, and the topics to be folded are those that are dirty, in order.
    /// Checked in tests.
    pub fn check(&self) -> Result<(), String> {
        let unnamed = |(id, topic): &(&TopicId, &TopicState)| self.by_name.get(&topic.name) != Some(*id);
        if self.by_name.len() != self.by_id.len() || self.by_id.iter().any(|topic| unnamed(&topic)) {
            return Err(format!("{} topics have {} names", self.by_id.len(), self.by_name.len()));
        }
        let since = |id: &TopicId| self.by_id.get(id).and_then(|topic| topic.dirty_since);
        let queued: Vec<u64> = self.dirty.iter().filter_map(since).collect();
        let dirty = self.by_id.values().filter(|topic| topic.dirty_since.is_some()).count();
        match queued.is_sorted() && queued.len() == dirty {
            true => Ok(()),
            false => Err(format!("{dirty} topics are dirty; the queue has {queued:?}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shard::tests::{T, check::wrong, items, shard, store};

    #[test]
    fn bytes_of_the_index_that_are_not_those_of_the_windows_are_found() {
        let what = wrong(|shard| shard.topics.index_bytes += 1);
        assert!(what.starts_with("windows hold ") && what.contains("bytes, not"), "{what}");
    }

    #[test]
    fn a_window_changed_behind_the_tables_back_is_found() {
        let what = wrong(|shard| shard.topics.by_id.get_mut(&T).unwrap().window.evict(1));
        assert_eq!(what, "windows hold 320 bytes, not 1280");
    }

    #[test]
    fn a_topic_that_is_dropped_takes_its_bytes_along() {
        let mut shard = shard();
        store(&mut shard, 0, items(3));
        assert!(shard.topics.index_bytes() > 0);
        assert!(shard.topics.remove(T).is_some() && shard.topics.remove(T).is_none());
        assert_eq!((shard.topics.index_bytes(), shard.topics.by_name.len()), (0, 0));
    }

    #[test]
    fn a_topic_is_named_once_however_often_it_changed() {
        let mut shard = shard();
        store(&mut shard, 0, items(3));
        let names = |shard: &mut crate::shard::OwnedShard| {
            let mut count = 0;
            shard.drain_changed(|_| count += 1);
            count
        };
        assert_eq!((names(&mut shard), names(&mut shard)), (1, 0));
        shard.mark_all_changed();
        assert_eq!(names(&mut shard), 1);
    }

    #[test]
    fn a_refill_grows_with_demand_and_shrinks_with_memory() {
        let mut topic =
            TopicState::new(TopicName::new("ns", "t"), TopicCounts::default(), Window::complete());
        let grown: Vec<usize> = (0..6)
            .map(|_| {
                topic.grow_fill();
                topic.fill
            })
            .collect();
        assert_eq!(grown, [128, 256, 512, 1_024, 2_000, 2_000]);
        (0..9).for_each(|_| topic.shrink_fill());
        assert_eq!(topic.fill, FILL_MIN);
    }
}
