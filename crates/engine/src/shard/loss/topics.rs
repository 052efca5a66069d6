//! The topics of a shard that was lost.

use std::collections::hash_map;

use forebay_types::TopicId;

use crate::shard::contents::{
    leases::log::Leases,
    topics::{
        state::TopicState,
        table::{NamedTopic, TopicTable},
    },
};

/// More topics, or leases, than these take a while to be let go of.
const LARGE: usize = 2_000;

/// A topic of a lost shard.
type LostTopic = (TopicId, Box<TopicState>);

/// The topics of a lost shard, which leave the node's directory in slices.
#[derive(Debug)]
pub(crate) struct LostTopics {
    /// Parts of the table that are left.
    topics: TopicTable,
    /// The rest of the part before.
    part: hash_map::IntoIter<TopicId, Box<TopicState>>,
    /// Topics that were taken, by slice. To let go of them takes time.
    taken: Vec<Vec<LostTopic>>,
    /// The same holds for what is left of the leases.
    leases: Leases,
    /// How many topics there were.
    count: usize,
}

impl LostTopics {
    pub(super) fn new(mut topics: TopicTable, leases: Leases) -> Self {
        let count = topics.len();
        topics.begin_walk();
        Self { topics, part: hash_map::IntoIter::default(), taken: Vec::new(), leases, count }
    }

    /// There is so much that it is not to be let go of at once.
    pub fn is_large(&self) -> bool {
        self.count > LARGE || self.leases.len() > LARGE
    }

    /// Takes up to `most` of the topics. Only those that are in the directory are named. `None` once nothing
    /// is left: then all of it may be dropped.
    pub fn next_slice(&mut self, most: usize) -> Option<Vec<NamedTopic>> {
        let slice: Vec<LostTopic> = std::iter::from_fn(|| self.next()).take(most).collect();
        if slice.is_empty() {
            return None;
        }
        let listed = slice.iter().filter(|(_, topic)| topic.listed);
        let listed = listed.map(|(id, topic)| NamedTopic { id: *id, name: topic.name.clone() }).collect();
        self.taken.push(slice);
        Some(listed)
    }

    fn next(&mut self) -> Option<LostTopic> {
        loop {
            if let Some(topic) = self.part.next() {
                return Some(topic);
            }
            self.part = self.topics.take_part()?.into_iter();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shard::tests::shard_with_topics;

    #[test]
    fn the_topics_of_a_lost_shard_are_taken_in_slices() {
        let mut shard = shard_with_topics(10_000, 1);
        shard.contents.topics.walk(5_000, |_, _, _| ());
        let mut lost = LostTopics::new(shard.contents.topics, Leases::default());
        assert!(lost.is_large());
        let mut slices = Vec::new();
        while let Some(listed) = lost.next_slice(7) {
            slices.push(listed.len());
        }
        assert!(slices.iter().all(|slice| *slice <= 7) && slices.len() >= 1_429, "{}", slices.len());
        let taken: usize = lost.taken.iter().map(Vec::len).sum();
        assert_eq!((slices.iter().sum::<usize>(), taken), (5_000, 10_000));
    }
}
