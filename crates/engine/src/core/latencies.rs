//! How long the items of topics waited lately, and how long their deliveries lasted.
//!
//! A histogram of each of a million topics would take a gigabyte. So only topics in which something is
//! delivered have one, for as long as that goes on, and no more than so many at a time.

use std::{collections::HashMap, time::Duration};

use forebay_types::{Monotonic, Namespace, Topic, TopicName};

use crate::api::{Histogram, Latencies};

/// The length of a slot. Figures cover the present slot and the one before.
const SLOT: Duration = Duration::from_secs(60);
/// Topics that have histograms: 9 MiB of them.
const TOPICS_MAX: usize = 10_000;
/// Topics of one namespace that have them.
const OF_NAMESPACE_MAX: usize = TOPICS_MAX / 4;

/// The latencies of a topic of late.
#[derive(Debug, Default)]
struct Recent {
    /// The number of the present slot.
    slot: u64,
    /// Latencies in that slot.
    now: Latencies,
    /// Latencies in the slot before it.
    before: Latencies,
}

impl Recent {
    /// Goes on to a slot.
    fn turn(&mut self, slot: u64) {
        if slot > self.slot {
            let now = std::mem::take(&mut self.now);
            self.before = if slot == self.slot + 1 { now } else { Latencies::default() };
            self.slot = slot;
        }
    }

    /// Whether its slots are too long ago to be told.
    fn is_over(&self, slot: u64) -> bool {
        slot > self.slot + 1
    }
}

/// The latencies of all topics.
#[derive(Debug, Default)]
pub(crate) struct RecentLatencies {
    /// By namespace and topic.
    namespaces: HashMap<Namespace, HashMap<Topic, Box<Recent>>>,
    /// How many topics there are.
    len: usize,
    /// The slot in which those were looked for that are over.
    tidied: u64,
}

impl RecentLatencies {
    /// Items of a namespace are delivered: of these topics, and ready for so long.
    pub fn waited(&mut self, namespace: &Namespace, waits: &[(Topic, Duration)], at: Monotonic) {
        for of_one in waits.chunk_by(|(one, _), (other, _)| one == other) {
            let Some((topic, _)) = of_one.first() else { continue };
            let lengths = of_one.iter().map(|(_, wait)| *wait);
            self.record(namespace, topic, lengths, at, |recent| &mut recent.waits);
        }
    }

    /// Deliveries of a topic are acked that have lasted for so long.
    pub fn handled(&mut self, name: &TopicName, lengths: impl Iterator<Item = Duration>, at: Monotonic) {
        self.record(&name.namespace, &name.topic, lengths, at, |recent| &mut recent.handlings);
    }

    /// The latencies of a topic. `None`: there were none lately, or there was no room for it.
    pub fn of(&self, name: &TopicName, at: Monotonic) -> Option<Box<Latencies>> {
        let recent = self.namespaces.get(&name.namespace)?.get(&name.topic)?;
        let slot = slot(at);
        if recent.is_over(slot) {
            return None;
        }
        let mut sum = Box::new(recent.now);
        if slot == recent.slot {
            *sum += &recent.before;
        }
        Some(sum)
    }

    fn record(
        &mut self,
        namespace: &Namespace,
        topic: &Topic,
        lengths: impl Iterator<Item = Duration>,
        at: Monotonic,
        which: impl FnOnce(&mut Latencies) -> &mut Histogram,
    ) {
        let slot = slot(at);
        if !self.has(namespace, topic) && !self.make_room(namespace, slot) {
            return;
        }
        let topics = self.namespaces.entry(namespace.clone()).or_default();
        let recent = topics.entry(topic.clone()).or_insert_with(|| {
            self.len += 1;
            Box::default()
        });
        recent.turn(slot);
        let histogram = which(&mut recent.now);
        lengths.for_each(|length| histogram.record(length));
    }

    fn has(&self, namespace: &Namespace, topic: &Topic) -> bool {
        self.namespaces.get(namespace).is_some_and(|topics| topics.contains_key(topic))
    }

    /// Whether there is room for one more topic of a namespace, perhaps because others make it.
    fn make_room(&mut self, namespace: &Namespace, slot: u64) -> bool {
        let has_room = |own: &Self| {
            let of_namespace = own.namespaces.get(namespace).map_or(0, HashMap::len);
            own.len < TOPICS_MAX && of_namespace < OF_NAMESPACE_MAX
        };
        if !has_room(self) && self.tidied < slot {
            self.tidy(slot);
        }
        has_room(self)
    }

    /// Forgets topics of which nothing is told any more. That looks at all of them: once a slot is enough.
    fn tidy(&mut self, slot: u64) {
        self.tidied = slot;
        self.namespaces.retain(|_, topics| {
            topics.retain(|_, recent| !recent.is_over(slot));
            !topics.is_empty()
        });
        self.len = self.namespaces.values().map(HashMap::len).sum();
    }
}

/// The number of the slot of a time.
fn slot(at: Monotonic) -> u64 {
    at.since(Monotonic::default()).as_secs() / SLOT.as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Monotonic {
        Monotonic::default().plus(Duration::from_secs(seconds))
    }

    fn wait(latencies: &mut RecentLatencies, namespace: &str, topic: &str, seconds: u64) {
        let waits = [(Topic::from(topic), Duration::from_secs(3))];
        latencies.waited(&namespace.into(), &waits, at(seconds));
    }

    fn has(latencies: &RecentLatencies, namespace: &str, topic: &str, seconds: u64) -> bool {
        latencies.of(&TopicName::new(namespace, topic), at(seconds)).is_some()
    }

    #[test]
    fn what_was_counted_in_two_slots_is_told() {
        let mut latencies = RecentLatencies::default();
        let name = TopicName::new("n", "t");
        wait(&mut latencies, "n", "t", 59);
        latencies.handled(&name, [Duration::from_secs(7)].into_iter(), at(61));
        let both = latencies.of(&name, at(119)).unwrap();
        assert_eq!((both.waits.counts().iter().sum(), both.handlings.counts().iter().sum()), (1_u32, 1_u32));
        let later = latencies.of(&name, at(179)).unwrap();
        assert_eq!((later.waits.counts().len(), later.handlings.counts().iter().sum()), (0, 1_u32));
        assert_eq!(latencies.of(&name, at(180)), None);
        wait(&mut latencies, "n", "t", 600);
        let anew = latencies.of(&name, at(600)).unwrap();
        assert_eq!((anew.waits.counts().iter().sum(), anew.handlings.counts().len()), (1_u32, 0));
    }

    #[test]
    fn a_namespace_has_a_quarter_and_idle_topics_make_room() {
        let mut latencies = RecentLatencies::default();
        for namespace in ["a", "b", "c", "d", "e"] {
            for number in 0..=OF_NAMESPACE_MAX {
                wait(&mut latencies, namespace, &format!("t{number}"), 0);
            }
        }
        assert_eq!(latencies.len, TOPICS_MAX);
        let last = format!("t{OF_NAMESPACE_MAX}");
        assert!(has(&latencies, "a", "t0", 0) && !has(&latencies, "a", &last, 0));
        assert!(!has(&latencies, "e", "t0", 0), "there is no room");
        wait(&mut latencies, "a", "t0", 119);
        wait(&mut latencies, "e", "t0", 119);
        assert!(!has(&latencies, "e", "t0", 119), "what others have is still told");
        wait(&mut latencies, "e", "t0", 120);
        assert!(has(&latencies, "e", "t0", 120) && has(&latencies, "a", "t0", 120));
        assert_eq!(latencies.len, 2);
    }
}
