//! Leases of items for another node.

use std::{sync::Arc, time::Duration};

use forebay_types::{Refusal, TopicName};

use super::{DeliveredItem, Demand, DequeueCall, FetchBound, HeadPosition, ReadyState};

/// A call of one node that leases items of a topic in another node's own shards. It does not wait for items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchCall {
    /// The topic.
    pub name: TopicName,
    /// At most so many items.
    pub max_items: usize,
    /// At most so many bytes of bodies, but at least one item.
    pub max_bytes: usize,
    /// Only items that come before this one.
    pub before: Option<HeadPosition>,
    /// Overrides the items' own lease duration.
    pub lease: Option<Duration>,
    /// The consumer that asks; may be empty.
    pub consumer: String,
    /// The link over which the calling node is told of the topic: this answers its offer.
    pub link: u64,
    /// The payer of what it takes at the node. `None`: the namespace.
    pub payer: Option<Arc<str>>,
}

/// Items that were leased for another node.
#[derive(Debug, Clone)]
pub struct FetchedItems {
    /// The items. Those that are to be delivered at most once are leased too.
    pub items: Vec<DeliveredItem>,
    /// The items that are left. `None`: that is not known yet.
    pub left: Option<ReadyState>,
}

/// Why another node leased nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FetchError {
    /// It says so.
    Refused(Refusal),
    /// It did not answer: leases that it made end by themselves.
    Failed,
}

impl From<FetchCall> for DequeueCall {
    fn from(call: FetchCall) -> Self {
        let FetchCall {
            name: TopicName { namespace, topic },
            max_items,
            max_bytes,
            before,
            lease,
            consumer,
            link,
            payer: _,
        } = call;
        let demands = vec![Demand { topic, max_items }];
        let fetch = Some(FetchBound { link, before });
        Self { namespace, demands, lease, consumer, max_bytes, fetch, ..Self::default() }
    }
}
