//! The order of active topics. It is kept up to date only where somebody asks, and only a slice of it in one
//! turn: a change just marks its topic.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    ops::Bound,
    time::Duration,
};

use forebay_types::{Monotonic, Namespace, Timestamp, Topic, TopicName};

use super::visits::Visits;
use crate::{
    api::{ActiveTopic, ActiveTopics, ActiveTopicsCall, TopicPosition},
    messages::reply::Reply,
};

/// The order of a namespace for which nobody has asked for so long is forgotten.
const UNUSED_AFTER: Duration = Duration::from_secs(60);

/// A page that is being put together.
pub(crate) struct WaitingPage {
    /// The call.
    pub call: ActiveTopicsCall,
    /// Receives the answer.
    pub reply: Reply<ActiveTopics>,
    /// Until when it waits.
    pub until: Monotonic,
    /// The topics found so far. One more than asked for shows that there are more.
    pub found: Vec<ActiveTopic>,
    /// The order was searched up to here.
    pub searched: Option<TopicPosition>,
}

/// The active topics of one namespace.
#[derive(Debug, Default)]
pub(crate) struct ActiveIndex {
    /// The topics, most urgent first.
    order: BTreeSet<TopicPosition>,
    /// Where each topic is in that order.
    positions: BTreeMap<Topic, (i32, Timestamp)>,
    /// Topics that have to be looked at.
    pub visits: Visits,
    /// When somebody asked last.
    asked_at: Monotonic,
}

impl ActiveIndex {
    /// The topic has this position; `None`: nothing of it is ready.
    pub fn set(&mut self, topic: Topic, position: Option<TopicPosition>) {
        self.visits.is_known(&topic);
        let old = match &position {
            Some(at) => self.positions.insert(topic.clone(), (at.best_priority, at.oldest_ready_at)),
            None => self.positions.remove(&topic),
        };
        if let Some((best_priority, oldest_ready_at)) = old {
            self.order.remove(&TopicPosition { best_priority, oldest_ready_at, topic });
        }
        self.order.extend(position);
    }

    /// The place of a topic in the order, if it is active.
    pub fn position(&self, topic: &Topic) -> Option<(i32, Timestamp)> {
        self.positions.get(topic).copied()
    }

    /// The topics behind a position, most urgent first.
    pub fn after(&self, position: Option<TopicPosition>) -> impl Iterator<Item = &TopicPosition> {
        let from = position.map_or(Bound::Unbounded, Bound::Excluded);
        self.order.range((from, Bound::Unbounded))
    }
}

/// The active topics of every namespace that somebody has asked for.
#[derive(Default)]
pub(crate) struct ActiveIndexes {
    /// By namespace.
    by_namespace: HashMap<Namespace, ActiveIndex>,
    /// Pages that are being put together.
    pages: VecDeque<WaitingPage>,
    /// How many of them each namespace has.
    waiting: HashMap<Namespace, usize>,
    /// Something of a page can be done without waiting for an event.
    is_busy: bool,
    /// When unused orders are looked for.
    forget_at: Monotonic,
}

impl ActiveIndexes {
    /// The topic's head may have changed.
    pub fn mark_stale(&mut self, name: &TopicName) {
        if let Some(index) = self.by_namespace.get_mut(&name.namespace) {
            index.visits.mark(name.topic.clone());
        }
    }

    pub fn get(&self, namespace: &Namespace) -> Option<&ActiveIndex> {
        self.by_namespace.get(namespace)
    }

    /// Takes the order of a namespace to bring it up to date. Without one a new one is begun.
    pub fn take(&mut self, namespace: &Namespace) -> ActiveIndex {
        self.by_namespace.remove(namespace).unwrap_or_default()
    }

    /// Somebody asks for this order at `at`.
    pub fn put(&mut self, namespace: Namespace, mut index: ActiveIndex, at: Monotonic) {
        index.asked_at = at;
        self.by_namespace.insert(namespace, index);
    }

    /// Takes the orders that nobody has asked for lately out. Looks for them now and then.
    pub fn take_unused(&mut self, at: Monotonic) -> Vec<ActiveIndex> {
        if at < self.forget_at {
            return Vec::new();
        }
        self.forget_at = at.plus(UNUSED_AFTER / 2);
        let unused = self.by_namespace.extract_if(|_, index| at.since(index.asked_at) >= UNUSED_AFTER);
        unused.map(|(_, index)| index).collect()
    }

    /// How many pages wait: in all, and of a namespace.
    pub fn pages_waiting(&self, namespace: &Namespace) -> (usize, usize) {
        (self.pages.len(), self.waiting.get(namespace).copied().unwrap_or(0))
    }

    /// A page waits behind the others.
    pub fn push_page(&mut self, page: WaitingPage) {
        *self.waiting.entry(page.call.namespace.clone()).or_default() += 1;
        self.pages.push_back(page);
    }

    /// Takes the page that has waited longest for its turn.
    pub fn pop_page(&mut self) -> Option<WaitingPage> {
        let page = self.pages.pop_front()?;
        let namespace = &page.call.namespace;
        if let Some(count) = self.waiting.get_mut(namespace) {
            *count -= 1;
            if *count == 0 {
                self.waiting.remove(namespace);
            }
        }
        Some(page)
    }

    /// How many pages wait.
    pub fn len(&self) -> usize {
        self.pages.len()
    }

    /// Something of a page can be done in the next turn, or not before the next event.
    pub fn set_busy(&mut self, busy: bool) {
        self.is_busy = busy;
    }

    /// Something of a page can be done without waiting for an event.
    pub fn is_busy(&self) -> bool {
        self.is_busy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Monotonic {
        Monotonic::from_start(Duration::from_secs(seconds))
    }

    fn position(topic: &str, best_priority: i32) -> TopicPosition {
        TopicPosition { best_priority, oldest_ready_at: Timestamp::MIN, topic: topic.into() }
    }

    #[test]
    fn a_topic_has_one_position() {
        let mut index = ActiveIndex::default();
        index.set("a".into(), Some(position("a", 2)));
        index.set("b".into(), Some(position("b", 1)));
        index.set("a".into(), Some(position("a", 0)));
        assert_eq!(index.after(None).collect::<Vec<_>>(), [&position("a", 0), &position("b", 1)]);
        assert_eq!(index.after(Some(position("a", 0))).count(), 1);
        index.set("a".into(), None);
        assert_eq!((index.after(None).count(), index.positions.len()), (1, 1));
    }

    #[test]
    fn an_order_that_nobody_asks_for_is_forgotten() {
        let mut indexes = ActiveIndexes::default();
        indexes.put("a".into(), ActiveIndex::default(), at(0));
        indexes.put("b".into(), ActiveIndex::default(), at(50));
        assert_eq!(indexes.take_unused(at(59)).len(), 0);
        assert_eq!(indexes.take_unused(at(60)).len(), 0, "it is not looked for in each turn");
        assert_eq!(indexes.take_unused(at(89)).len(), 1);
        assert!(indexes.get(&"a".into()).is_none() && indexes.get(&"b".into()).is_some());
    }
}
