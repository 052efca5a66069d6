//! Metrics of namespaces and topics. Names come from callers, so the number of namespaces and topics with
//! series of their own is limited: the first ones have them, and keep them. Series that come and go are worse
//! than none.

use std::{
    collections::{HashMap, hash_map::Entry},
    time::Duration,
};

use forebay_types::{Namespace, Topic, TopicName};
use metrics::{Counter, Histogram, Label, counter, histogram};

use super::fates::{Fate, Fates};
use crate::{
    api::{OwnMetrics, ReportedNamespaces, ReportedTopics},
    shard::Flow,
};

/// Counters by namespace, in the order of a [`Flow`]. Dead letters have a cause there: see [`Fates`].
const OF_NAMESPACE: [&str; 4] = [
    "forebay_enqueued_total",
    "forebay_delivered_total",
    "forebay_acked_total",
    "forebay_failed_deliveries_total",
];
/// Counters by topic, in the same order.
const OF_TOPIC: [&str; 5] = [
    "forebay_topic_enqueued_total",
    "forebay_topic_delivered_total",
    "forebay_topic_acked_total",
    "forebay_topic_failed_total",
    "forebay_topic_dead_lettered_total",
];

/// The metrics of a namespace.
struct OfNamespace {
    /// Its flow: items and deliveries, as [`OF_NAMESPACE`] lists them.
    counters: [Counter; 4],
    /// Other fates of items and deliveries.
    fates: Fates,
    /// How long items have been ready when they are delivered.
    wait: Histogram,
    /// How long deliveries have lasted when they are acked.
    handling: Histogram,
}

/// The metrics of a topic.
struct OfTopic {
    /// Its flow: items and deliveries, as [`OF_TOPIC`] lists them.
    counters: [Counter; 5],
    /// How long items have been ready when they are delivered.
    wait: Histogram,
}

impl OfTopic {
    fn new(name: &TopicName) -> Self {
        let label = |label, name: &str| Label::new(label, name.to_owned());
        let labels = vec![label("namespace", &name.namespace), label("topic", &name.topic)];
        Self {
            counters: counters(&OF_TOPIC, &labels),
            wait: histogram!("forebay_topic_delivery_wait_seconds", labels),
        }
    }
}

impl OfNamespace {
    fn new(name: &str) -> Self {
        let label = Label::new("namespace", name.to_owned());
        let labels = vec![label.clone()];
        Self {
            counters: counters(&OF_NAMESPACE, &labels),
            fates: Fates::new(&label),
            wait: histogram!("forebay_delivery_wait_seconds", labels.clone()),
            handling: histogram!("forebay_handling_seconds", labels),
        }
    }
}

/// Figures of what happens.
pub(crate) struct Traffic {
    /// Which topics have series.
    topics_wanted: ReportedTopics,
    /// Of namespaces.
    namespaces: HashMap<Namespace, OfNamespace>,
    /// Their names, for those who count beside the engine.
    names: ReportedNamespaces,
    /// Of all namespaces that have none of their own.
    others: OfNamespace,
    /// Of topics.
    topics: HashMap<TopicName, OfTopic>,
    /// How long dequeue calls have waited for their answers.
    poll_wait: Histogram,
}

impl Traffic {
    /// Nothing has happened yet.
    pub fn new(topics_wanted: ReportedTopics) -> Self {
        let (others, names) = (OfNamespace::new(OwnMetrics::OTHERS), ReportedNamespaces::default());
        let poll_wait = histogram!("forebay_poll_wait_seconds");
        Self { topics_wanted, namespaces: HashMap::new(), names, others, topics: HashMap::new(), poll_wait }
    }

    /// The namespaces that have series of their own.
    pub fn names(&self) -> &ReportedNamespaces {
        &self.names
    }

    /// Something happened in a topic.
    pub fn count(&mut self, name: &TopicName, flow: Flow) {
        match self.namespace(&name.namespace) {
            Some(of_namespace) => add(&of_namespace.counters, flow),
            None => add(&self.others.counters, flow),
        }
        if let Some(of_topic) = self.topic(name) {
            add(&of_topic.counters, flow);
        }
    }

    /// Counts a fate of items or deliveries of a namespace.
    pub fn became(&mut self, namespace: &Namespace, fate: Fate, count: u64) {
        match self.namespace(namespace) {
            Some(of_namespace) => of_namespace.fates.count(fate, count),
            None => self.others.fates.count(fate, count),
        }
    }

    /// Items of a namespace are delivered: of these topics, and ready for so long.
    pub fn delivered(&self, namespace: &Namespace, waits: &[(Topic, Duration)]) {
        let of_namespace = self.of(namespace);
        for of_one in waits.chunk_by(|(one, _), (other, _)| one == other) {
            let name = of_one.first().map(|(topic, _)| TopicName::new(namespace.clone(), topic.clone()));
            let of_topic = name.and_then(|name| self.topics.get(&name));
            for (_, wait) in of_one {
                of_namespace.wait.record(*wait);
                of_topic.into_iter().for_each(|of_topic| of_topic.wait.record(*wait));
            }
        }
    }

    /// Deliveries are acked that have lasted for so long.
    pub fn handled(&self, namespace: &Namespace, lengths: impl Iterator<Item = Duration>) {
        let of_namespace = self.of(namespace);
        lengths.for_each(|lasted| of_namespace.handling.record(lasted));
    }

    /// A dequeue call is answered that has waited for so long.
    pub fn poll_waited(&self, wait: Duration) {
        self.poll_wait.record(wait);
    }

    fn of(&self, namespace: &Namespace) -> &OfNamespace {
        self.namespaces.get(namespace).unwrap_or(&self.others)
    }

    /// Whether a namespace and a topic have series of their own. They get them now if there is room.
    pub fn reported(&mut self, name: &TopicName) -> OwnMetrics {
        let namespace = self.namespace(&name.namespace).is_some();
        OwnMetrics { namespace, topic: self.topic(name).is_some() }
    }

    /// The metrics of a namespace. `None`: there is no room for it.
    fn namespace(&mut self, name: &Namespace) -> Option<&OfNamespace> {
        let has_room = self.namespaces.len() < OwnMetrics::NAMESPACES_MAX;
        match self.namespaces.entry(name.clone()) {
            Entry::Occupied(known) => Some(known.into_mut()),
            Entry::Vacant(vacant) => has_room.then(|| {
                self.names.add(name.clone());
                &*vacant.insert(OfNamespace::new(name))
            }),
        }
    }

    /// The metrics of a topic. `None`: there is no room for it, or it is not wanted.
    fn topic(&mut self, name: &TopicName) -> Option<&OfTopic> {
        let Self { topics_wanted, topics, .. } = self;
        let has_room = topics.len() < topics_wanted.most;
        match topics.entry(name.clone()) {
            Entry::Occupied(known) => Some(known.into_mut()),
            Entry::Vacant(vacant) => {
                (has_room && topics_wanted.has(name)).then(|| &*vacant.insert(OfTopic::new(name)))
            }
        }
    }
}

/// Counters that begin at 0 together: one that is born at 3 has no increase.
fn counters<const N: usize>(names: &[&'static str; N], labels: &[Label]) -> [Counter; N] {
    names.map(|name| {
        let counter = counter!(name, labels.to_vec());
        counter.increment(0);
        counter
    })
}

fn add(counters: &[Counter], flow: Flow) {
    for (counter, count) in counters.iter().zip(flow) {
        counter.increment(count.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(traffic: &mut Traffic, namespace: &str, topic: &str) -> (bool, bool) {
        let OwnMetrics { namespace, topic } = traffic.reported(&TopicName::new(namespace, topic));
        (namespace, topic)
    }

    #[test]
    fn the_first_topics_that_are_wanted_have_series() {
        let patterns = vec!["shop/orders.*".to_owned(), "mail/out".to_owned()];
        let mut traffic = Traffic::new(ReportedTopics { patterns, most: 2 });
        assert_eq!(reported(&mut traffic, "shop", "other"), (true, false));
        assert_eq!(reported(&mut traffic, "shop", "orders.new"), (true, true));
        assert_eq!(reported(&mut traffic, "mail", "out.more"), (true, false));
        assert_eq!(reported(&mut traffic, "mail", "out"), (true, true));
        assert_eq!(reported(&mut traffic, "shop", "orders.old"), (true, false), "there is no more room");
        assert_eq!(reported(&mut traffic, "shop", "orders.new"), (true, true), "the first ones keep them");
    }

    #[test]
    fn the_first_namespaces_have_series() {
        let mut traffic = Traffic::new(ReportedTopics { patterns: Vec::new(), most: 10 });
        for number in 0..OwnMetrics::NAMESPACES_MAX {
            assert_eq!(reported(&mut traffic, &format!("n{number}"), "t"), (true, false));
        }
        assert_eq!(reported(&mut traffic, "late", "t"), (false, false));
        assert_eq!(reported(&mut traffic, "n7", "u"), (true, false));
        assert_eq!(traffic.namespaces.len(), OwnMetrics::NAMESPACES_MAX);
        assert!(traffic.names().has("n7") && !traffic.names().has("late"), "others count by the same names");
    }
}
