//! The body and the attributes of an item.

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// The fate of an item whose delivery is not acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum DeliveryPolicy {
    /// Leased. It is ready again when the lease ends without an ack.
    #[default]
    AtLeastOnce,
    /// Removed before it is handed out.
    AtMostOnce,
}

/// For what a scheduled item waits. It matters where the time steps: a span lasts on, a point in time stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum Waits {
    /// For a time that its producer named, before its first delivery; for the end of a delay after it.
    #[default]
    Unsaid,
    /// For the end of a delay.
    Span,
    /// For a time that was named.
    Point,
}

/// The attributes of an item beside its place in the delivery order and its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemAttributes {
    /// When it was enqueued.
    pub enqueued_at: Timestamp,
    /// When it expires.
    pub expires_at: Option<Timestamp>,
    /// Its own lease duration, in milliseconds.
    pub lease_ms: u32,
    /// How many deliveries may fail before it becomes a dead letter.
    pub max_attempts: u32,
    /// Whether it needs an ack.
    pub policy: DeliveryPolicy,
    /// Deliveries that have begun.
    pub deliveries: u32,
    /// Deliveries that have failed.
    pub failures: u32,
    /// How often it was redriven. 0 of a delivery that an earlier owner of its shard began: the item's row
    /// has it.
    #[serde(skip)]
    pub redrives: u16,
    /// The last operation that gave it other values, in short; 0: none. As little is known of it.
    #[serde(skip)]
    pub updated_by: u32,
    /// For what it waits where it is scheduled. As little is known of it.
    #[serde(skip)]
    pub waits: Waits,
}

impl ItemAttributes {
    /// Its own lease duration.
    pub fn lease(&self) -> Duration {
        Duration::from_millis(u64::from(self.lease_ms))
    }

    /// Its time to live is over.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }
}

/// Short strings beside the payload, sorted by name.
pub type Headers = Vec<(String, String)>;

/// The headers that name the trace in which an item was created, as the W3C defines them.
pub const TRACE_HEADERS: [&str; 2] = ["traceparent", "tracestate"];

/// The bytes of an item, which the queue carries but never looks into.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Body {
    /// At most `Limits::payload_bytes`.
    pub payload: Bytes,
    /// At most `Limits::metadata_bytes`; a nack may replace it.
    pub metadata: Bytes,
    /// At most `Limits::headers` entries.
    pub headers: Headers,
}

impl Body {
    /// How many bytes of names, values and contents it holds.
    pub fn bytes(&self) -> usize {
        let headers: usize = self.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        self.payload.len() + self.metadata.len() + headers
    }
}
