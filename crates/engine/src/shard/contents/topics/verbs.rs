//! Names, heads and figures of topics.

use forebay_types::{Key, Monotonic, Namespace, TopicId, TopicName};

use super::figures::{TopicFlow, TopicTotals};
use crate::{api::LifetimeCounts, shard::OwnedShard};

impl OwnedShard {
    /// Names the topics whose head or counts may have changed since the last call.
    pub fn drain_changed(&mut self, each: impl FnMut(&TopicName)) {
        self.contents.topics.drain_changed(each);
    }

    /// How many items of a topic are where.
    pub fn totals(&self, id: TopicId) -> Option<TopicTotals> {
        let counts = self.contents.topics.get(id)?.counts();
        Some(TopicTotals::of(counts, self.contents.leases.of_topic(id)))
    }

    /// How many items of a topic are ready, and not on their way to a lease.
    pub fn ready_items(&self, id: TopicId) -> u64 {
        let reserved = self.contents.topics.get(id).map_or(0, |topic| u64::from(topic.reserved));
        self.totals(id).map_or(0, |totals| totals.ready.saturating_sub(reserved))
    }

    /// The flow of a topic.
    pub fn flow(&self, id: TopicId, at: Monotonic) -> Option<TopicFlow> {
        let topic = self.contents.topics.get(id)?;
        let leased = self.contents.leases.of_topic(id) as u64;
        // A delivery that was open at a take-over from a program that counts nothing was not counted when it
        // began.
        let counted = topic.tally().map(|tally| LifetimeCounts::of(tally, leased));
        Some(TopicFlow { counted, rates: topic.recent().per_second(at).into(), last: topic.last() })
    }

    /// The name of a topic.
    pub fn topic_name(&self, id: TopicId) -> Option<&TopicName> {
        self.contents.topics.get(id).map(|topic| &topic.name)
    }

    /// The number of a topic in this shard.
    pub fn topic_id(&self, name: &TopicName) -> Option<TopicId> {
        self.contents.topics.id_of(name)
    }

    /// The item of a topic that is delivered next, as far as memory knows it.
    pub fn known_head(&self, id: TopicId) -> Option<Key> {
        self.contents.topics.get(id)?.window().first().map(|(key, _)| key)
    }

    /// A demand waits for the first item of a topic to be read.
    pub fn has_unknown_head(&self, id: TopicId) -> bool {
        let of_topic = self.contents.topics.get(id);
        of_topic.is_some_and(|topic| topic.outstanding_since.is_some() && topic.window().len() == 0)
    }

    /// Whether some topics have dead letters of which memory knows the number alone.
    pub fn has_dormant_topics(&self) -> bool {
        self.contents.topics.dormant_dead != 0
    }

    /// Every topic that is in the node's directory.
    #[cfg(any(test, feature = "planted-bugs"))]
    pub fn topics(&self) -> impl Iterator<Item = (TopicId, &TopicName)> {
        self.contents.topics.iter().filter(|(_, topic)| topic.listed).map(|(id, topic)| (id, &topic.name))
    }

    /// The tenant of a topic. Empty where the topic is not known any more.
    pub(in crate::shard) fn namespace_of(&self, topic: TopicId) -> Namespace {
        self.contents.topics.get(topic).map_or_else(|| "".into(), |topic| topic.name.namespace.clone())
    }

    /// The name of a topic. Empty where it is not known any more.
    pub(in crate::shard) fn name_of(&self, topic: TopicId) -> TopicName {
        self.contents.topics.get(topic).map_or_else(|| TopicName::new("", ""), |topic| topic.name.clone())
    }
}
