//! Waiting for what another process does.

use std::time::Duration;

const POLL: Duration = Duration::from_millis(10);

/// Asks until `done` says yes, or the patience ends; says which. A process that this one did not write can
/// only be asked again and again.
pub async fn wait_for(patience: Duration, mut done: impl FnMut() -> bool) -> bool {
    let end = tokio::time::Instant::now() + patience;
    loop {
        if done() {
            return true;
        }
        if tokio::time::Instant::now() > end {
            return false;
        }
        tokio::time::sleep(POLL).await;
    }
}
