//! Enqueues that wait for a batch, in turn by namespace, so that no tenant waits behind all of another's.

use std::collections::{HashMap, VecDeque};

use forebay_types::Namespace;

use super::work::ShardEnqueue;

/// Enqueues that wait.
#[derive(Debug, Default)]
pub(super) struct EnqueueQueue {
    /// Namespaces that have something waiting, in the order of their turns.
    turns: VecDeque<Namespace>,
    /// What waits of each, first come first.
    parts: HashMap<Namespace, VecDeque<ShardEnqueue>>,
    /// Items that wait.
    items: usize,
}

impl EnqueueQueue {
    /// Items that wait.
    pub fn items(&self) -> usize {
        self.items
    }

    pub fn push(&mut self, part: ShardEnqueue) {
        self.items += part.items.len();
        let queue = self.parts.entry(part.namespace.clone()).or_default();
        if queue.is_empty() {
            self.turns.push_back(part.namespace.clone());
        }
        queue.push_back(part);
    }

    /// Puts back, in front, what [`EnqueueQueue::pop`] gave.
    pub fn unpop(&mut self, part: ShardEnqueue) {
        self.items += part.items.len();
        let queue = self.parts.entry(part.namespace.clone()).or_default();
        if queue.is_empty() {
            self.turns.push_front(part.namespace.clone());
        }
        queue.push_front(part);
    }

    /// The first part of the namespace whose turn it is.
    pub fn pop(&mut self) -> Option<ShardEnqueue> {
        let namespace = self.turns.pop_front()?;
        let queue = self.parts.get_mut(&namespace)?;
        let part = queue.pop_front()?;
        if queue.is_empty() {
            self.parts.remove(&namespace);
        } else {
            self.turns.push_back(namespace);
        }
        self.items -= part.items.len();
        Some(part)
    }

    /// What waits, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &ShardEnqueue> {
        self.parts.values().flatten()
    }

    /// Takes everything that waits.
    pub fn drain(&mut self) -> Vec<ShardEnqueue> {
        std::iter::from_fn(|| self.pop()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(namespace: &str, call: u64) -> ShardEnqueue {
        ShardEnqueue { call, namespace: namespace.into(), request: None, items: Vec::new() }
    }

    #[test]
    fn namespaces_take_turns() {
        let mut queue = EnqueueQueue::default();
        for (namespace, call) in [("a", 1), ("a", 2), ("a", 3), ("b", 4), ("b", 5)] {
            queue.push(part(namespace, call));
        }
        let calls: Vec<u64> = queue.drain().iter().map(|part| part.call).collect();
        assert_eq!(calls, [1, 4, 2, 5, 3]);
    }

    #[test]
    fn what_is_put_back_keeps_its_place_in_its_namespace() {
        let mut queue = EnqueueQueue::default();
        queue.push(part("a", 1));
        queue.push(part("a", 2));
        let first = queue.pop().unwrap();
        queue.unpop(first);
        let calls: Vec<u64> = queue.drain().iter().map(|part| part.call).collect();
        assert_eq!(calls, [1, 2]);
    }
}
