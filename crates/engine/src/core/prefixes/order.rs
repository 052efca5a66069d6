//! The topics of one prefix that have ready items: best priority first; those of one priority take turns.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use forebay_types::{Monotonic, Topic};

use crate::{
    core::visits::Visits,
    messages::tenant_budget::Charge,
    planted::{Bug, on},
};

/// Topics of a prefix that have to be looked at, and as many whose heads have to be read, are remembered by
/// name.
const VISITS_MAX: usize = 4_096;

/// The active topics of a prefix in this node's shards.
#[derive(Debug, Default)]
pub(crate) struct PrefixOrder {
    /// The topics, by priority and turn.
    turns: BTreeMap<(i32, u64), Topic>,
    /// Where each of them is.
    places: HashMap<Topic, Place>,
    /// By priority: the items of one round, in which each topic has its turn.
    rounds: BTreeMap<i32, u64>,
    /// About how many items are ready.
    ready: u64,
    /// Numbers the turns.
    next_turn: u64,
    /// Topics that have to be looked at.
    pub visits: Visits,
    /// There was no room for some topics.
    pub is_cut: bool,
    /// When somebody asked last.
    pub asked_at: Monotonic,
    /// Its place among the prefixes.
    place: Option<Charge>,
}

/// The ready items of a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReadyTopic {
    /// The priority of the best of them.
    pub priority: i32,
    /// About how many there are.
    pub ready: u64,
    /// How many of them one turn hands out.
    pub weight: u32,
}

/// Where a topic is in the order.
#[derive(Debug)]
struct Place {
    topic: ReadyTopic,
    /// Its turn.
    turn: u64,
    /// Items that are left of it.
    left: u32,
}

/// The topic whose turn it is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    /// The topic.
    pub topic: Topic,
    /// The priority of its best item.
    pub priority: i32,
    /// Items that it may hand out. `None`: it is the only one of its priority.
    pub items: Option<usize>,
    /// About how many it has.
    pub ready: u64,
}

impl PrefixOrder {
    /// Nothing is known yet. Somebody asks for it, and pays for its place.
    pub fn asked(at: Monotonic, place: Charge) -> Self {
        Self { asked_at: at, visits: Visits::bounded(VISITS_MAX), place: Some(place), ..Self::default() }
    }

    /// The payer of its place. `None`: the namespace.
    pub fn payer(&self) -> Option<&Arc<str>> {
        self.place.as_ref()?.payer()
    }

    /// How many topics have ready items.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// About how many items are ready.
    pub fn ready(&self) -> u64 {
        self.ready
    }

    /// The best priority, and the items of a round of its topics.
    pub fn best(&self) -> Option<(i32, u64)> {
        self.rounds.first_key_value().map(|(priority, items)| (*priority, *items))
    }

    /// A topic is among them.
    pub fn has(&self, topic: &Topic) -> bool {
        self.places.contains_key(topic)
    }

    /// The ready items of a topic are these; `None`: there are none. One that had none before, or others of
    /// another priority, is the last of its priority.
    pub fn set(&mut self, topic: &Topic, ready: Option<ReadyTopic>) {
        if let (Some(place), Some(now)) = (self.places.get_mut(topic), ready)
            && (place.topic.priority, place.topic.weight) == (now.priority, now.weight)
        {
            self.ready = self.ready - place.topic.ready + now.ready;
            place.topic = now;
            return;
        }
        let before = self.places.remove(topic);
        if let Some(Place { topic: before, turn, .. }) = &before {
            self.turns.remove(&(before.priority, *turn));
            self.ready -= before.ready;
            if let Some(items) = self.rounds.get_mut(&before.priority) {
                *items -= u64::from(before.weight);
                if *items == 0 {
                    self.rounds.remove(&before.priority);
                }
            }
        }
        let Some(ready) = ready else { return };
        let same = before.filter(|before| before.topic.priority == ready.priority);
        let (turn, left) = match same {
            Some(before) => (before.turn, before.left.min(ready.weight)),
            None => (self.take_turn(), ready.weight),
        };
        self.turns.insert((ready.priority, turn), topic.clone());
        self.ready += ready.ready;
        *self.rounds.entry(ready.priority).or_default() += u64::from(ready.weight);
        self.places.insert(topic.clone(), Place { topic: ready, turn, left });
    }

    fn take_turn(&mut self) -> u64 {
        self.next_turn += 1;
        self.next_turn
    }

    /// The topic whose turn it is.
    pub fn next(&self) -> Option<Turn> {
        let first = || self.turns.first_key_value();
        let ((priority, _), topic) =
            if on(Bug::PrefixTurned) { self.turns.last_key_value() } else { first() }?;
        let place = self.places.get(topic)?;
        let others = self.turns.range((*priority, 0)..=(*priority, u64::MAX)).nth(1);
        let items = others.map(|_| place.left as usize);
        Some(Turn { topic: topic.clone(), priority: *priority, items, ready: place.topic.ready })
    }

    /// A topic has handed out so many items. Once it had its turn, it is the last of its priority.
    pub fn took(&mut self, topic: &Topic, items: usize) {
        let turn = self.take_turn();
        let Some(place) = self.places.get_mut(topic) else { return };
        place.left = place.left.saturating_sub(u32::try_from(items).unwrap_or(u32::MAX));
        if place.left == 0 {
            place.left = place.topic.weight;
            let before = std::mem::replace(&mut place.turn, turn);
            self.turns.remove(&(place.topic.priority, before));
            self.turns.insert((place.topic.priority, turn), topic.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready(priority: i32, weight: u32) -> Option<ReadyTopic> {
        Some(ReadyTopic { priority, ready: 10, weight })
    }

    /// The topics of the next turns, of which each hands out what it may.
    fn next(order: &mut PrefixOrder, turns: usize) -> Vec<(String, Option<usize>)> {
        let take = |_| {
            let Turn { topic, items, .. } = order.next().unwrap();
            order.took(&topic, items.unwrap_or(1));
            (topic.to_string(), items)
        };
        (0..turns).map(take).collect()
    }

    #[test]
    fn topics_of_one_priority_take_turns_by_weight() {
        let mut order = PrefixOrder::default();
        for (topic, weight) in [("a", 1), ("b", 3), ("c", 1)] {
            order.set(&topic.into(), ready(5, weight));
        }
        assert_eq!((order.best(), order.ready(), order.len()), (Some((5, 5)), 30, 3));
        let turn = |topic: &str, items| (topic.to_owned(), Some(items));
        let round = [turn("a", 1), turn("b", 3), turn("c", 1)];
        assert_eq!(next(&mut order, 6), [round.clone(), round].concat());
        // A poll that does not take all of a turn leaves the rest to the next one.
        order.took(&"a".into(), 1);
        order.took(&"b".into(), 2);
        assert_eq!(next(&mut order, 3), [turn("b", 1), turn("c", 1), turn("a", 1)]);
    }

    #[test]
    fn a_better_priority_goes_first_and_what_becomes_ready_last() {
        let mut order = PrefixOrder::default();
        order.set(&"a".into(), ready(5, 1));
        order.set(&"b".into(), ready(1, 1));
        assert_eq!(next(&mut order, 2), [("b".to_owned(), None), ("b".to_owned(), None)]);
        order.set(&"c".into(), ready(5, 1));
        order.set(&"b".into(), ready(5, 1));
        let names = |order: &mut PrefixOrder, turns| -> String {
            next(order, turns).into_iter().map(|(topic, _)| topic).collect()
        };
        assert_eq!(names(&mut order, 4), "acba");
        // It keeps its turn while its priority is the same.
        order.set(&"c".into(), ready(5, 1));
        order.set(&"b".into(), None);
        assert_eq!(names(&mut order, 3), "cac");
        assert_eq!((order.best(), order.ready(), order.len()), (Some((5, 2)), 20, 2));
        ["a", "c"].into_iter().for_each(|topic| order.set(&topic.into(), None));
        assert_eq!((order.best(), order.next(), order.ready(), order.len()), (None, None, 0, 0));
    }
}
