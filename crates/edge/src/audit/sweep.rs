//! Deletes old records. Every node does it; that two do it at once is harmless.

use std::{sync::Arc, time::Duration};

use forebay_store::Catalog;
use forebay_types::Clock;

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
    let before = clock.wall().minus(KEPT_FOR);
    for _ in 0..ROUNDS_MAX {
        match catalog.sweep_audit(before, RECORDS).await {
            Ok(deleted) if deleted < u64::from(RECORDS) => return,
            Ok(_) => tokio::time::sleep(PAUSE).await,
            Err(error) => {
                // That the catalog is away is said elsewhere. They have time.
                tracing::info!(%error, "old audit records can't be deleted; they are at the next sweep");
                return;
            }
        }
    }
}
