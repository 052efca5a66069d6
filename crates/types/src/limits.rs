//! How much of everything is allowed.

use std::time::Duration;

/// The limits of a node; the defaults are what the documentation promises.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one payload.
    pub payload_bytes: usize,
    /// Bytes of one item's metadata.
    pub metadata_bytes: usize,
    /// Headers of one item.
    pub headers: usize,
    /// Bytes of one item's header names and values together.
    pub header_bytes: usize,
    /// Bytes of a topic's or a namespace's name.
    pub name_bytes: usize,
    /// Bytes of a dedupe key, a request id or a consumer's name.
    pub key_bytes: usize,
    /// Bytes of a nack's reason.
    pub reason_bytes: usize,
    /// Members of one request.
    pub members: usize,
    /// Bytes of one request.
    pub request_bytes: usize,
    /// Topics that one dequeue asks for.
    pub demands: usize,
    /// Leased items of one topic in one shard.
    pub leased_per_topic: usize,
    /// Leased items of one namespace in one shard.
    pub leased_per_tenant: usize,
    /// Leased items of one shard.
    pub leased_per_shard: usize,
    /// Topics of one namespace.
    pub topics_per_namespace: usize,
    /// The longest `delay` and `ttl`.
    pub span: Duration,
    /// The shortest lease.
    pub lease_min: Duration,
    /// The longest lease.
    pub lease_max: Duration,
    /// The lease of an item that names none.
    pub lease_default: Duration,
    /// The most failed deliveries that an item may ask for.
    pub attempts_max: u32,
    /// Failed deliveries of an item that names no number.
    pub attempts_default: u32,
    /// The longest long poll.
    pub wait_max: Duration,
    /// Bytes of items in an answer that names no number.
    pub answer_bytes: usize,
    /// The most bytes of items that an answer may ask for.
    pub answer_bytes_max: usize,
}

impl Limits {
    /// The most bytes of one item's body.
    pub const fn body_bytes(&self) -> usize {
        self.payload_bytes + self.metadata_bytes + self.header_bytes
    }
}

impl Default for Limits {
    fn default() -> Self {
        const DAY: Duration = Duration::from_secs(24 * 60 * 60);
        Self {
            payload_bytes: 256 << 10,
            metadata_bytes: 4 << 10,
            headers: 16,
            header_bytes: 4 << 10,
            name_bytes: 200,
            key_bytes: 200,
            reason_bytes: 1 << 10,
            members: 1_000,
            request_bytes: 4 << 20,
            demands: 100,
            leased_per_topic: 100_000,
            leased_per_tenant: 250_000,
            leased_per_shard: 1_000_000,
            topics_per_namespace: 1_000_000,
            span: 366 * DAY,
            lease_min: Duration::from_secs(1),
            lease_max: Duration::from_secs(12 * 60 * 60),
            lease_default: Duration::from_secs(30),
            attempts_max: 1_000,
            attempts_default: 16,
            wait_max: Duration::from_secs(20),
            answer_bytes: 3 << 20,
            answer_bytes_max: 15 << 20,
        }
    }
}
