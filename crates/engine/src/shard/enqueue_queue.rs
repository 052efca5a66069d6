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
    fn namespaces_take_turns_and_what_is_put_back_comes_first() {
        let mut queue = EnqueueQueue::default();
        for (namespace, call) in [("a", 1), ("a", 2), ("a", 3), ("b", 4)] {
            queue.push(part(namespace, call));
        }
        let first = queue.pop().unwrap();
        assert_eq!(first.call, 1);
        queue.unpop(first);
        let calls: Vec<u64> = queue.drain().iter().map(|part| part.call).collect();
        assert_eq!(calls.len(), 4);
        assert_eq!(calls[0], 1);
        assert!(calls.iter().position(|call| *call == 4) < calls.iter().position(|call| *call == 3));
    }
}
