//! How a producer is configured.

use std::time::Duration;

/// How a producer buffers and batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProducerConfig {
    /// Items that may be buffered, including those in flight. `Producer::send` waits while it is full.
    pub buffer_items: usize,
    /// The same in bytes.
    pub buffer_bytes: usize,
    /// Calls in flight at a time. With 1, items are stored in the order in which they were sent. With more,
    /// roughly in that order.
    pub calls: usize,
    /// Items of one call, at most 1,000.
    pub batch_items: usize,
    /// Bytes of one call, at most 4 MiB.
    pub batch_bytes: usize,
    /// How long a batch that is not full waits for more items. Zero: not at all. Batches still fill while all
    /// calls are in flight.
    pub linger: Duration,
}

impl Default for ProducerConfig {
    fn default() -> Self {
        Self {
            buffer_items: 10_000,
            buffer_bytes: 32 << 20,
            calls: 4,
            batch_items: 1_000,
            batch_bytes: (4 << 20) - (64 << 10),
            linger: Duration::ZERO,
        }
    }
}
