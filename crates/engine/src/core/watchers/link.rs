//! The way to a node that follows topics.

use std::collections::BTreeSet;

use forebay_types::TopicName;
use tokio::sync::mpsc;

use crate::{
    api::{ReadyState, TopicHead},
    core::news::NewsQueue,
};

/// The way to a node.
#[derive(Debug)]
pub(super) struct Link {
    /// The topics that it follows.
    pub topics: BTreeSet<TopicName>,
    /// News for it: of each topic the newest, and all that it is offered.
    pub news: NewsQueue<TopicHead>,
}

impl Link {
    /// It follows nothing yet.
    pub fn new(heads: mpsc::Sender<Vec<TopicHead>>) -> Self {
        Self { topics: BTreeSet::new(), news: NewsQueue::new(heads) }
    }

    /// It is to be told this, once there is room on the way.
    pub fn tell(&mut self, name: &TopicName, state: ReadyState, offered: u32) {
        let before = self.news.remove(name).map_or(0, |before| before.offered);
        self.news.insert(name.clone(), TopicHead { name: name.clone(), state, offered: before + offered });
    }

    /// It follows a topic no more.
    pub fn forget(&mut self, name: &TopicName) {
        self.topics.remove(name);
        self.news.remove(name);
    }
}
