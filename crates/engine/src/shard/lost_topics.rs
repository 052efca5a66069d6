//! The topics of a shard that was lost.

use forebay_types::TopicId;

use super::{
    leases::Leases,
    topics::{NamedTopic, TopicState, TopicTable},
};

/// More topics than these take a while to be let go of.
const LARGE: usize = 2_000;

/// The topics of a lost shard, which leave the node's directory in slices.
#[derive(Debug)]
pub(crate) struct LostTopics {
    /// Those that are left.
    topics: TopicTable,
    /// Those that were taken. To let go of them takes time.
    taken: Vec<(TopicId, Box<TopicState>)>,
    /// The same holds for what is left of the leases.
    _leases: Leases,
}

impl LostTopics {
    pub(super) fn new(mut topics: TopicTable, leases: Leases) -> Self {
        topics.begin_walk();
        Self { topics, taken: Vec::new(), _leases: leases }
    }

    /// So many were taken that they are not to be let go of at once.
    pub fn is_large(&self) -> bool {
        self.taken.len() > LARGE
    }

    /// Takes about `most` of the topics. Only those that are in the directory are named. `None` once nothing
    /// is left: then all of it may be dropped.
    pub fn next_slice(&mut self, most: usize) -> Option<Vec<NamedTopic>> {
        let slice = self.topics.take_slice(most);
        if slice.is_empty() {
            return None;
        }
        let listed = slice.iter().filter(|(_, topic)| topic.listed);
        let listed = listed.map(|(id, topic)| NamedTopic { id: *id, name: topic.name.clone() }).collect();
        self.taken.extend(slice);
        Some(listed)
    }
}
