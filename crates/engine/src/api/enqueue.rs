//! Enqueue: what a caller hands in, and what it gets back.

use std::time::Duration;

use forebay_types::{Body, DeliveryPolicy, ItemId, Namespace, Schedule, ShardId, Timestamp, Topic};

/// An enqueue call: checked, but not yet placed.
#[derive(Debug, Clone, Default)]
pub struct EnqueueCall {
    /// The tenant.
    pub namespace: Namespace,
    /// The items to store.
    pub items: Vec<NewItem>,
    /// Makes a repeated call harmless. Not with an item that names a dedupe key or a shard.
    pub request_id: Option<String>,
    /// The caller names the shard of all items. It is the home of the request id then: a repeated call names
    /// it again.
    pub shard: Option<ShardId>,
    /// Another node has placed the items in this shard: they are stored there or nowhere.
    pub only: Option<ShardId>,
    /// Where items that any shard may take are not placed.
    pub avoid: Avoid,
}

/// Where items that any shard may take are not placed. A name, a key or a request id binds the others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Avoid {
    /// In these shards.
    pub shards: Vec<ShardId>,
    /// In shards of the nodes at these addresses, `host:port`.
    pub nodes: Vec<String>,
    /// In shards of other nodes, if this one has any that take items.
    pub others: bool,
}

/// An item to store.
#[derive(Debug, Clone)]
pub struct NewItem {
    /// Its topic.
    pub topic: Topic,
    /// Smaller numbers are delivered first.
    pub priority: i32,
    /// Its payload, headers and metadata.
    pub body: Body,
    /// When it may be delivered.
    pub schedule: Schedule,
    /// Its lease duration.
    pub lease: Duration,
    /// The item names none: `lease` is the node's default, and the topic's own goes before it.
    pub lease_is_default: bool,
    /// Its time to live, from arrival.
    pub ttl: Option<Duration>,
    /// Whether it needs an ack.
    pub policy: DeliveryPolicy,
    /// How many deliveries may fail.
    pub max_attempts: u32,
    /// The item names no number: `max_attempts` is the node's default, and the topic's own goes before it.
    pub attempts_are_default: bool,
    /// A second item with this key inside the window is not stored. Not with `shard`.
    pub dedupe_key: Option<String>,
    /// Store it here and nowhere else.
    pub shard: Option<ShardId>,
    /// The rank that the node gave it that took the call. `None`: this one is that node.
    pub rank: Option<i64>,
}

/// An item that is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EnqueueOutcome {
    /// Its id, or that of the item that was there before.
    pub id: ItemId,
    /// It was there before.
    pub duplicate: bool,
    /// When that one was stored. `None`: it is no duplicate, or a node of the release before says so.
    pub first_at: Option<Timestamp>,
}

impl EnqueueOutcome {
    /// A new item.
    pub const fn new(id: ItemId) -> Self {
        Self { id, duplicate: false, first_at: None }
    }
}
