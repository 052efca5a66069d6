//! What the tests have in common.

use std::{sync::Arc, time::Duration};

use crate::history::{Counts, History};

/// For a queue to get going again after something bad happened to it.
pub const PATIENCE: Duration = Duration::from_secs(40);

/// How often a test does its bad thing: `FOREBAY_E2E_ROUNDS`, else what the test says.
pub fn rounds(usually: u32) -> u32 {
    std::env::var("FOREBAY_E2E_ROUNDS").ok().map_or(usually, |rounds| rounds.parse().unwrap())
}

/// Waits until so many more items have been stored, delivered and acked than now.
pub async fn progress(history: &Arc<History>, what: &str, more: u64) -> Counts {
    let then = history.counts();
    let enough = |now: &Counts| {
        now.enqueued >= then.enqueued + more
            && now.delivered >= then.delivered + more
            && now.acked >= then.acked + more
    };
    history.wait(what, PATIENCE, enough).await
}
