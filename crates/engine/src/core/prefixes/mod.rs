//! The prefixes by which consumers ask for topics, as long as somebody does: which of their topics have ready
//! items in this node's shards. A change only marks its topic; the event loop looks at the marked ones in
//! slices.

mod order;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::Bound,
    time::Duration,
};

use forebay_types::{Monotonic, Namespace, Reason, Refusal, Topic, TopicName};

pub(crate) use self::order::{PrefixOrder, ReadyTopic};
use crate::{
    api::RETRY_AFTER,
    planted::{Bug, on},
};

/// Prefixes of one namespace.
const PER_NAMESPACE_MAX: usize = 64;
/// Prefixes of all namespaces.
const PREFIXES_MAX: usize = 1_000;
/// Topics that all orders may hold, each as often as it is in one: some 200 bytes each.
const TOPICS_MAX: usize = 1 << 19;
/// The part of them that one namespace may have is one in this many.
const TENANT_PART: usize = 4;
/// A prefix for which nobody has asked for so long is forgotten.
const UNUSED_AFTER: Duration = Duration::from_secs(60);

/// The prefixes. Their names end in `*`.
#[derive(Debug, Default)]
pub(crate) struct Prefixes {
    /// The order of each.
    orders: BTreeMap<TopicName, PrefixOrder>,
    /// The prefixes of each namespace that has some.
    of_namespaces: HashMap<Namespace, OfNamespace>,
    /// Topics in all orders.
    topics: usize,
    /// Prefixes with topics that have to be looked at.
    stale: BTreeSet<TopicName>,
    /// The one that was looked at last.
    looked_at: Option<TopicName>,
    /// When unused ones are looked for.
    forget_at: Monotonic,
}

/// The prefixes of a namespace.
#[derive(Debug, Default)]
struct OfNamespace {
    /// Their names.
    names: Vec<TopicName>,
    /// Topics in their orders.
    topics: usize,
}

impl Prefixes {
    /// Somebody asks for items of a prefix. Refused if too many others are kept.
    pub fn ask(&mut self, name: &TopicName, at: Monotonic) -> Result<(), Refusal> {
        if let Some(order) = self.orders.get_mut(name) {
            order.asked_at = at;
            return Ok(());
        }
        let of_namespace = self.of_namespaces.get(&name.namespace).map_or(0, |of| of.names.len());
        let whose = match of_namespace >= PER_NAMESPACE_MAX {
            true => format!("of namespace {} ", name.namespace),
            false if self.orders.len() >= PREFIXES_MAX => String::new(),
            false => {
                self.of_namespaces.entry(name.namespace.clone()).or_default().names.push(name.clone());
                self.orders.insert(name.clone(), PrefixOrder::asked(at));
                self.stale.insert(name.clone());
                return Ok(());
            }
        };
        metrics::counter!("forebay_limit_refusals_total", "limit" => "prefixes").increment(1);
        let seconds = UNUSED_AFTER.as_secs();
        let message = format!(
            "no more prefixes {whose}can be polled at this node; one is free {seconds} s after its last poll"
        );
        Err(Refusal::new(Reason::Overloaded, message).retry_after(RETRY_AFTER))
    }

    /// The prefixes that cover a topic.
    pub fn covering(&self, name: &TopicName) -> impl Iterator<Item = &TopicName> {
        covering(&self.of_namespaces, name)
    }

    /// The prefixes of a namespace.
    pub fn of_namespace(&self, namespace: &Namespace) -> &[TopicName] {
        self.of_namespaces.get(namespace).map_or(&[], |of| &of.names)
    }

    /// The first item of a topic may have changed, or the number of its items.
    pub fn mark_stale(&mut self, name: &TopicName) {
        if on(Bug::PrefixNotMarked) {
            return;
        }
        let Self { orders, of_namespaces, stale, .. } = self;
        for prefix in covering(of_namespaces, name) {
            if let Some(order) = orders.get_mut(prefix) {
                order.visits.mark(name.topic.clone());
                stale.insert(prefix.clone());
            }
        }
    }

    /// Something of a prefix is to be looked at in the next turn.
    pub fn set_stale(&mut self, name: &TopicName) {
        if self.orders.contains_key(name) {
            self.stale.insert(name.clone());
        }
    }

    /// How many prefixes have topics to be looked at.
    pub fn stale_count(&self) -> usize {
        self.stale.len()
    }

    /// Takes the next of them, in turn by name.
    pub fn next_stale(&mut self) -> Option<TopicName> {
        let from = self.looked_at.take().map_or(Bound::Unbounded, Bound::Excluded);
        let behind = self.stale.range::<TopicName, _>((from, Bound::Unbounded)).next();
        let next = behind.or_else(|| self.stale.first())?.clone();
        self.stale.remove(&next);
        self.looked_at = Some(next.clone());
        Some(next)
    }

    /// The order of a prefix.
    pub fn get(&self, name: &TopicName) -> Option<&PrefixOrder> {
        self.orders.get(name)
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, name: &TopicName) -> Option<&mut PrefixOrder> {
        self.orders.get_mut(name)
    }

    /// The ready items of a topic are these, if there is room for it.
    pub fn set(&mut self, name: &TopicName, topic: &Topic, ready: Option<ReadyTopic>) {
        let Self { orders, of_namespaces, topics, .. } = self;
        let (Some(order), Some(of_namespace)) =
            (orders.get_mut(name), of_namespaces.get_mut(&name.namespace))
        else {
            return;
        };
        let has_room = |all: usize, mine: usize, part: usize| {
            all < TOPICS_MAX / part && mine < TOPICS_MAX / TENANT_PART / part
        };
        if ready.is_some() && !order.has(topic) && !has_room(*topics, of_namespace.topics, 1) {
            order.is_cut = true;
            return;
        }
        let before = order.len();
        order.set(topic, ready);
        *topics = *topics + order.len() - before;
        of_namespace.topics = of_namespace.topics + order.len() - before;
        // Half of the room is free again: those left out have their turn.
        let is_half_free = has_room(*topics, of_namespace.topics, 2);
        if order.is_cut && (is_half_free || order.len() == 0) {
            order.is_cut = false;
            order.visits.begin_anew();
            self.stale.insert(name.clone());
        }
    }

    /// Forgets prefixes that nobody has asked for lately. `is_used`: whether somebody waits for one. Looks
    /// for them now and then. Returns their orders: to let go of many topics takes time.
    pub fn take_unused(&mut self, at: Monotonic, is_used: impl Fn(&TopicName) -> bool) -> Vec<PrefixOrder> {
        if self.orders.is_empty() || at < self.forget_at {
            return Vec::new();
        }
        self.forget_at = at.plus(UNUSED_AFTER / 4);
        let is_unused = |name: &TopicName, order: &mut PrefixOrder| {
            if is_used(name) {
                order.asked_at = at;
            }
            at.since(order.asked_at) >= UNUSED_AFTER
        };
        let mut gone = Vec::new();
        for (name, order) in self.orders.extract_if(.., is_unused) {
            self.stale.remove(&name);
            self.topics -= order.len();
            if let Some(of_namespace) = self.of_namespaces.get_mut(&name.namespace) {
                of_namespace.names.retain(|other| *other != name);
                of_namespace.topics -= order.len();
                if of_namespace.names.is_empty() {
                    self.of_namespaces.remove(&name.namespace);
                }
            }
            gone.push(order);
        }
        gone
    }
}

/// The prefixes that cover a topic. Mostly there are none at all.
fn covering<'a>(
    of_namespaces: &'a HashMap<Namespace, OfNamespace>,
    name: &TopicName,
) -> impl Iterator<Item = &'a TopicName> {
    let of_namespace = of_namespaces.get(&name.namespace);
    of_namespace.into_iter().flat_map(|of| &of.names).filter(|prefix| prefix.covers(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(namespace: &str, topic: &str) -> TopicName {
        TopicName::new(namespace, topic)
    }

    fn at(seconds: u64) -> Monotonic {
        Monotonic::from_start(Duration::from_secs(seconds))
    }

    #[test]
    fn a_change_marks_the_prefixes_that_cover_its_topic() {
        let mut prefixes = Prefixes::default();
        for prefix in ["a/*", "a/b*", "*"] {
            prefixes.ask(&name("ns", prefix), at(0)).unwrap();
        }
        prefixes.ask(&name("other", "*"), at(0)).unwrap();
        while let Some(prefix) = prefixes.next_stale() {
            prefixes.get_mut(&prefix).unwrap().visits.take_in(vec![], true);
        }
        prefixes.mark_stale(&name("ns", "a/c"));
        let marked: Vec<_> = std::iter::from_fn(|| prefixes.next_stale()).collect();
        assert_eq!(marked, [name("ns", "*"), name("ns", "a/*")]);
        let covering: Vec<_> = prefixes.covering(&name("ns", "a/bc")).cloned().collect();
        assert_eq!(covering, [name("ns", "a/*"), name("ns", "a/b*"), name("ns", "*")]);
    }

    #[test]
    fn a_namespace_has_so_many_prefixes_and_no_more() {
        let mut prefixes = Prefixes::default();
        for id in 0..PER_NAMESPACE_MAX {
            prefixes.ask(&name("ns", &format!("{id}*")), at(0)).unwrap();
        }
        let refusal = prefixes.ask(&name("ns", "a*"), at(0)).unwrap_err();
        assert_eq!(refusal.reason, Reason::Overloaded);
        assert!(refusal.message.contains("of namespace ns"), "{}", refusal.message);
        prefixes.ask(&name("ns", "0*"), at(30)).unwrap();
        prefixes.ask(&name("other", "a*"), at(0)).unwrap();
        let unused = prefixes.take_unused(at(60), |used| *used == name("ns", "1*"));
        assert_eq!(
            unused.len(),
            PER_NAMESPACE_MAX - 2 + 1,
            "all but the used one, and that asked for lately"
        );
        prefixes.ask(&name("ns", "a*"), at(60)).unwrap();
        assert_eq!(prefixes.of_namespace(&"ns".into()).len(), 3);
    }

    #[test]
    fn the_node_has_so_many_prefixes_and_no_more() {
        let mut prefixes = Prefixes::default();
        for id in 0..PREFIXES_MAX {
            prefixes.ask(&name(&format!("ns{}", id % 100), &format!("{id}*")), at(0)).unwrap();
        }
        assert_eq!(prefixes.ask(&name("ns", "a*"), at(0)).unwrap_err().reason, Reason::Overloaded);
        prefixes.ask(&name("ns0", "0*"), at(0)).unwrap();
    }

    #[test]
    fn topics_that_had_no_room_have_their_turn_once_there_is_some() {
        let (mut prefixes, all) = (Prefixes::default(), name("ns", "*"));
        prefixes.ask(&all, at(0)).unwrap();
        let ready = Some(ReadyTopic { priority: 0, ready: 1, weight: 1 });
        let topic = |id: usize| Topic::from(format!("{id}"));
        let most = TOPICS_MAX / TENANT_PART;
        (0..=most).for_each(|id| prefixes.set(&all, &topic(id), ready));
        assert_eq!(prefixes.get(&all).unwrap().len(), most);
        prefixes.get_mut(&all).unwrap().visits.take_in(vec![], true);
        (0..most / 2).for_each(|id| prefixes.set(&all, &topic(id), None));
        assert!(!prefixes.get(&all).unwrap().visits.has_stale());
        prefixes.set(&all, &topic(most / 2), None);
        assert!(prefixes.get(&all).unwrap().visits.has_stale(), "all are looked at again");
    }
}
