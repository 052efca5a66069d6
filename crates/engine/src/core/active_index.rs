//! The order of active topics. It is kept up to date only where somebody asks: a change just marks its topic.

use std::{
    collections::{BTreeSet, HashMap},
    ops::Bound,
};

use forebay_types::{Monotonic, Namespace, Topic, TopicName};

use crate::{
    api::{ActiveTopics, ActiveTopicsCall, TopicPosition},
    messages::event::Reply,
};

/// A page that waits for heads.
pub(crate) struct WaitingPage {
    /// What is asked for.
    pub call: ActiveTopicsCall,
    /// Receives the answer.
    pub reply: Reply<ActiveTopics>,
    /// Until when it waits.
    pub until: Monotonic,
}

/// The active topics of one namespace.
#[derive(Debug, Default)]
pub(crate) struct ActiveIndex {
    /// The topics, most urgent first.
    order: BTreeSet<TopicPosition>,
    /// Where each topic is in that order.
    positions: HashMap<Topic, TopicPosition>,
    /// Topics whose head may have changed.
    stale: BTreeSet<Topic>,
}

impl ActiveIndex {
    /// Of these topics, whose heads have to be looked at.
    pub fn of(topics: impl Iterator<Item = Topic>) -> Self {
        Self { stale: topics.collect(), ..Self::default() }
    }

    /// Takes the topics whose head may have changed.
    pub fn take_stale(&mut self) -> BTreeSet<Topic> {
        std::mem::take(&mut self.stale)
    }

    /// The heads of these topics are still unknown.
    pub fn set_stale(&mut self, topics: BTreeSet<Topic>) {
        self.stale = topics;
    }

    /// The topic has this position; `None`: nothing of it is ready.
    pub fn set(&mut self, topic: Topic, position: Option<TopicPosition>) {
        let old = match &position {
            Some(position) => self.positions.insert(topic, position.clone()),
            None => self.positions.remove(&topic),
        };
        if let Some(old) = old {
            self.order.remove(&old);
        }
        self.order.extend(position);
    }

    /// The topics behind a position, most urgent first.
    pub fn after(&self, position: Option<TopicPosition>) -> impl Iterator<Item = &TopicPosition> {
        let from = position.map_or(Bound::Unbounded, Bound::Excluded);
        self.order.range((from, Bound::Unbounded))
    }
}

/// The active topics of every namespace that somebody has asked for.
#[derive(Default)]
pub(crate) struct ActiveIndexes {
    /// By namespace.
    by_namespace: HashMap<Namespace, ActiveIndex>,
    /// Pages that wait for heads.
    pub pages: Vec<WaitingPage>,
}

impl ActiveIndexes {
    /// The topic's head may have changed.
    pub fn mark_stale(&mut self, name: &TopicName) {
        if let Some(index) = self.by_namespace.get_mut(&name.namespace) {
            index.stale.insert(name.topic.clone());
        }
    }

    pub fn get(&self, namespace: &Namespace) -> Option<&ActiveIndex> {
        self.by_namespace.get(namespace)
    }

    pub fn take(&mut self, namespace: &Namespace) -> Option<ActiveIndex> {
        self.by_namespace.remove(namespace)
    }

    pub fn put(&mut self, namespace: Namespace, index: ActiveIndex) {
        self.by_namespace.insert(namespace, index);
    }
}
