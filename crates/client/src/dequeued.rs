//! An item that was delivered.

use std::collections::HashMap;

use bytes::Bytes;
use forebay_proto::{time, v1};
use forebay_types::{DeliveryPolicy, Timestamp};

/// A delivered item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedItem {
    /// The item's id.
    pub item_id: String,
    /// Identifies this delivery. Empty for an at-most-once item, which needs no ack.
    pub receipt: String,
    /// Its topic.
    pub topic: String,
    /// Its priority.
    pub priority: i32,
    /// The content from the producer.
    pub payload: Bytes,
    /// More content, from the producer or the last nack.
    pub metadata: Bytes,
    /// Short strings beside the payload.
    pub headers: HashMap<String, String>,
    /// Numbers the deliveries from 1.
    pub attempt: u32,
    /// Earlier deliveries that were nacked or ran out. Releases do not count.
    pub failures: u32,
    /// When the item was enqueued.
    pub enqueued_at: Timestamp,
    /// When the lease ends; `None` for an at-most-once item.
    pub lease_expires_at: Option<Timestamp>,
    /// When the item expires; `None`: never.
    pub expires_at: Option<Timestamp>,
    /// Whether the delivery must be acked.
    pub policy: DeliveryPolicy,
}

impl ReceivedItem {
    pub(crate) fn from_proto(item: v1::DequeuedItem) -> Self {
        Self {
            policy: match item.delivery_policy() {
                v1::DeliveryPolicy::AtMostOnce => DeliveryPolicy::AtMostOnce,
                v1::DeliveryPolicy::AtLeastOnce | v1::DeliveryPolicy::Unspecified => {
                    DeliveryPolicy::AtLeastOnce
                }
            },
            item_id: item.item_id,
            receipt: item.receipt,
            topic: item.topic,
            priority: item.priority,
            payload: item.payload,
            metadata: item.metadata,
            headers: item.headers,
            attempt: item.attempt,
            failures: item.failures,
            enqueued_at: item.enqueued_at.map(time::from_timestamp).unwrap_or_default(),
            lease_expires_at: item.lease_expires_at.map(time::from_timestamp),
            expires_at: item.expires_at.map(time::from_timestamp),
        }
    }
}
