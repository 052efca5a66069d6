//! Ends a run whose queue has stalled.

use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail, ensure};

use super::state::RunState;
use crate::times::now;

/// How long items may be missing without a delivery, and how long a call may take in addition to its own
/// wait. A queue that has stalled ends the run.
const STALL_TIMEOUT: Duration = Duration::from_secs(30);

/// Detects, in one consumer, that no consumer gets items any more.
#[derive(Debug)]
pub struct StallDetector {
    /// Items delivered to all consumers at the last change.
    delivered: u64,
    /// When that number last changed.
    since: Instant,
}

impl StallDetector {
    /// Starts now.
    pub fn new() -> Self {
        Self { delivered: 0, since: now() }
    }

    /// Fails if everything was sent, items are missing and none was delivered within the timeout.
    pub fn check(&mut self, state: &RunState) -> anyhow::Result<()> {
        let check = &state.delivery_check;
        let (delivered, all_sent) = (check.delivered(), state.all_sent.load(Ordering::Acquire));
        if delivered != self.delivered || !all_sent {
            *self = Self { delivered, since: now() };
        }
        ensure!(
            self.since.elapsed() < STALL_TIMEOUT,
            "the queue has stalled: {} items confirmed, {delivered} delivered, none within {STALL_TIMEOUT:?}",
            check.confirmed()
        );
        Ok(())
    }
}

/// Limits a call to its own `wait` plus the stall timeout. The error names the call.
pub async fn with_timeout<T>(
    name: &'static str,
    wait: Duration,
    call: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    let timeout = wait + STALL_TIMEOUT;
    match tokio::time::timeout(timeout, call).await {
        Ok(answer) => answer.context(name),
        Err(_) => bail!("{name}: no answer in {timeout:?}"),
    }
}
