//! An item to enqueue.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use forebay_proto::{time, v1};
use forebay_types::{DeliveryPolicy, Timestamp};

/// An item to enqueue. The server fills in defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewItem {
    /// The topic. 1 to 200 bytes of `[A-Za-z0-9._:/-]`.
    pub topic: String,
    /// Smaller numbers are delivered first.
    pub priority: i32,
    /// The content, at most 256 KiB.
    pub payload: Bytes,
    /// More content, at most 4 KiB. A nack may replace it.
    pub metadata: Bytes,
    /// Short strings beside the payload, at most 16 entries and 4 KiB.
    pub headers: BTreeMap<String, String>,
    /// The earliest delivery.
    pub schedule: Schedule,
    /// How long a consumer may work on it: 1 s to 12 h, by default 30 s.
    pub lease: Option<Duration>,
    /// Time to live from arrival. An expired item is never delivered.
    pub ttl: Option<Duration>,
    /// Whether a delivery must be acked.
    pub policy: DeliveryPolicy,
    /// After this many failed deliveries the item becomes a dead letter; 0: the topic's default, 16.
    pub max_attempts: u32,
    /// A second item of the topic with this key is not stored within the dedupe window.
    pub dedupe_key: Option<String>,
    /// Store it on exactly this shard.
    pub shard: Option<u32>,
}

/// The earliest delivery of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Schedule {
    /// At once.
    #[default]
    Now,
    /// This long after its arrival.
    After(Duration),
    /// Not before this time.
    At(Timestamp),
}

impl NewItem {
    /// An item of priority 0 that may be delivered at once.
    pub fn new(topic: impl Into<String>, payload: impl Into<Bytes>) -> Self {
        Self {
            topic: topic.into(),
            priority: 0,
            payload: payload.into(),
            metadata: Bytes::new(),
            headers: BTreeMap::new(),
            schedule: Schedule::Now,
            lease: None,
            ttl: None,
            policy: DeliveryPolicy::AtLeastOnce,
            max_attempts: 0,
            dedupe_key: None,
            shard: None,
        }
    }

    /// The same with a priority.
    pub fn priority(self, priority: i32) -> Self {
        Self { priority, ..self }
    }

    /// The same, delivered after `delay` at the earliest.
    pub fn delay(self, delay: Duration) -> Self {
        Self { schedule: Schedule::After(delay), ..self }
    }

    /// The same with a time to live.
    pub fn ttl(self, ttl: Duration) -> Self {
        Self { ttl: Some(ttl), ..self }
    }

    /// The same with a dedupe key.
    pub fn dedupe_key(self, key: impl Into<String>) -> Self {
        Self { dedupe_key: Some(key.into()), ..self }
    }

    pub(crate) fn into_proto(self) -> v1::EnqueueItem {
        use v1::enqueue_item::Schedule as Proto;
        v1::EnqueueItem {
            topic: self.topic,
            priority: self.priority,
            payload: self.payload,
            metadata: self.metadata,
            schedule: match self.schedule {
                Schedule::Now => None,
                Schedule::After(delay) => Some(Proto::Delay(time::to_duration(delay))),
                Schedule::At(at) => Some(Proto::DeliverAfter(time::to_timestamp(at))),
            },
            lease_duration: self.lease.map(time::to_duration),
            ttl: self.ttl.map(time::to_duration),
            delivery_policy: match self.policy {
                DeliveryPolicy::AtLeastOnce => v1::DeliveryPolicy::AtLeastOnce.into(),
                DeliveryPolicy::AtMostOnce => v1::DeliveryPolicy::AtMostOnce.into(),
            },
            max_attempts: self.max_attempts,
            dedupe_key: self.dedupe_key.unwrap_or_default(),
            headers: self.headers.into_iter().collect(),
            shard: self.shard,
        }
    }
}
