//! Waiting for another process.

use std::time::Duration;

const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Polls until `done` returns true or the timeout has passed. Returns whether it was done. A process that is
/// not ours can only be polled.
pub async fn wait_for(timeout: Duration, mut done: impl FnMut() -> bool) -> bool {
    let end = tokio::time::Instant::now() + timeout;
    loop {
        if done() {
            return true;
        }
        if tokio::time::Instant::now() > end {
            return false;
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
