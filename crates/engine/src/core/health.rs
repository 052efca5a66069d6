//! How a shard is doing: its circuit breaker, and what operators are told.

use std::time::Duration;

use forebay_store::{ErrorClass, StoreError};
use forebay_types::Monotonic;

use super::breaker::Breaker;
use crate::api::BreakerPhase;

/// The health of one shard.
pub(crate) struct Health {
    /// What the shard lets through.
    breaker: Breaker,
    /// Whether its items took part in the merge when it was last maintained.
    was_merged: bool,
    /// The last failure, for operators.
    last_error: String,
    /// The server's clock is far from node time, and the log says so.
    clock_off: bool,
}

impl Health {
    /// Of a shard that nothing is known of yet.
    pub fn new(at: Monotonic) -> Self {
        Self { breaker: Breaker::new(at), was_merged: true, last_error: String::new(), clock_off: false }
    }

    /// A new owner begins with a closed breaker.
    pub fn taken_over(&mut self, at: Monotonic) {
        self.breaker = Breaker::new(at);
        self.last_error.clear();
    }

    /// The shard is lost: nothing passes.
    pub fn lost(&mut self, at: Monotonic) {
        self.breaker.open(at);
    }

    /// What the breaker lets through.
    pub fn phase(&self) -> BreakerPhase {
        self.breaker.phase()
    }

    /// The last failure, for operators.
    pub fn last_error(&self) -> &str {
        &self.last_error
    }

    /// Something failed that says nothing about the shard's commits.
    pub fn note(&mut self, error: String) {
        self.last_error = error;
    }

    /// A statement, a read or a commit failed.
    pub fn strike(&mut self, error: String, at: Monotonic) {
        self.last_error = error;
        self.breaker.strike(at);
    }

    /// A read failed. Where all connections of this node are in use, the database may be well.
    pub fn read_failed(&mut self, error: &StoreError, at: Monotonic) {
        if error.class == ErrorClass::NoConnection {
            metrics::counter!("forebay_reads_without_connection_total").increment(1);
            self.note(error.to_string());
        } else {
            self.strike(error.to_string(), at);
        }
    }

    /// A batch was committed after `took`.
    pub fn committed(&mut self, at: Monotonic, took: Duration) {
        self.breaker.committed(at, took);
    }

    /// A batch is in flight for too long.
    pub fn slow(&mut self, at: Monotonic) {
        self.breaker.open(at);
    }

    /// Time passes. `idle`: no batch is in flight. Returns whether the shard's items begin or cease to take
    /// part in the merge.
    pub fn tick(&mut self, at: Monotonic, idle: bool) -> bool {
        self.breaker.tick(at, idle);
        let merged = self.breaker.phase() != BreakerPhase::Open;
        std::mem::replace(&mut self.was_merged, merged) != merged
    }

    /// When [`Health::tick`] has something to do.
    pub fn next_wake(&self) -> Option<Monotonic> {
        self.breaker.next_wake()
    }

    /// Whether the server's clock is off. Returns whether it is from now on.
    pub fn set_clock_off(&mut self, off: bool) -> bool {
        let was_off = std::mem::replace(&mut self.clock_off, off);
        off && !was_off
    }
}
