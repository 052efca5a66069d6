//! Which node of a cluster a client calls.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Answers in a row that have a consumer move.
const MOVES_AFTER: u32 = 3;

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
    /// As the Rust client does. A producer's calls have ids, name the shard that the last answer proposes,
    /// and go to its owner. A consumer calls one node, and moves to the one that three answers name.
    AsHinted,
}

/// Calls that went to some node.
#[derive(Debug, Default)]
pub struct Turns(AtomicUsize);

impl Access {
    /// The node for a producer's next call, of so many.
    pub fn of_producer(self, topic: u32, nodes: usize, turns: &Turns) -> usize {
        match self {
            Self::Near => topic as usize % nodes,
            Self::Anywhere | Self::ConsumersAtOne | Self::AsHinted => turns.next(nodes),
        }
    }

    /// The node for the next call of a consumer of these topics.
    pub fn of_consumer(self, topics: &[u32], nodes: usize, turns: &Turns, hinted: &HintedNode) -> usize {
        match self {
            Self::Near => topics.first().map_or(0, |topic| *topic as usize % nodes),
            Self::Anywhere => turns.next(nodes),
            Self::ConsumersAtOne => 0,
            Self::AsHinted => hinted.node(),
        }
    }
}

/// The node that a consumer calls which goes where answers say that its items are.
#[derive(Debug, Default)]
pub struct HintedNode {
    /// The node.
    node: usize,
    /// The other one that the last answers named, and how many did.
    named: Option<(usize, u32)>,
}

impl HintedNode {
    /// The node.
    pub fn node(&self) -> usize {
        self.node
    }

    /// An answer names this node.
    pub fn learn(&mut self, node: usize) {
        let before = self.named.filter(|(named, _)| *named == node).map_or(0, |(_, answers)| answers);
        self.named = (node != self.node).then_some((node, before + 1));
        if before + 1 >= MOVES_AFTER && node != self.node {
            (self.node, self.named) = (node, None);
        }
    }
}

impl Turns {
    /// The next of so many.
    pub fn next(&self, count: usize) -> usize {
        self.0.fetch_add(1, Ordering::Relaxed) % count.max(1)
    }
}
