//! The topic directory: where each topic has rows, who waits for it, and which topics have something new.

use std::{
    collections::{BTreeSet, HashMap},
    hash::RandomState,
    ops::Bound,
};

use forebay_types::{Namespace, Topic, TopicId, TopicName};
use smallvec::SmallVec;

use super::topic_turns::TopicTurns;
use crate::{index::ShardIndex, striped::StripedMap};

/// A topic's part in one shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TopicPart {
    /// The shard. This node owns it, or has lost it: then the part is on its way out.
    pub shard: ShardIndex,
    /// The topic's number there.
    pub topic: TopicId,
}

/// Where a topic has rows: mostly in one shard.
pub(crate) type Parts = SmallVec<[TopicPart; 1]>;

/// Polls that wait for a topic. Their numbers grow, so the first is the one that came first.
#[derive(Debug, Default)]
struct PollQueue(BTreeSet<u64>);

/// A topic over all shards of the node.
#[derive(Debug, Default)]
struct NodeTopic {
    /// Where it has a row.
    parts: Parts,
    /// Polls that wait for it, if any do. Few topics have any.
    waiting: Option<Box<PollQueue>>,
}

/// All topics over all shards of the node.
#[derive(Debug, Default)]
pub(crate) struct TopicDirectory {
    /// Topics that have a row, or somebody who waits.
    topics: StripedMap<TopicName, NodeTopic, RandomState>,
    /// Topics that have a row, by namespace and name.
    names: BTreeSet<TopicName>,
    /// Topics without a row that polls wait for, by namespace and name. Prefixes are not among them.
    waited: BTreeSet<TopicName>,
    /// How many topics with a row a namespace has.
    per_namespace: HashMap<Namespace, usize>,
    /// How many rows all topics have together.
    rows: usize,
    /// Topics whose polls may be served now.
    woken: TopicTurns,
}

impl TopicDirectory {
    /// Where a topic has rows.
    pub fn parts(&self, name: &TopicName) -> Parts {
        self.topics.get(name).map(|topic| topic.parts.clone()).unwrap_or_default()
    }

    /// A shard has a row of the topic.
    pub fn add_part(&mut self, name: TopicName, part: TopicPart) {
        let topic = self.topics.or_default(name.clone());
        // Of a shard that was lost and is back, the part may be here still.
        if topic.parts.contains(&part) {
            return;
        }
        topic.parts.push(part);
        self.rows += 1;
        if topic.parts.len() == 1 {
            *self.per_namespace.entry(name.namespace.clone()).or_default() += 1;
            if topic.waiting.is_some() {
                self.waited.remove(&name);
            }
            self.names.insert(name);
        }
    }

    /// The row is gone, or the shard is lost.
    pub fn remove_part(&mut self, name: &TopicName, part: TopicPart) {
        let Some(topic) = self.topics.get_mut(name) else { return };
        let before = topic.parts.len();
        topic.parts.retain(|other| *other != part);
        self.rows -= before - topic.parts.len();
        let (is_gone, is_needed) = (topic.parts.is_empty(), topic.waiting.is_some());
        if before > 0 && is_gone {
            self.names.remove(name);
            self.uncount(&name.namespace);
            if is_needed {
                self.waited.insert(name.clone());
            }
        }
        if is_gone && !is_needed {
            self.topics.remove(name);
        } else {
            self.woken.insert(name.clone(), ());
        }
    }

    fn uncount(&mut self, namespace: &Namespace) {
        if let Some(count) = self.per_namespace.get_mut(namespace) {
            *count -= 1;
            if *count == 0 {
                self.per_namespace.remove(namespace);
            }
        }
    }

    /// How many topics have a row.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// How many rows all topics have together.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// All topics by name, behind one of them.
    pub fn all_after(&self, after: Option<&TopicName>) -> impl Iterator<Item = &TopicName> {
        self.names.range((after.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded))
    }

    /// All topics by name, from here on; with `waited` those without a row that polls wait for, too.
    pub fn listed(&self, from: Bound<TopicName>, waited: bool) -> impl Iterator<Item = &TopicName> {
        let others = waited.then(|| self.waited.range((from.clone(), Bound::Unbounded)));
        let mut waited = others.into_iter().flatten().peekable();
        let mut names = self.names.range((from, Bound::Unbounded)).peekable();
        std::iter::from_fn(move || match (names.peek(), waited.peek()) {
            (Some(name), Some(other)) if other < name => waited.next(),
            (None, _) => waited.next(),
            _ => names.next(),
        })
    }

    /// How many topics a namespace has on this node.
    pub fn count_of(&self, namespace: &str) -> usize {
        self.per_namespace.get(namespace).copied().unwrap_or(0)
    }

    /// The topics of a namespace by name, behind one of them.
    pub fn of_namespace(
        &self,
        namespace: &Namespace,
        after: Option<&Topic>,
    ) -> impl Iterator<Item = &TopicName> {
        self.starting_with(namespace, "", after)
    }

    /// The topics that a prefix covers by name, behind one of them.
    pub fn of_prefix(&self, prefix: &TopicName, after: Option<&Topic>) -> impl Iterator<Item = &TopicName> {
        self.starting_with(&prefix.namespace, prefix.prefix().unwrap_or_default(), after)
    }

    fn starting_with(
        &self,
        namespace: &Namespace,
        begin: &str,
        after: Option<&Topic>,
    ) -> impl Iterator<Item = &TopicName> {
        let name = |topic| TopicName { namespace: namespace.clone(), topic };
        let from = match after {
            Some(topic) => Bound::Excluded(name(topic.clone())),
            None => Bound::Included(name(begin.into())),
        };
        self.names
            .range((from, Bound::Unbounded))
            .take_while(move |name| name.namespace == *namespace && name.topic.starts_with(begin))
    }

    /// A poll waits for the topic.
    pub fn add_waiting(&mut self, name: TopicName, poll: u64) {
        let topic = self.topics.or_default(name.clone());
        if topic.waiting.is_none() && topic.parts.is_empty() && name.prefix().is_none() {
            self.waited.insert(name);
        }
        topic.waiting.get_or_insert_default().0.insert(poll);
    }

    /// A poll waits no more.
    pub fn remove_waiting(&mut self, names: &[TopicName], poll: u64) {
        for name in names {
            let Some(topic) = self.topics.get_mut(name) else { continue };
            if let Some(waiting) = &mut topic.waiting {
                waiting.0.remove(&poll);
                topic.waiting.take_if(|waiting| waiting.0.is_empty());
            }
            if topic.waiting.is_none() && topic.parts.is_empty() {
                self.topics.remove(name);
                self.waited.remove(name);
            }
        }
    }

    /// Polls that wait for the topic, first come first.
    pub fn waiting(&self, name: &TopicName) -> impl Iterator<Item = u64> {
        let waiting = self.topics.get(name).and_then(|topic| topic.waiting.as_ref());
        waiting.into_iter().flat_map(|waiting| waiting.0.iter().copied())
    }

    /// How many polls wait for the topic.
    pub fn waiting_count(&self, name: &TopicName) -> usize {
        let waiting = self.topics.get(name).and_then(|topic| topic.waiting.as_ref());
        waiting.map_or(0, |waiting| waiting.0.len())
    }

    /// Whether the directory has exactly these topics with these parts, and counts them right. Checked in the
    /// simulation.
    #[cfg(feature = "planted-bugs")]
    pub fn check(
        &self,
        owned: &HashMap<TopicName, Vec<TopicPart>>,
        is_leaving: impl Fn(ShardIndex) -> bool,
    ) -> Result<(), String> {
        let mut counts: HashMap<Namespace, usize> = HashMap::new();
        for (name, topic) in self.topics.iter() {
            let mut parts = topic.parts.to_vec();
            parts.sort_unstable();
            let mut known = owned.get(name).cloned().unwrap_or_default();
            // Parts of a shard that was lost may be there still.
            let known_ones = known.clone();
            known.extend(parts.iter().filter(|part| is_leaving(part.shard) && !known_ones.contains(part)));
            known.sort_unstable();
            if parts != known {
                return Err(format!(
                    "the directory has {parts:?} of {name}, shards have {:?}",
                    owned.get(name)
                ));
            }
            if parts.is_empty() && topic.waiting.is_none() {
                return Err(format!("{name} has no part, and nobody waits for it"));
            }
            if !parts.is_empty() {
                *counts.entry(name.namespace.clone()).or_default() += 1;
            }
        }
        let rows: usize = self.topics.iter().map(|(_, topic)| topic.parts.len()).sum();
        if rows != self.rows {
            return Err(format!("topics have {rows} rows, counted as {}", self.rows));
        }
        let with_row = self.topics.iter().filter(|(_, topic)| !topic.parts.is_empty());
        let names: BTreeSet<_> = with_row.map(|(name, _)| name).collect();
        if !names.into_iter().eq(&self.names) {
            return Err(format!("topics with a row are not those in order: {:?}", self.names));
        }
        let waited = self.topics.iter().filter(|(name, it)| it.parts.is_empty() && name.prefix().is_none());
        let waited: BTreeSet<_> = waited.map(|(name, _)| name).collect();
        if !waited.into_iter().eq(&self.waited) {
            return Err(format!("topics without a row are not those in order: {:?}", self.waited));
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
        self.woken.insert(name, ());
    }

    /// The same, where only a reference is there and mostly nobody waits.
    pub fn wake_if_waiting(&mut self, name: &TopicName) {
        if self.waiting_count(name) > 0 {
            self.woken.insert(name.clone(), ());
        }
    }

    /// Whether some topic's polls may be served now.
    pub fn has_woken(&self) -> bool {
        !self.woken.is_empty()
    }

    /// Takes the next of them, in turn by tenant.
    pub fn next_woken(&mut self) -> Option<TopicName> {
        self.woken.next().map(|(name, ())| name)
    }

    /// Of the tenants whose topics were taken, this one was served last.
    pub fn served_last(&mut self, tenant: Namespace) {
        self.woken.continue_after(tenant);
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
        assert_eq!((topics.len(), topics.rows()), (2, 3));
        assert_eq!(topics.parts(&name("t"))[..], [part(0), part(1)]);
        topics.remove_part(&name("t"), part(0));
        assert_eq!(topics.count_of("ns"), 2);
        topics.remove_part(&name("t"), part(1));
        assert_eq!(topics.count_of("ns"), 1);
        topics.remove_part(&name("t"), part(1));
        assert_eq!((topics.count_of("ns"), topics.rows()), (1, 1), "a part is removed once");
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
        assert_eq!((topics.count_of("ns"), topics.of_namespace(&"ns".into(), None).count()), (2, 2));
        topics.remove_part(&name("t"), part(2));
        topics.remove_part(&name("u"), part(0));
        topics.remove_waiting(&[name("t"), name("u")], 1);
        assert!(topics.topics.is_empty() && topics.names.is_empty() && topics.per_namespace.is_empty());
        assert!(topics.waited.is_empty());
    }

    #[test]
    fn the_topics_of_a_namespace_come_by_name() {
        let mut topics = TopicDirectory::default();
        for (namespace, topic) in [("m", "b"), ("l", "z"), ("m", "a"), ("n", "0"), ("m", "c")] {
            topics.add_part(TopicName::new(namespace, topic), part(0));
        }
        topics.add_waiting(TopicName::new("m", "aa"), 1);
        let of = |after: Option<&str>| {
            let after = after.map(Topic::from);
            let m = "m".into();
            let names = topics.of_namespace(&m, after.as_ref());
            names.map(|name| name.topic.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(
            (of(None), of(Some("a"))),
            (vec!["a".into(), "b".into(), "c".into()], vec!["b".into(), "c".into()])
        );
        assert_eq!((of(Some("aa")).len(), of(Some("c")).len(), topics.len()), (2, 0, 5));
        assert_eq!(topics.all_after(None).next(), Some(&TopicName::new("l", "z")));
    }

    #[test]
    fn a_topic_without_rows_is_listed_while_a_poll_waits_for_it() {
        let mut topics = TopicDirectory::default();
        let listed = |topics: &TopicDirectory, from| -> Vec<String> {
            topics.listed(from, true).map(|name| name.topic.to_string()).collect()
        };
        topics.add_part(name("b"), part(0));
        topics.add_part(name("d"), part(0));
        for (topic, poll) in [("a", 1), ("b", 2), ("c", 3), ("c", 4), ("e", 5), ("a*", 6)] {
            topics.add_waiting(name(topic), poll);
        }
        assert_eq!(listed(&topics, Bound::Unbounded), ["a", "b", "c", "d", "e"]);
        assert_eq!(listed(&topics, Bound::Excluded(name("b"))), ["c", "d", "e"]);
        assert_eq!(topics.listed(Bound::Unbounded, false).count(), 2);
        topics.remove_part(&name("b"), part(0));
        topics.remove_part(&name("d"), part(0));
        topics.add_part(name("e"), part(0));
        topics.remove_waiting(&[name("a"), name("c"), name("e")], 3);
        assert_eq!(listed(&topics, Bound::Unbounded), ["a", "b", "c", "e"]);
        topics.remove_waiting(&[name("c"), name("e")], 4);
        topics.remove_waiting(&[name("c"), name("e")], 5);
        assert_eq!(listed(&topics, Bound::Unbounded), ["a", "b", "e"]);
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
        assert_eq!((topics.next_woken(), topics.next_woken()), (Some(name("t")), None));
    }

    #[test]
    fn the_polls_of_a_topic_that_lost_a_shard_look_again() {
        let mut topics = TopicDirectory::default();
        topics.add_part(name("t"), part(0));
        topics.add_part(name("t"), part(1));
        topics.remove_part(&name("t"), part(0));
        assert_eq!((topics.next_woken(), topics.next_woken()), (Some(name("t")), None));
    }
}
