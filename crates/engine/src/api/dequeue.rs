//! Dequeue: what a consumer asks for, and what it is given.

use std::time::Duration;

use forebay_types::{Body, DeliveryPolicy, ItemId, Namespace, Receipt, Timestamp, Topic, TopicName};

use super::{CallerFrom, HeadPosition};

/// A dequeue call. The topics are distinct.
#[derive(Debug, Clone, Default)]
pub struct DequeueCall {
    /// The tenant.
    pub namespace: Namespace,
    /// The topics that are asked for, in the order of the answer.
    pub demands: Vec<Demand>,
    /// How long to wait if nothing is there. Already cut to the limit and to the call's deadline.
    pub wait: Duration,
    /// Overrides the items' own lease duration.
    pub lease: Option<Duration>,
    /// The consumer that asks; may be empty.
    pub consumer: String,
    /// From where, for operators.
    pub from: CallerFrom,
    /// At most so many bytes of bodies, but at least one item.
    pub max_bytes: usize,
    /// Another node asks, for one of its polls. `None`: a client does.
    pub fetch: Option<FetchBound>,
}

/// The bounds of a call by which another node leases items. It is served by this node's own shards alone.
#[derive(Debug, Clone, Copy)]
pub struct FetchBound {
    /// The link that the node follows topics by.
    pub link: u64,
    /// Only items that come before this one.
    pub before: Option<HeadPosition>,
}

/// One topic of a dequeue call.
#[derive(Debug, Clone)]
pub struct Demand {
    /// The topic.
    pub topic: Topic,
    /// At most so many items.
    pub max_items: usize,
}

/// One item that is handed out.
#[derive(Debug, Clone)]
pub struct DeliveredItem {
    /// The item.
    pub id: ItemId,
    /// Names this delivery; `None` for an at-most-once item.
    pub receipt: Option<Receipt>,
    /// Its topic.
    pub topic: Topic,
    /// Its priority.
    pub priority: i32,
    /// Its rank in the delivery order.
    pub rank: i64,
    /// Its payload, headers and metadata.
    pub body: Body,
    /// Numbers the deliveries from 1.
    pub attempt: u32,
    /// Earlier deliveries that failed.
    pub failures: u32,
    /// When it was enqueued.
    pub enqueued_at: Timestamp,
    /// When the lease ends; `None` for an at-most-once item.
    pub lease_expires_at: Option<Timestamp>,
    /// How long the lease lasts from its begin. Zero for an at-most-once item of this node's shards.
    pub lease: Duration,
    /// When it expires.
    pub expires_at: Option<Timestamp>,
    /// Whether it needs an ack.
    pub policy: DeliveryPolicy,
}

impl DequeueCall {
    /// The full names of the topics that are asked for, in the order of the demands.
    pub(crate) fn topic_names(&self) -> Vec<TopicName> {
        let name =
            |demand: &Demand| TopicName { namespace: self.namespace.clone(), topic: demand.topic.clone() };
        self.demands.iter().map(name).collect()
    }
}
