//! The load of a run, and how long each of its phases takes.

use std::time::Duration;

/// Load by producers and consumers.
#[derive(Debug, Clone)]
pub struct Load {
    /// Seed of all random values.
    pub seed: u64,
    /// Bytes per payload.
    pub item_bytes: usize,
    /// Items per call.
    pub batch: usize,
    /// Number of topics; each producer and each consumer has its share of them.
    pub topics: u32,
    /// Number of priorities, drawn evenly.
    pub priorities: u8,
    /// Tasks that enqueue, each with one call in flight.
    pub producers: u32,
    /// Tasks that dequeue and ack, each with one call in flight.
    pub consumers: u32,
    /// Maximum number of items in the queue: a run measures items that pass through, not a growing backlog.
    pub max_queued: usize,
}

impl Load {
    /// The topics of worker number `worker` out of `workers`: every `workers`-th topic. If there are more
    /// workers than topics, workers share topics.
    pub fn share(&self, worker: u32, workers: u32) -> Vec<u32> {
        if workers > self.topics {
            vec![worker % self.topics]
        } else {
            (worker..self.topics).step_by(workers as usize).collect()
        }
    }
}

/// The phases of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Phases {
    /// Time before the measurement.
    pub warm_up: Duration,
    /// Measured time.
    pub measured: Duration,
}
