//! The topic directory: where each topic has rows, who waits for it, and which topics have something new.

use std::collections::{BTreeSet, HashMap};

use forebay_types::{Namespace, TopicId, TopicName};

use crate::index::ShardIndex;

/// A topic's part in one shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TopicPart {
    /// The shard. This node owns it.
    pub shard: ShardIndex,
    /// The topic's number there.
    pub topic: TopicId,
}

/// A topic over all shards of the node.
#[derive(Debug, Default)]
struct NodeTopic {
    /// Where it has a row.
    parts: Vec<TopicPart>,
    /// Polls that wait for it. Their numbers grow, so the first is the one that came first.
    waiting: BTreeSet<u64>,
}

/// All topics over all shards of the node.
#[derive(Debug, Default)]
pub(crate) struct TopicDirectory {
    /// Topics that have a row, or somebody who waits.
    topics: HashMap<TopicName, NodeTopic>,
    /// How many topics with a row a namespace has.
    per_namespace: HashMap<Namespace, usize>,
    /// Topics whose polls may be served now.
    woken: BTreeSet<TopicName>,
}

impl TopicDirectory {
    /// Where a topic has rows.
    pub fn parts(&self, name: &TopicName) -> Vec<TopicPart> {
        self.topics.get(name).map(|topic| topic.parts.clone()).unwrap_or_default()
    }

    /// A shard has a row of the topic.
    pub fn add_part(&mut self, name: TopicName, part: TopicPart) {
        let namespace = name.namespace.clone();
        let topic = self.topics.entry(name).or_default();
        if topic.parts.is_empty() {
            *self.per_namespace.entry(namespace).or_default() += 1;
        }
        topic.parts.push(part);
    }

    /// The row is gone, or the shard is lost.
    pub fn remove_part(&mut self, name: &TopicName, part: TopicPart) {
        let Some(topic) = self.topics.get_mut(name) else { return };
        let before = topic.parts.len();
        topic.parts.retain(|other| *other != part);
        if before > 0
            && topic.parts.is_empty()
            && let Some(count) = self.per_namespace.get_mut(&name.namespace)
        {
            *count -= 1;
            if *count == 0 {
                self.per_namespace.remove(&name.namespace);
            }
        }
        if topic.parts.is_empty() && topic.waiting.is_empty() {
            self.topics.remove(name);
        } else {
            self.woken.insert(name.clone());
        }
    }

    /// How many topics a namespace has on this node.
    pub fn count_of(&self, namespace: &str) -> usize {
        self.per_namespace.get(namespace).copied().unwrap_or(0)
    }

    /// The topics of a namespace.
    pub fn of_namespace(&self, namespace: &Namespace) -> impl Iterator<Item = &TopicName> {
        self.topics.keys().filter(move |name| name.namespace == *namespace)
    }

    /// A poll waits for the topic.
    pub fn add_waiting(&mut self, name: TopicName, poll: u64) {
        self.topics.entry(name).or_default().waiting.insert(poll);
    }

    /// A poll waits no more.
    pub fn remove_waiting(&mut self, names: &[TopicName], poll: u64) {
        for name in names {
            let Some(topic) = self.topics.get_mut(name) else { continue };
            topic.waiting.remove(&poll);
            if topic.waiting.is_empty() && topic.parts.is_empty() {
                self.topics.remove(name);
            }
        }
    }

    /// Polls that wait for the topic, first come first.
    pub fn waiting(&self, name: &TopicName) -> impl Iterator<Item = u64> {
        self.topics.get(name).into_iter().flat_map(|topic| topic.waiting.iter().copied())
    }

    /// How many polls wait for the topic.
    pub fn waiting_count(&self, name: &TopicName) -> usize {
        self.topics.get(name).map_or(0, |topic| topic.waiting.len())
    }

    /// Whether the directory has exactly these topics with these parts, and counts them right. Checked in the
    /// simulation.
    #[cfg(feature = "planted-bugs")]
    pub fn check(&self, owned: &HashMap<TopicName, Vec<TopicPart>>) -> Result<(), String> {
        let mut counts: HashMap<Namespace, usize> = HashMap::new();
        for (name, topic) in &self.topics {
            let mut parts = topic.parts.clone();
            parts.sort_unstable();
            if parts != owned.get(name).cloned().unwrap_or_default() {
                return Err(format!(
                    "the directory has {parts:?} of {name}, shards have {:?}",
                    owned.get(name)
                ));
            }
            if parts.is_empty() && topic.waiting.is_empty() {
                return Err(format!("{name} has no part, and nobody waits for it"));
            }
            if !parts.is_empty() {
                *counts.entry(name.namespace.clone()).or_default() += 1;
            }
        }
        if counts != self.per_namespace {
            return Err(format!("namespaces have {counts:?} topics, counted as {:?}", self.per_namespace));
        }
        match owned.keys().find(|name| !self.topics.contains_key(*name)) {
            Some(name) => Err(format!("{name} is not in the directory")),
            None => Ok(()),
        }
    }

    /// The topic's polls may be served now.
    pub fn wake(&mut self, name: TopicName) {
        self.woken.insert(name);
    }

    /// The same, where only a reference is there and mostly nobody waits.
    pub fn wake_if_waiting(&mut self, name: &TopicName) {
        if self.waiting_count(name) > 0 {
            self.woken.insert(name.clone());
        }
    }

    /// Whether some topic's polls may be served now.
    pub fn has_woken(&self) -> bool {
        !self.woken.is_empty()
    }

    /// Takes the topics whose polls may be served now.
    pub fn take_woken(&mut self) -> BTreeSet<TopicName> {
        std::mem::take(&mut self.woken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(topic: &str) -> TopicName {
        TopicName::new("ns", topic)
    }

    fn part(shard: usize) -> TopicPart {
        TopicPart { shard: ShardIndex(shard), topic: TopicId(1) }
    }

    #[test]
    fn a_topic_counts_once_however_many_shards_have_a_row() {
        let mut topics = TopicDirectory::default();
        topics.add_part(name("t"), part(0));
        topics.add_part(name("t"), part(1));
        topics.add_part(name("u"), part(0));
        topics.add_waiting(name("v"), 1);
        assert_eq!((topics.count_of("ns"), topics.count_of("other")), (2, 0), "a poll makes no topic");
        assert_eq!(topics.parts(&name("t")), [part(0), part(1)]);
        topics.remove_part(&name("t"), part(0));
        assert_eq!(topics.count_of("ns"), 2);
        topics.remove_part(&name("t"), part(1));
        assert_eq!(topics.count_of("ns"), 1);
        topics.remove_part(&name("t"), part(1));
        assert_eq!(topics.count_of("ns"), 1, "a part is removed once");
    }

    #[test]
    fn a_topic_without_rows_stays_while_a_poll_waits_for_it() {
        let mut topics = TopicDirectory::default();
        topics.add_part(name("t"), part(0));
        topics.add_part(name("u"), part(0));
        topics.add_waiting(name("t"), 1);
        topics.remove_part(&name("t"), part(0));
        topics.remove_part(&name("t"), part(0));
        assert_eq!((topics.count_of("ns"), topics.waiting_count(&name("t"))), (1, 1));
        topics.add_part(name("t"), part(2));
        assert_eq!((topics.count_of("ns"), topics.of_namespace(&"ns".into()).count()), (2, 2));
        topics.remove_part(&name("t"), part(2));
        topics.remove_part(&name("u"), part(0));
        topics.remove_waiting(&[name("t"), name("u")], 1);
        assert!(topics.topics.is_empty() && topics.per_namespace.is_empty());
    }

    #[test]
    fn polls_wait_in_the_order_in_which_they_came() {
        let mut topics = TopicDirectory::default();
        for poll in [3, 1, 2] {
            topics.add_waiting(name("t"), poll);
        }
        topics.remove_waiting(&[name("t")], 2);
        assert_eq!(topics.waiting(&name("t")).collect::<Vec<_>>(), [1, 3]);
    }

    #[test]
    fn the_polls_of_a_woken_topic_are_served_once() {
        let mut topics = TopicDirectory::default();
        topics.add_waiting(name("t"), 1);
        topics.wake(name("t"));
        topics.wake_if_waiting(&name("t"));
        topics.wake_if_waiting(&name("u"));
        assert_eq!(topics.take_woken(), BTreeSet::from([name("t")]));
        assert!(topics.take_woken().is_empty());
    }

    #[test]
    fn the_polls_of_a_topic_that_lost_a_shard_look_again() {
        let mut topics = TopicDirectory::default();
        topics.add_part(name("t"), part(0));
        topics.add_part(name("t"), part(1));
        topics.remove_part(&name("t"), part(0));
        assert_eq!(topics.take_woken(), BTreeSet::from([name("t")]));
    }
}
