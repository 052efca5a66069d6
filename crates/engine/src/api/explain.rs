//! ExplainTopic and ExplainItem: what this node knows of why items are not delivered.

use forebay_types::{ItemId, Key, ShardId, Timestamp, TopicName};

use super::MissingSource;

/// How a topic stands at this node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TopicStanding {
    /// In each shard that the node owns.
    pub shards: Vec<Standing>,
    /// Dequeue calls that wait for the topic here.
    pub polls: u64,
    /// Nodes whose items do not come to them.
    pub missing_sources: Vec<MissingSource>,
}

/// How a topic stands in one shard that this node owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// The shard.
    pub shard: ShardId,
    /// Items that could be leased now.
    pub ready: u64,
    /// Items that are leased.
    pub leased: u64,
    /// Items that wait for their time.
    pub scheduled: u64,
    /// Dead letters.
    pub dead: u64,
    /// When the item became ready that the shard delivers next, as far as that is known.
    pub head_ready_at: Option<Timestamp>,
    /// The first ready item has to be read before it can be delivered.
    pub head_unknown: bool,
    /// The circuit breaker holds the shard's items back: since when. What failed is for operators alone.
    pub breaker: Option<Timestamp>,
    /// The shard is about to be handed over to another node.
    pub handed_over: bool,
    /// Why no more items can be leased.
    pub lease_refusal: Option<String>,
    /// Dequeue calls that wait for items of this node. All those of another node count as one.
    pub waiting: u64,
    /// The lease that ends next: its consumer, which may be empty, and when it ends.
    pub next_lease: Option<(String, Timestamp)>,
    /// When the next scheduled item is due, if nothing is ready and it could be found out.
    pub next_due_at: Option<Timestamp>,
}

/// Asks how many items are delivered before one that is ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BehindCall {
    /// Its topic.
    pub name: TopicName,
    /// The item.
    pub id: ItemId,
    /// Its place in the delivery order.
    pub key: Key,
}
