//! An item that can be delivered, as memory holds it.

use forebay_store::{LeaseEntry, ReadyRow};
use forebay_types::{Body, DeliveryPolicy, ItemAttributes, Key, Timestamp};

use crate::planted::{Bug, on};

/// Bytes of an item in the ready index beside its body: its share of the tree's nodes and the allocator's
/// overhead.
pub(crate) const ITEM_OVERHEAD_BYTES: usize = 320;

/// A deliverable item.
#[derive(Debug, Clone)]
pub(crate) struct ReadyItem {
    /// Its attributes beside its place and its body.
    pub attributes: ItemAttributes,
    /// Bytes of the body, cached or not.
    pub bytes: u32,
    /// The body, while the memory budget allows it.
    pub body: Option<Body>,
}

impl ReadyItem {
    /// An item that returns from a lease. Its body stayed in the store.
    pub fn from_lease(lease: &LeaseEntry, failures: u32) -> Self {
        let attributes = ItemAttributes { failures, ..lease.attributes };
        Self { attributes, bytes: lease.bytes, body: None }
    }

    /// An item as the store has it.
    pub fn from_row(row: ReadyRow) -> (Key, Self) {
        (row.key, Self { attributes: row.attributes, bytes: row.bytes, body: row.body })
    }

    /// Bytes that it holds in memory.
    pub fn cost(&self) -> usize {
        ITEM_OVERHEAD_BYTES + self.body.as_ref().map_or(0, Body::bytes)
    }

    /// Its time to live is over, so it is not delivered any more.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.attributes.is_expired(now) && !on(Bug::ExpiryIgnored)
    }

    /// It is removed before it is handed out.
    pub fn is_at_most_once(&self) -> bool {
        self.attributes.policy == DeliveryPolicy::AtMostOnce
    }
}
