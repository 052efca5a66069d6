//! Report of what a consumer did.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::delivery::Outcome;

/// Report of what a consumer did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ConsumerReport {
    /// Items that are done: acked, or handled at most once.
    pub acked: u64,
    /// Items that failed and are delivered again later.
    pub retried: u64,
    /// Items sent to the dead letters.
    pub rejected: u64,
    /// Items returned unhandled.
    pub released: u64,
    /// Deliveries that ended before they were settled: their items may be handled again.
    pub lost: u64,
    /// Deliveries whose settlement failed: their items are delivered again when the leases end, unless the
    /// settlement took effect after all.
    pub unsettled: u64,
}

/// Counts what a consumer did so far.
#[derive(Debug, Default)]
pub(super) struct ReportCounters {
    /// Counts `ConsumerReport::acked`.
    acked: AtomicU64,
    /// Counts `ConsumerReport::retried`.
    retried: AtomicU64,
    /// Counts `ConsumerReport::rejected`.
    rejected: AtomicU64,
    /// Counts `ConsumerReport::released`.
    released: AtomicU64,
    /// Counts `ConsumerReport::lost`.
    lost: AtomicU64,
    /// Counts `ConsumerReport::unsettled`.
    unsettled: AtomicU64,
}

impl ReportCounters {
    /// The counts as of now.
    pub(super) fn report(&self) -> ConsumerReport {
        ConsumerReport {
            acked: self.acked.load(Relaxed),
            retried: self.retried.load(Relaxed),
            rejected: self.rejected.load(Relaxed),
            released: self.released.load(Relaxed),
            lost: self.lost.load(Relaxed),
            unsettled: self.unsettled.load(Relaxed),
        }
    }

    /// Counts a settled delivery, or one that needs no settlement.
    pub(super) fn count_settled(&self, outcome: &Outcome) {
        let counter = match outcome {
            Outcome::Ack => &self.acked,
            Outcome::Retry { .. } => &self.retried,
            Outcome::Reject { .. } => &self.rejected,
            Outcome::Release => &self.released,
        };
        counter.fetch_add(1, Relaxed);
    }

    /// Counts a delivery that ended before it was settled.
    pub(super) fn count_lost(&self) {
        self.lost.fetch_add(1, Relaxed);
    }

    /// Counts a delivery whose settlement failed.
    pub(super) fn count_unsettled(&self) {
        self.unsettled.fetch_add(1, Relaxed);
    }
}
