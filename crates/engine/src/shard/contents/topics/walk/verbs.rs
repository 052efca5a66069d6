//! The walk over all topics of a shard, a slice at a time, and which topics the node's directory lists.

use std::collections::HashMap;

use forebay_types::{TopicId, TopicName};
use rustc_hash::FxBuildHasher;

use crate::shard::{
    OwnedShard,
    contents::topics::{
        state::TopicState,
        table::{NamedTopic, TopicTable},
    },
};

impl OwnedShard {
    /// Every topic's head may have changed: all of them are to be visited.
    pub fn begin_walk(&mut self) {
        self.contents.topics.begin_walk();
    }

    /// Some topics have not been visited yet.
    pub fn is_walking(&self) -> bool {
        self.contents.topics.is_walking()
    }

    /// Visits a slice of the topics; see [`TopicTable::walk`].
    pub fn walk(&mut self, most: usize, visit: impl FnMut(TopicId, &TopicName, bool)) -> usize {
        self.contents.topics.walk(most, visit)
    }

    /// A topic is in the node's directory.
    pub fn is_listed(&self, id: TopicId) -> bool {
        self.contents.topics.get(id).is_some_and(|topic| topic.listed)
    }

    /// A topic is listed in the node's directory from now on. `None` if it was, or if there is no such topic.
    pub fn list(&mut self, name: &TopicName) -> Option<NamedTopic> {
        self.contents.topics.list(name)
    }
}

impl TopicTable {
    /// Every topic's head may have changed: all of them are to be visited.
    pub fn begin_walk(&mut self) {
        self.walk.begin();
    }

    /// Some topics have not been visited yet.
    pub fn is_walking(&self) -> bool {
        !self.walk.is_over()
    }

    /// Visits up to so many of the topics. Each of them is listed from now on. Tells which were not before.
    /// Returns how many were visited.
    pub fn walk(&mut self, most: usize, mut visit: impl FnMut(TopicId, &TopicName, bool)) -> usize {
        let mut visited = 0;
        while visited < most
            && let Some(id) = self.next_in_walk()
        {
            // It may have been dropped since its part was noted.
            if let Some(topic) = self.by_id.get_mut(&id) {
                visited += 1;
                visit(id, &topic.name, !std::mem::replace(&mut topic.listed, true));
            }
        }
        visited
    }

    fn next_in_walk(&mut self) -> Option<TopicId> {
        loop {
            if let Some(id) = self.walk.next_noted() {
                return Some(id);
            }
            let part = self.walk.next_part()?;
            self.walk.note(self.by_id.stripe(part).map(|(id, _)| *id).collect());
        }
    }

    /// A topic is listed from now on. `None` if it was, or if there is no such topic.
    pub fn list(&mut self, name: &TopicName) -> Option<NamedTopic> {
        let id = self.id_of(name)?;
        let topic = self.get_mut(id)?;
        let was_listed = std::mem::replace(&mut topic.listed, true);
        (!was_listed).then(|| NamedTopic { id, name: topic.name.clone() })
    }

    /// Takes a part of the topics, as [`TopicTable::walk`] visits them. The rest of the table is not kept up:
    /// the shard is lost. `None` once all parts were taken.
    pub fn take_part(&mut self) -> Option<HashMap<TopicId, Box<TopicState>, FxBuildHasher>> {
        self.walk.next_part().map(|part| self.by_id.take_stripe(part))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::shard::tests::shard_with_topics;

    #[test]
    fn topics_are_visited_in_slices_and_listed_once() {
        let mut shard = shard_with_topics(1_000, 1);
        let asked = TopicName::new("ns", "t77");
        assert_eq!(shard.contents.topics.list(&asked).map(|topic| topic.id), Some(TopicId(77)));
        assert!(
            shard.contents.topics.list(&asked).is_none()
                && shard.contents.topics.list(&TopicName::new("ns", "x")).is_none()
        );
        let (mut new, mut all, mut slices) = (0, 0, 0);
        while shard.contents.topics.is_walking() {
            let before = all;
            shard.contents.topics.walk(100, |_, _, is_new| {
                all += 1;
                new += usize::from(is_new);
            });
            assert!(all - before <= 100, "{} in one slice", all - before);
            slices += 1;
        }
        assert_eq!((new, all), (999, 1_000));
        assert!(slices >= 10, "{slices}");
        shard.contents.topics.begin_walk();
        shard.contents.topics.walk(usize::MAX, |_, _, is_new| assert!(!is_new));
        assert!(!shard.contents.topics.is_walking());
    }

    #[test]
    fn a_part_of_the_table_may_be_longer_than_a_slice() {
        let mut shard = shard_with_topics(10_000, 1);
        let mut visited = HashSet::new();
        while shard.contents.topics.is_walking() {
            let slice = shard.contents.topics.walk(7, |id, _, _| assert!(visited.insert(id)));
            assert!(slice <= 7);
            shard.contents.topics.remove(TopicId(9_999));
        }
        assert!((9_999..=10_000).contains(&visited.len()), "{}", visited.len());
    }
}
