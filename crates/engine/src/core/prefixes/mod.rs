//! The prefixes by which consumers ask for topics, as long as somebody does: which of their topics have ready
//! items in this node's shards. A change only marks its topic; the event loop looks at the marked ones in
//! slices.

mod order;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use forebay_types::{Monotonic, Namespace, Reason, Refusal, Topic, TopicName};

pub(crate) use self::order::{PrefixOrder, ReadyTopic, Turn};
use crate::{
    api::RETRY_AFTER,
    core::topic_turns::TopicTurns,
    messages::tenant_budget::TenantBudget,
    planted::{Bug, on},
};

/// Prefixes of one namespace.
const PER_NAMESPACE_MAX: usize = 64;
/// Prefixes of all namespaces.
const PREFIXES_MAX: usize = 1_000;
/// Topics that all orders may hold, each as often as it is in one: some 200 bytes each.
const TOPICS_MAX: usize = 1 << 19;
/// A namespace may have one in this many of them.
const TENANT_PART: usize = 4;
/// A payer, with any number of namespaces, may have one in this many.
const PAYER_PART: usize = 2;
/// A prefix for which nobody has asked for so long is forgotten.
const UNUSED_AFTER: Duration = Duration::from_secs(60);

/// The prefixes. Their names end in `*`.
#[derive(Debug)]
pub(crate) struct Prefixes {
    /// The order of each.
    orders: BTreeMap<TopicName, PrefixOrder>,
    /// The prefixes of each namespace that has some.
    of_namespaces: HashMap<Namespace, OfNamespace>,
    /// Places for prefixes.
    places: Arc<TenantBudget>,
    /// Topics in all orders.
    topics: usize,
    /// Topics in the orders of each payer that has some.
    of_payers: HashMap<Arc<str>, usize>,
    /// Prefixes with topics that have to be looked at.
    stale: TopicTurns,
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

impl Default for Prefixes {
    fn default() -> Self {
        Self {
            orders: BTreeMap::new(),
            of_namespaces: HashMap::new(),
            places: TenantBudget::new(PREFIXES_MAX),
            topics: 0,
            of_payers: HashMap::new(),
            stale: TopicTurns::default(),
            forget_at: Monotonic::default(),
        }
    }
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
            false => match self.places.take(&name.namespace, 1) {
                Ok(place) => {
                    self.of_namespaces.entry(name.namespace.clone()).or_default().names.push(name.clone());
                    self.orders.insert(name.clone(), PrefixOrder::asked(at, place));
                    self.stale.insert(name.clone(), ());
                    return Ok(());
                }
                Err(_) => String::new(),
            },
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
            mark(orders, stale, prefix, name.topic.clone());
        }
    }

    /// A topic of one prefix is to be looked at.
    pub fn mark(&mut self, prefix: &TopicName, topic: Topic) {
        mark(&mut self.orders, &mut self.stale, prefix, topic);
    }

    /// Something of a prefix is to be looked at in the next turn.
    pub fn set_stale(&mut self, name: &TopicName) {
        if self.orders.contains_key(name) {
            self.stale.insert(name.clone(), ());
        }
    }

    /// Some prefix has topics to be looked at.
    pub fn has_stale(&self) -> bool {
        !self.stale.is_empty()
    }

    /// Takes the next of them, in turn by tenant.
    pub fn next_stale(&mut self) -> Option<TopicName> {
        self.stale.next().map(|(name, ())| name)
    }

    /// All topics of a namespace's prefixes are looked at anew: what is set for many of them has changed.
    pub fn begin_anew(&mut self, namespace: &Namespace) {
        let Some(of_namespace) = self.of_namespaces.get(namespace) else { return };
        for name in &of_namespace.names {
            if let Some(order) = self.orders.get_mut(name) {
                order.visits.begin_anew();
                self.stale.insert(name.clone(), ());
            }
        }
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
        let Self { orders, of_namespaces, topics, of_payers, .. } = self;
        let (Some(order), Some(of_namespace)) =
            (orders.get_mut(name), of_namespaces.get_mut(&name.namespace))
        else {
            return;
        };
        let of_payer = order.payer().map(|payer| of_payers.entry(payer.clone()).or_default());
        let mut used = [Some(topics), Some(&mut of_namespace.topics), of_payer];
        if ready.is_some() && !has_room(&used, 1) && !order.has(topic) {
            order.is_cut = true;
            return;
        }
        let before = order.len();
        order.set(topic, ready);
        used.iter_mut().flatten().for_each(|used| **used = **used + order.len() - before);
        // Half of the room is free again: those left out have their turn.
        let is_half_free = has_room(&used, 2);
        if order.is_cut && (is_half_free || order.len() == 0) {
            order.is_cut = false;
            order.visits.begin_anew();
            self.stale.insert(name.clone(), ());
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
            if let Some(payer) = order.payer()
                && let Some(of_payer) = self.of_payers.get_mut(payer)
            {
                *of_payer -= order.len();
                if *of_payer == 0 {
                    self.of_payers.remove(payer);
                }
            }
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

/// A topic of one prefix is to be looked at.
fn mark(
    orders: &mut BTreeMap<TopicName, PrefixOrder>,
    stale: &mut TopicTurns,
    prefix: &TopicName,
    topic: Topic,
) {
    if let Some(order) = orders.get_mut(prefix) {
        order.visits.mark(topic);
        stale.insert(prefix.clone(), ());
    }
}

/// Whether one part in so many of the room for topics is left: of all, for the namespace and for the payer.
fn has_room(used: &[Option<&mut usize>; 3], part: usize) -> bool {
    let most = [1, TENANT_PART, PAYER_PART].map(|of| TOPICS_MAX / of / part);
    used.iter().zip(most).all(|(used, most)| used.as_ref().is_none_or(|used| **used < most))
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
    use crate::messages::tenant_budget::paid_at_once_by;

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
    fn who_pays_in_many_namespaces_leaves_places_and_room_to_others() {
        let mut prefixes = Prefixes::default();
        let mut ask = |payer: &str, id: usize| {
            let name = name(&format!("{payer}{id}"), "*");
            paid_at_once_by(Some(payer.into()), || prefixes.ask(&name, at(0))).is_ok()
        };
        let places = (0..PREFIXES_MAX).take_while(|id| ask("greedy", *id)).count();
        assert!(places < PREFIXES_MAX && ask("other", 1), "{places}");
        let ready = Some(ReadyTopic { priority: 0, ready: 1, weight: 1 });
        let of = |namespace: usize| name(&format!("greedy{namespace}"), "*");
        let topic = |id: usize| Topic::from(format!("{id}"));
        let most = TOPICS_MAX / TENANT_PART;
        for namespace in 0..3 {
            (0..most).for_each(|id| prefixes.set(&of(namespace), &topic(id), ready));
        }
        let topics = [0, 1, 2].map(|namespace| prefixes.get(&of(namespace)).unwrap().len());
        assert_eq!(topics, [most, TOPICS_MAX / PAYER_PART - most, 0]);
        prefixes.set(&name("other1", "*"), &topic(0), ready);
        assert_eq!(prefixes.get(&name("other1", "*")).unwrap().len(), 1);
        prefixes.take_unused(at(60), |_| false);
        assert!(prefixes.of_payers.is_empty() && prefixes.places.used() == 0);
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
