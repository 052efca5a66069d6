//! What operators look at. A look is put together by its caller's task: from slices of what the event loop
//! holds, and from reads of the store. It changes nothing, and nobody waits for it but its caller.

mod items;
mod priorities;
mod topics;

use std::{future::Future, sync::Arc, time::Duration};

use forebay_store::{Reader, StoreError};
use forebay_types::Namespace;

use crate::messages::look::ShardLook;

/// How long a look waits for one shard.
const READ_TIMEOUT: Duration = Duration::from_secs(5);

/// The tenant of a look, or the name under which a look at all tenants has its turns.
fn caller(namespace: Option<&Namespace>) -> Namespace {
    namespace.cloned().unwrap_or_else(|| "-".into())
}

/// Reads a shard once it is this look's turn. `None`: that failed, or took too long.
async fn read<T, F>(shard: &ShardLook, read: impl FnOnce(Arc<dyn Reader>) -> F) -> Option<T>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let reading = async {
        let _turn = shard.turn.acquire().await.ok()?;
        match read(shard.reader.clone()).await {
            Ok(found) => Some(found),
            Err(error) => {
                tracing::debug!(shard.id = shard.id.0, %error, "a look at shard {} failed", shard.id);
                None
            }
        }
    };
    tokio::time::timeout(READ_TIMEOUT, reading).await.ok().flatten()
}
