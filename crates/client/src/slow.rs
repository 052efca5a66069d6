//! Calls that take long do not hold others up.

use std::{pin::pin, time::Duration};

/// A call that takes longer is one of a shard that does not answer, or of a server.
const SLOW: Duration = Duration::from_secs(3);

/// Waits for a call. Once it takes long, its permit is free for others: what is under way beyond the permits
/// is bounded by what is buffered.
pub(crate) async fn without_others<T, P>(call: impl Future<Output = T>, permit: P) -> T {
    let mut call = pin!(call);
    if let Ok(done) = tokio::time::timeout(SLOW, &mut call).await {
        return done;
    }
    drop(permit);
    call.await
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::{sync::Semaphore, time::sleep};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_slow_call_gives_its_permit_back_and_is_awaited() {
        let permits = Arc::new(Semaphore::new(1));
        let permit = permits.clone().acquire_owned().await.unwrap();
        let call = tokio::spawn(without_others(sleep(10 * SLOW), permit));
        sleep(SLOW / 2).await;
        assert_eq!(permits.available_permits(), 0);
        sleep(SLOW).await;
        assert!(permits.available_permits() == 1 && !call.is_finished());
        call.await.unwrap();
    }
}
