//! News of topics between nodes: which items are ready, and how many are wanted.

use std::sync::Arc;

use forebay_types::TopicName;
use tokio::sync::mpsc;

/// The place of an item in the delivery order, as nodes tell it to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct HeadPosition {
    /// Smaller numbers are delivered first.
    pub priority: i32,
    /// Then the smaller rank.
    pub rank: i64,
}

impl HeadPosition {
    /// The place of all items of a priority, behind each of them: topics of a prefix take turns.
    pub(crate) const fn of_prefix(priority: i32) -> Self {
        // Far behind the rank of any item, and not the last of all: others may come behind it.
        Self { priority, rank: i64::MAX / 2 }
    }
}

/// The ready items of a topic in the shards of one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadyState {
    /// The best of them. `None`: there are none.
    pub head: Option<HeadPosition>,
    /// About how many there are.
    pub ready: u32,
    /// Of a prefix: the items of a round in which each topic with such a best item has its turn. Of a topic:
    /// 0.
    pub round: u32,
}

/// News of a topic, for another node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicHead {
    /// The topic.
    pub name: TopicName,
    /// Its ready items.
    pub state: ReadyState,
    /// How many of them are offered to that node, and for a moment to no other.
    pub offered: u32,
}

/// A node's wish to be told of a topic by another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    /// The topic.
    pub name: TopicName,
    /// Items that polls wait for at that node: so many may be offered to it. `None`: it is not interested any
    /// more.
    pub wanted: Option<u32>,
    /// The payer of what that node keeps of it. `None`: the namespace.
    pub payer: Option<Arc<str>>,
}

/// The way by which a node subscribes to topics of another one.
#[derive(Debug, Clone)]
pub struct PeerLink {
    /// The number that the other node gave to it.
    pub number: u64,
    /// Receives what changes.
    pub subscriptions: mpsc::Sender<Vec<Subscription>>,
}
