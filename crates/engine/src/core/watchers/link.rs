//! The way to a node that follows topics.

use std::collections::{BTreeMap, BTreeSet};

use forebay_types::TopicName;
use tokio::sync::mpsc;

use crate::api::{ReadyState, TopicHead};

/// Topics of one message.
const HEADS_MAX: usize = 512;

/// The way to a node.
#[derive(Debug)]
pub(super) struct Link {
    /// The topics that it follows.
    pub topics: BTreeSet<TopicName>,
    /// News for it: of each topic the newest, and all that it is offered.
    untold: BTreeMap<TopicName, (ReadyState, u32)>,
    /// The way to it.
    heads: mpsc::Sender<Vec<TopicHead>>,
}

impl Link {
    /// It follows nothing yet.
    pub fn new(heads: mpsc::Sender<Vec<TopicHead>>) -> Self {
        Self { topics: BTreeSet::new(), untold: BTreeMap::new(), heads }
    }

    /// It is to be told this, once there is room on the way.
    pub fn tell(&mut self, name: &TopicName, state: ReadyState, offered: u32) {
        let untold = self.untold.entry(name.clone()).or_default();
        *untold = (state, untold.1 + offered);
    }

    /// It follows a topic no more.
    pub fn forget(&mut self, name: &TopicName) {
        self.topics.remove(name);
        self.untold.remove(name);
    }

    /// Sends as much as there is room for. Returns whether something is left.
    pub fn flush(&mut self) -> bool {
        while !self.untold.is_empty()
            && let Ok(room) = self.heads.try_reserve()
        {
            let next = std::iter::from_fn(|| self.untold.pop_first()).take(HEADS_MAX);
            room.send(next.map(|(name, (state, offered))| TopicHead { name, state, offered }).collect());
        }
        !self.untold.is_empty() && !self.heads.is_closed()
    }
}
