//! A change of a topic, for those who go by it.

use forebay_types::TopicName;

use super::{
    Core, active_index::ActiveIndexes, prefixes::Prefixes, topics::TopicDirectory, watchers::Watchers,
};

/// All that goes by what is ready of topics: polls, pages, prefixes, other nodes. Each notes what it has to
/// look at.
pub(crate) struct Followers<'a> {
    /// Topics, and who waits for them.
    pub topics: &'a mut TopicDirectory,
    /// The order of active topics.
    pub active: &'a mut ActiveIndexes,
    /// The order of prefixes.
    pub prefixes: &'a mut Prefixes,
    /// Other nodes.
    pub watchers: &'a mut Watchers,
}

impl Followers<'_> {
    /// The first item of a topic may have changed, the number of its items, or whether they may be handed
    /// out.
    pub fn touch(&mut self, name: &TopicName) {
        self.topics.wake_if_waiting(name);
        self.active.mark_stale(name);
        self.prefixes.mark_stale(name);
        self.watchers.touch(name);
    }
}

impl Core {
    /// The same, where nothing else of the node is in use.
    pub fn touch(&mut self, name: &TopicName) {
        let Self { topics, active, prefixes, watchers, .. } = self;
        Followers { topics, active, prefixes, watchers }.touch(name);
    }

    /// How many polls wait for a topic, by its name or by a prefix. Another node whose polls wait for items
    /// of this one counts as one.
    pub fn asking_count(&self, name: &TopicName) -> usize {
        let by_prefix = self.prefixes.covering(name).map(|prefix| self.watchers.wanting(prefix));
        self.waiting_count(name) + self.watchers.wanting(name) + by_prefix.sum::<usize>()
    }

    /// How many polls wait for a topic, by its name or by a prefix.
    pub fn waiting_count(&self, name: &TopicName) -> usize {
        let by_prefix = self.prefixes.covering(name).map(|prefix| self.topics.waiting_count(prefix));
        self.topics.waiting_count(name) + by_prefix.sum::<usize>()
    }
}
