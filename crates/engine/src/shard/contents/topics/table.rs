//! The topics of one shard: their counts, their windows, and which of them changed.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    hash::RandomState,
};

use forebay_store::{ReadyRow, TopicCounts, TopicRow};
use forebay_types::{Key, Monotonic, Namespace, Seq, TopicId, TopicName};

use super::{
    forgotten::rows::ForgottenCounts, state::TopicState, tallies::load::TallyLoad,
    walk::position::WalkPosition,
};
use crate::{shard::contents::ready::window::Window, striped::StripedMap};

/// A topic of the shard, by number and name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedTopic {
    /// Its number in the shard.
    pub id: TopicId,
    /// Its name.
    pub name: TopicName,
}

/// All topics of one shard.
#[derive(Debug, Default)]
pub(in crate::shard) struct TopicTable {
    /// By their number.
    pub(super) by_id: StripedMap<TopicId, Box<TopicState>>,
    /// Their numbers. Names come from users, so the hash is one that nobody can foresee.
    by_name: StripedMap<TopicName, TopicId, RandomState>,
    /// How many topics each namespace has. The keys are what the topics' names share.
    pub(super) namespaces: HashMap<Namespace, usize>,
    /// The counts of all topics together.
    sums: TopicCounts,
    /// Bytes of all windows.
    index_bytes: usize,
    /// Topics whose window has something that memory can do without, by the size class of the window.
    by_size: BTreeSet<(u32, TopicId)>,
    /// The walk over all topics.
    pub(super) walk: WalkPosition,
    /// Topics whose window is being read.
    reading: BTreeSet<TopicId>,
    /// Topics whose first item may have changed since the node looked, or the number of their ready ones.
    changed: Vec<TopicId>,
    /// Topics whose counts are not folded yet, in the order of `dirty_since`.
    pub(in crate::shard) dirty: VecDeque<TopicId>,
    /// No batch before this one has a row of changed counts in the store.
    pub(in crate::shard) deltas_from: u64,
    /// The read of the tallies from before the take-over, which goes bit by bit.
    pub(in crate::shard) tally_load: TallyLoad,
    /// The counts of forgotten topics.
    pub(in crate::shard) forgotten: ForgottenCounts,
    /// Topics without items, and since when they are. They are dropped once that is long ago.
    pub(super) idle: BTreeSet<(Monotonic, TopicId)>,
    /// Dead letters of dormant topics.
    pub(in crate::shard) dormant_dead: i64,
}

impl TopicTable {
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    pub fn get(&self, id: TopicId) -> Option<&TopicState> {
        self.by_id.get(&id).map(|topic| &**topic)
    }

    pub fn get_mut(&mut self, id: TopicId) -> Option<&mut TopicState> {
        self.by_id.get_mut(&id).map(|topic| &mut **topic)
    }

    /// The number of a topic.
    pub fn id_of(&self, name: &TopicName) -> Option<TopicId> {
        self.by_name.get(name).copied()
    }

    pub fn iter(&self) -> impl Iterator<Item = (TopicId, &TopicState)> {
        self.by_id.iter().map(|(id, topic)| (*id, &**topic))
    }

    /// Bytes of all windows.
    pub fn index_bytes(&self) -> usize {
        self.index_bytes
    }

    /// The counts of all topics together, dormant ones included.
    pub fn sums(&self) -> TopicCounts {
        TopicCounts { dead: self.sums.dead + self.dormant_dead, ..self.sums }
    }

    /// A topic that a batch created.
    pub fn add_new(&mut self, row: TopicRow, at: Monotonic) -> NamedTopic {
        let TopicRow { id, name, counts } = row;
        let name = self.put(id, TopicState::new(name, TopicCounts::default(), Window::complete()));
        self.begin_counts(id, counts, at);
        NamedTopic { id, name }
    }

    /// Puts a topic into its place. It has no items before it is told. Returns the name as the table holds
    /// it: with its namespace's one string.
    pub(super) fn put(&mut self, id: TopicId, mut topic: TopicState) -> TopicName {
        if let Some((namespace, _)) = self.namespaces.get_key_value(&topic.name.namespace) {
            topic.name.namespace = namespace.clone();
        }
        let name = topic.name.clone();
        *self.namespaces.entry(name.namespace.clone()).or_default() += 1;
        self.by_name.insert(name.clone(), id);
        self.by_id.insert(id, Box::new(topic));
        name
    }

    /// A topic that was put into its place has these items.
    pub(super) fn begin_counts(&mut self, id: TopicId, counts: TopicCounts, at: Monotonic) {
        let Some(topic) = self.by_id.get_mut(&id) else { return };
        topic.counts = counts;
        self.sums += counts;
        topic.idle_since = topic.is_empty().then_some(at);
        self.idle.extend(topic.idle_since.map(|since| (since, id)));
    }

    /// A batch dropped the topic, or wrote its counts for the last time. Its dead letters stay.
    pub fn remove(&mut self, id: TopicId) -> Option<NamedTopic> {
        let topic = *self.by_id.remove(&id)?;
        let TopicState { name, counts, window, idle_since, .. } = topic;
        self.index_bytes -= window.cost();
        self.sums -= counts;
        self.dormant_dead += counts.dead;
        self.reading.remove(&id);
        window.size_class().map(|size| self.by_size.remove(&(size, id)));
        if let Some(since) = idle_since {
            self.idle.remove(&(since, id));
        }
        self.by_name.remove(&name);
        if let Some(count) = self.namespaces.get_mut(&name.namespace) {
            *count -= 1;
            if *count == 0 {
                self.namespaces.remove(&name.namespace);
            }
        }
        Some(NamedTopic { id, name })
    }

    /// A topic's counts changed by so much. `at`: when, in case it is empty now. Whatever makes items ready,
    /// or takes ready ones away, marks the topic by itself: a lease and its end do not.
    pub fn count(&mut self, id: TopicId, delta: &TopicCounts, at: Monotonic) {
        let Some(topic) = self.by_id.get_mut(&id) else { return };
        topic.counts += *delta;
        self.sums += *delta;
        debug_assert!(topic.counts.ready >= 0 && topic.counts.scheduled >= 0, "{topic:?}");
        let idle_since = topic.is_empty().then_some(at);
        if let Some(since) = std::mem::replace(&mut topic.idle_since, idle_since) {
            self.idle.remove(&(since, id));
        }
        self.idle.extend(idle_since.map(|since| (since, id)));
    }

    /// The topic that has had no item for longest, of those that nothing needs, and since when.
    pub fn next_unused(&self) -> Option<(Monotonic, TopicId)> {
        self.unused().next()
    }

    /// Topics without items that nothing needs, first those that have been so for longest.
    pub fn unused(&self) -> impl Iterator<Item = (Monotonic, TopicId)> {
        let is_unused = |id| self.get(id).is_some_and(TopicState::is_unused);
        // A dormant topic's tally is folded for the last time, so it has to be there.
        let idle = self.tally_load.is_done().then(|| self.idle.iter()).into_iter().flatten();
        idle.copied().filter(move |(_, id)| is_unused(*id))
    }

    /// The topic's first item may have changed, or the number of its ready ones.
    pub fn mark_changed(&mut self, id: TopicId) {
        if let Some(topic) = self.by_id.get_mut(&id)
            && !topic.changed
        {
            topic.changed = true;
            self.changed.push(id);
        }
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

    /// One of the topics with the greatest windows that have something that memory can do without.
    pub fn largest(&self) -> Option<TopicId> {
        self.by_size.last().map(|(_, id)| *id)
    }

    /// Changes a topic's window, and keeps account of its bytes.
    pub fn with_window<R>(&mut self, id: TopicId, change: impl FnOnce(&mut Window) -> R) -> Option<R> {
        let topic = self.by_id.get_mut(&id)?;
        let (before, size) = (topic.window.cost(), topic.window.size_class());
        let result = change(&mut topic.window);
        self.index_bytes = self.index_bytes + topic.window.cost() - before;
        let new_size = topic.window.size_class();
        if size != new_size {
            size.map(|size| self.by_size.remove(&(size, id)));
            self.by_size.extend(new_size.map(|size| (size, id)));
        }
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
        let after = self.by_id.get_mut(&id)?.window.begin_read(read, limit)?;
        self.reading.insert(id);
        Some(after)
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
            self.reading.remove(&id);
        }
        Some(topic.name.clone())
    }

    /// Voids the reads under way: the last batch, which they may have seen, was undone.
    pub fn void_reads(&mut self) {
        for id in &self.reading {
            if let Some(topic) = self.by_id.get_mut(id) {
                topic.window.void_read();
            }
        }
    }

    /// Whether names and numbers agree, the sums are those of all topics, the topics to be folded are those
    /// that are dirty, in order, and each empty one is listed once. Checked in tests.
    pub fn check(&self) -> Result<(), String> {
        let unnamed = |(id, topic): &(TopicId, &TopicState)| self.id_of(&topic.name) != Some(*id);
        let named: usize = self.namespaces.values().sum();
        let agree = self.by_name.len() == self.len() && named == self.len();
        if !agree || self.iter().any(|topic| unnamed(&topic)) {
            return Err(format!("{} topics have {} names", self.len(), self.by_name.len()));
        }
        let mut sums = TopicCounts::default();
        self.iter().for_each(|(_, topic)| sums += topic.counts);
        if sums != self.sums {
            return Err(format!("topics have {sums:?}, summed up as {:?}", self.sums));
        }
        let empty = self.iter().filter(|(_, topic)| topic.is_empty());
        let idle: BTreeSet<_> = empty.filter_map(|(id, topic)| Some((topic.idle_since?, id))).collect();
        if idle != self.idle || self.iter().any(|(_, topic)| topic.is_empty() != topic.idle_since.is_some()) {
            return Err(format!("{idle:?} are empty, listed are {:?}", self.idle));
        }
        let reading: BTreeSet<_> =
            self.iter().filter(|(_, topic)| topic.window.is_reading()).map(|(id, _)| id).collect();
        if reading != self.reading {
            return Err(format!("{reading:?} are read, listed are {:?}", self.reading));
        }
        let sizes = self.iter().filter_map(|(id, topic)| Some((topic.window.size_class()?, id)));
        if sizes.collect::<BTreeSet<_>>() != self.by_size {
            return Err(format!("windows are listed by wrong sizes: {:?}", self.by_size));
        }
        let since = |id: &TopicId| self.get(*id).and_then(|topic| topic.dirty_since);
        let queued: Vec<u64> = self.dirty.iter().filter_map(since).collect();
        let dirty = self.iter().filter(|(_, topic)| topic.dirty_since.is_some()).count();
        match queued.is_sorted() && queued.len() == dirty {
            true => Ok(()),
            false => Err(format!("{dirty} topics are dirty; the queue has {queued:?}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::shard::tests::{T, ack, at, check::wrong, items, run, shard, store, store_leased};

    #[test]
    fn bytes_of_the_index_that_are_not_those_of_the_windows_are_found() {
        let what = wrong(|shard| shard.contents.topics.index_bytes += 1);
        assert!(what.starts_with("windows hold ") && what.contains("bytes, not"), "{what}");
    }

    #[test]
    fn a_window_changed_behind_the_tables_back_is_found() {
        let what = wrong(|shard| shard.contents.topics.by_id.get_mut(&T).unwrap().window.evict(1));
        assert_eq!(what, "windows hold 320 bytes, not 1280");
    }

    #[test]
    fn a_window_that_is_not_listed_by_its_size_is_found() {
        let what = wrong(|shard| shard.contents.topics.by_size.clear());
        assert_eq!(what, "windows are listed by wrong sizes: {}");
    }

    #[test]
    fn a_topic_that_is_dropped_takes_its_bytes_along() {
        let mut shard = shard();
        store(&mut shard, 0, items(3));
        assert!(shard.contents.topics.index_bytes() > 0);
        assert!(shard.contents.topics.remove(T).is_some() && shard.contents.topics.remove(T).is_none());
        assert_eq!((shard.contents.topics.index_bytes(), shard.contents.topics.by_name.len()), (0, 0));
    }

    #[test]
    fn counts_that_are_not_summed_up_are_found() {
        let what = wrong(|shard| shard.contents.topics.sums.ready += 1);
        assert!(
            what.starts_with("topics have TopicCounts { ready: 11,") && what.contains("ready: 12"),
            "{what}"
        );
    }

    #[test]
    fn an_empty_topic_that_is_not_listed_is_found() {
        let what = wrong(|shard| {
            let empty = TopicRow {
                id: TopicId(9),
                name: TopicName::new("ns", "empty"),
                counts: TopicCounts::default(),
            };
            shard.contents.topics.add_new(empty, at(0));
            shard.contents.topics.idle.clear();
        });
        assert!(what.ends_with("are empty, listed are {}"), "{what}");
    }

    #[test]
    fn a_window_that_is_read_and_not_listed_is_found() {
        let what = wrong(|shard| {
            shard.contents.topics.reading.insert(T);
        });
        assert_eq!(what, "{} are read, listed are {TopicId(1)}");
    }

    #[test]
    fn a_topic_that_empties_again_and_again_is_listed_once() {
        let mut shard = shard();
        for call in 1..=100 {
            let receipt = store_leased(&mut shard, call, items(1))[0];
            ack(&mut shard, receipt);
            run(&mut shard, call);
        }
        assert_eq!(shard.contents.topics.idle.iter().copied().collect::<Vec<_>>(), [(at(100), T)]);
    }

    #[test]
    fn topics_share_the_name_of_their_namespace() {
        let mut table = TopicTable::default();
        for id in 1..=2 {
            let name = TopicName::new("ns", format!("t{id}"));
            table.add_new(TopicRow { id: TopicId(id), name, counts: TopicCounts::default() }, at(0));
        }
        let names: Vec<_> = table.iter().map(|(_, topic)| topic.name.namespace.clone()).collect();
        assert!(Arc::ptr_eq(&names[0], &names[1]));
        (1..=2).for_each(|id| assert!(table.remove(TopicId(id)).is_some()));
        assert!(table.namespaces.is_empty() && table.idle.is_empty());
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
    }
}
