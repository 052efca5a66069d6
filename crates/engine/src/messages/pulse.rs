//! Whether the event loop still turns, as tasks beside it see it.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// Counts the turns of the event loop. Clones count the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct LoopPulse(Arc<AtomicU64>);

impl LoopPulse {
    /// A turn ended.
    pub fn beat(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// How many turns have ended.
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
