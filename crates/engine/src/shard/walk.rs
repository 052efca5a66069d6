//! The walk over all topics of a shard, a slice at a time, and which topics the node's directory lists.

use forebay_types::{TopicId, TopicName};

use super::{
    OwnedShard,
    topics::{NamedTopic, TopicState, TopicTable},
};
use crate::striped::STRIPES;

impl OwnedShard {
    /// Every topic's head may have changed: all of them are to be visited.
    pub fn begin_walk(&mut self) {
        self.topics.begin_walk();
    }

    /// Some topics have not been visited yet.
    pub fn is_walking(&self) -> bool {
        self.topics.is_walking()
    }

    /// Visits a slice of the topics; see [`TopicTable::walk`].
    pub fn walk(&mut self, most: usize, visit: impl FnMut(TopicId, &TopicName, bool)) {
        self.topics.walk(most, visit);
    }

    /// A topic is in the node's directory.
    pub fn is_listed(&self, id: TopicId) -> bool {
        self.topics.get(id).is_some_and(|topic| topic.listed)
    }

    /// A topic is listed in the node's directory from now on. `None` if it was, or if there is no such topic.
    pub fn list(&mut self, name: &TopicName) -> Option<NamedTopic> {
        self.topics.list(name)
    }
}

impl TopicTable {
    /// Every topic's head may have changed: all of them are to be visited.
    pub fn begin_walk(&mut self) {
        self.walk = Some(0);
    }

    /// Some topics have not been visited yet.
    pub fn is_walking(&self) -> bool {
        self.walk.is_some()
    }

    /// Visits a slice of the topics: about `most`, or one part of the table. Each of them is listed from now
    /// on. Tells which were not before.
    pub fn walk(&mut self, most: usize, mut visit: impl FnMut(TopicId, &TopicName, bool)) {
        let mut visited = 0;
        while visited < most
            && let Some(stripe) = self.walk
        {
            for (id, topic) in self.by_id.stripe_mut(stripe) {
                visited += 1;
                visit(*id, &topic.name, !std::mem::replace(&mut topic.listed, true));
            }
            self.walk = (stripe + 1 < STRIPES).then_some(stripe + 1);
        }
    }

    /// A topic is listed from now on. `None` if it was, or if there is no such topic.
    pub fn list(&mut self, name: &TopicName) -> Option<NamedTopic> {
        let id = self.id_of(name)?;
        let topic = self.get_mut(id)?;
        let was_listed = std::mem::replace(&mut topic.listed, true);
        (!was_listed).then(|| NamedTopic { id, name: topic.name.clone() })
    }

    /// Takes a slice of the topics, as [`TopicTable::walk`] visits them. The rest of the table is not kept
    /// up: the shard is lost. Nothing is left once it is empty.
    pub fn take_slice(&mut self, most: usize) -> Vec<(TopicId, Box<TopicState>)> {
        let mut slice = Vec::new();
        while slice.len() < most
            && let Some(stripe) = self.walk
        {
            slice.extend(self.by_id.take_stripe(stripe));
            self.walk = (stripe + 1 < STRIPES).then_some(stripe + 1);
        }
        slice
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shard::tests::shard_with_topics;

    #[test]
    fn topics_are_visited_in_slices_and_listed_once() {
        let mut shard = shard_with_topics(1_000, 1);
        let asked = TopicName::new("ns", "t77");
        assert_eq!(shard.topics.list(&asked).map(|topic| topic.id), Some(TopicId(77)));
        assert!(
            shard.topics.list(&asked).is_none() && shard.topics.list(&TopicName::new("ns", "x")).is_none()
        );
        let (mut new, mut all, mut slices) = (0, 0, 0);
        while shard.topics.is_walking() {
            let before = all;
            shard.topics.walk(100, |_, _, is_new| {
                all += 1;
                new += usize::from(is_new);
            });
            assert!(all - before < 120, "{} in one slice", all - before);
            slices += 1;
        }
        assert_eq!((new, all), (999, 1_000));
        assert!(slices >= 9, "{slices}");
        shard.topics.begin_walk();
        shard.topics.walk(usize::MAX, |_, _, is_new| assert!(!is_new));
        assert!(!shard.topics.is_walking());
    }

    #[test]
    fn the_topics_of_a_lost_shard_are_taken_in_slices() {
        let mut table = shard_with_topics(1_000, 1).topics;
        table.begin_walk();
        let slices: Vec<usize> = std::iter::from_fn(|| {
            let slice = table.take_slice(100).len();
            (slice > 0).then_some(slice)
        })
        .collect();
        assert_eq!((slices.iter().sum::<usize>(), table.len()), (1_000, 0));
        assert!(slices.iter().all(|slice| *slice < 120), "{slices:?}");
    }
}
