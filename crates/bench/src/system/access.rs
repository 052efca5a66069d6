//! Which node of a cluster a client calls.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The nodes that clients call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Access {
    /// Producers and consumers of a topic call one node, which stores its items: nothing goes from node to
    /// node.
    #[default]
    Near,
    /// Each call goes to the next node.
    Anywhere,
    /// The calls of producers go to all nodes in turn, those of consumers to one.
    ConsumersAtOne,
}

/// Calls that went to some node.
#[derive(Debug, Default)]
pub struct Turns(AtomicUsize);

impl Access {
    /// The node for a producer's next call, of so many.
    pub fn of_producer(self, topic: u32, nodes: usize, turns: &Turns) -> usize {
        match self {
            Self::Near => topic as usize % nodes,
            Self::Anywhere | Self::ConsumersAtOne => turns.next(nodes),
        }
    }

    /// The node for the next call of a consumer of these topics.
    pub fn of_consumer(self, topics: &[u32], nodes: usize, turns: &Turns) -> usize {
        match self {
            Self::Near => topics.first().map_or(0, |topic| *topic as usize % nodes),
            Self::Anywhere => turns.next(nodes),
            Self::ConsumersAtOne => 0,
        }
    }
}

impl Turns {
    /// The next of so many.
    pub fn next(&self, count: usize) -> usize {
        self.0.fetch_add(1, Ordering::Relaxed) % count.max(1)
    }
}
