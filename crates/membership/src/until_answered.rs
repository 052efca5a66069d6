//! Waits for the catalog.

use std::time::Duration;

use forebay_store::{ErrorClass, StoreError};
use futures_util::future::BoxFuture;

/// The pause before the catalog is asked again.
pub(crate) const RETRY_EVERY: Duration = Duration::from_secs(1);

/// Asks the catalog until it answers. Fails at once if its schema is not one that this program can use: no
/// waiting helps then.
pub(crate) async fn until_answered<'a, T>(
    mut ask: impl FnMut() -> BoxFuture<'a, Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let mut logged = false;
    loop {
        match ask().await {
            Err(error) if error.class != ErrorClass::Schema => {
                if !std::mem::replace(&mut logged, true) {
                    tracing::warn!(%error, "the catalog does not answer: {error}; waiting for it");
                }
                tokio::time::sleep(RETRY_EVERY).await;
            }
            answer => return answer,
        }
    }
}
