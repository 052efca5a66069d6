//! Flags and limits that make workers stop or wait.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use tokio::sync::{Semaphore, SemaphorePermit};

/// Tells workers to stop.
#[derive(Debug)]
pub struct StopFlag(AtomicBool);

impl StopFlag {
    /// A flag that is not set.
    pub fn new() -> Arc<Self> {
        Arc::new(Self(AtomicBool::new(false)))
    }

    /// Whether workers must stop.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// Tells workers to stop.
    pub fn set(&self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Limits how many items are in the queue at a time.
#[derive(Debug)]
pub struct InFlightLimit(Semaphore);

impl InFlightLimit {
    /// A limit of `items`.
    pub fn new(items: usize) -> Self {
        Self(Semaphore::new(items))
    }

    /// Allows `items` more.
    pub fn release(&self, items: usize) {
        self.0.add_permits(items);
    }

    /// Waits until `items` are allowed. Returns false once the limit is closed.
    pub async fn acquire(&self, items: usize) -> bool {
        self.0.acquire_many(items as u32).await.map(SemaphorePermit::forget).is_ok()
    }

    /// Ends all calls that wait, and all later ones.
    pub fn close(&self) {
        self.0.close();
    }
}
