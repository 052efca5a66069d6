//! What an item carries.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// What happens to an item whose delivery is not acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum DeliveryPolicy {
    /// Leased; it comes back when the lease ends without an ack.
    #[default]
    AtLeastOnce,
    /// Removed before it is handed out.
    AtMostOnce,
}

/// Short strings beside the payload, sorted by name.
pub type Headers = Vec<(String, String)>;

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
