//! Gauges of namespaces and of topics, as of the node's last look at them.

use std::{
    collections::HashMap,
    sync::{LazyLock, Mutex, PoisonError},
};

use forebay_engine::TopicFigures;
use forebay_peers::history::Latest;
use forebay_types::{Namespace, Timestamp, TopicName};
use metrics::{Gauge, Label, gauge};

/// The states of items, in the order of the gauges.
const STATES: [&str; 4] = ["ready", "leased", "scheduled", "dead"];
/// The sides of a topic that may be paused, in that order.
const SIDES: [&str; 2] = ["enqueue", "dequeue"];

/// Namespaces and topics that have gauges. One that is gone has 0 from then on: a gauge that nobody sets
/// keeps its last value.
#[derive(Default)]
struct TopicGauges {
    /// By namespace.
    namespaces: HashMap<Namespace, Standing>,
    /// By topic.
    topics: HashMap<TopicName, OfTopic>,
}

/// How items stand.
struct Standing {
    /// How many there are, by state.
    items: [Gauge; 4],
    /// Since when the oldest has been ready.
    oldest: Gauge,
}

/// The gauges of a topic.
struct OfTopic {
    /// Its items.
    standing: Standing,
    /// Calls that wait for items.
    polls: Gauge,
    /// Whether a side is paused.
    paused: [Gauge; 2],
}

impl Standing {
    /// Gauges with these names and labels.
    fn new(items: &'static str, oldest: &'static str, labels: &[Label]) -> Self {
        let with = |name: &'static str, value: &'static str| {
            let mut labels = labels.to_vec();
            labels.push(Label::new(name, value));
            labels
        };
        Self {
            items: STATES.map(|state| gauge!(items, with("state", state))),
            oldest: gauge!(oldest, labels.to_vec()),
        }
    }

    fn set(&self, counts: [u64; 4], oldest: Option<Timestamp>, now: Timestamp) {
        for (gauge, count) in self.items.iter().zip(counts) {
            gauge.set(count as f64);
        }
        self.oldest.set(oldest.map_or(0.0, |oldest| now.since(oldest).as_secs_f64()));
    }
}

impl OfTopic {
    fn new(name: &TopicName) -> Self {
        let labels = [
            Label::new("namespace", name.namespace.to_string()),
            Label::new("topic", name.topic.to_string()),
        ];
        let paused = |side: &'static str| {
            let mut labels = labels.to_vec();
            labels.push(Label::new("side", side));
            gauge!("forebay_topic_paused", labels)
        };
        Self {
            standing: Standing::new("forebay_topic_items", "forebay_topic_oldest_ready_age_seconds", &labels),
            polls: gauge!("forebay_topic_polls_waiting", labels.to_vec()),
            paused: SIDES.map(paused),
        }
    }

    /// `None`: it is gone.
    fn set(&self, topic: Option<&TopicFigures>, now: Timestamp) {
        let counts = topic.map_or([0; 4], |it| [it.ready, it.leased, it.scheduled, it.dead]);
        self.standing.set(counts, topic.and_then(|topic| topic.oldest_ready_at), now);
        self.polls.set(topic.map_or(0, |topic| topic.waiting) as f64);
        for (gauge, paused) in self.paused.iter().zip(topic.map_or([false; 2], |topic| topic.paused)) {
            gauge.set(f64::from(paused));
        }
    }
}

/// Sets the gauges. `topics`: how many the node has in all.
pub fn set(latest: &Latest, topics: usize, now: Timestamp) {
    static SHOWN: LazyLock<Mutex<TopicGauges>> = LazyLock::new(Mutex::default);
    let TopicGauges { namespaces, topics: shown } =
        &mut *SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
    for name in
        latest.namespaces.keys().filter(|name| !namespaces.contains_key(*name)).cloned().collect::<Vec<_>>()
    {
        let labels = [Label::new("namespace", name.to_string())];
        let standing = Standing::new("forebay_items", "forebay_oldest_ready_age_seconds", &labels);
        namespaces.insert(name, standing);
    }
    for (name, gauges) in &*namespaces {
        let figures = latest.namespaces.get(name).copied().unwrap_or_default();
        let counts = [figures.ready, figures.leased, figures.scheduled, figures.dead];
        gauges.set(counts, figures.oldest_ready_at, now);
    }
    let seen: HashMap<&TopicName, &TopicFigures> = latest.topics.iter().map(|it| (&it.name, it)).collect();
    for name in seen.keys().filter(|name| !shown.contains_key(**name)).copied().collect::<Vec<_>>() {
        shown.insert(name.clone(), OfTopic::new(name));
    }
    for (name, gauges) in &*shown {
        gauges.set(seen.get(name).copied(), now);
    }
    gauge!("forebay_topics_unreported").set(topics.saturating_sub(latest.topics.len()) as f64);
}
