//! Deletes old records, and old answers to calls with a request id. Every node does it; that two do it at
//! once is harmless.

use std::{sync::Arc, time::Duration};

use forebay_store::{Catalog, StoreError};
use forebay_types::Clock;

use crate::repeats;

/// So long records are kept.
const KEPT_FOR: Duration = Duration::from_hours(400 * 24);
/// The first sweep begins so long after the start.
const FIRST_AFTER: Duration = Duration::from_mins(1);
/// How often a sweep begins.
const SWEEP_EVERY: Duration = Duration::from_hours(1);
/// Records of one transaction.
const RECORDS: u32 = 500;
/// Transactions of one sweep.
const ROUNDS_MAX: u32 = 200;
/// The pause between them, in which calls are written down.
const PAUSE: Duration = Duration::from_millis(100);

/// Deletes old records from time to time.
pub async fn follow(catalog: Arc<dyn Catalog>, clock: Arc<dyn Clock>) {
    tokio::time::sleep(FIRST_AFTER).await;
    loop {
        sweep(&*catalog, &*clock).await;
        tokio::time::sleep(SWEEP_EVERY).await;
    }
}

async fn sweep(catalog: &dyn Catalog, clock: &dyn Clock) {
    let now = clock.wall();
    let before = now.minus(KEPT_FOR);
    in_rounds("audit records", || catalog.sweep_audit(before, RECORDS)).await;
    let before = now.minus(repeats::KEPT_FOR);
    in_rounds("answers to calls with a request id", || catalog.sweep_requests(before, RECORDS)).await;
}

/// Deletes until there is no more. `what`: for the log.
async fn in_rounds<F>(what: &str, delete: impl Fn() -> F)
where
    F: Future<Output = Result<u64, StoreError>>,
{
    for _ in 0..ROUNDS_MAX {
        match delete().await {
            Ok(deleted) if deleted < u64::from(RECORDS) => return,
            Ok(_) => tokio::time::sleep(PAUSE).await,
            Err(error) => {
                // That the catalog is away is said elsewhere. They have time.
                tracing::info!(%error, "old {what} can't be deleted; they are at the next sweep");
                return;
            }
        }
    }
}
