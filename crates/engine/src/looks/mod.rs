//! Looks of operators at the queue. A look is put together by its caller's task: from slices of the event
//! loop's memory, and from reads of the store. It changes nothing, and nobody waits for it but its caller.

mod consumers;
mod count_items;
mod dead_groups;
mod forgotten;
mod items;
mod list_filter;
mod positions;
mod priorities;
mod standing;
mod topics;

use std::{
    future::Future,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use forebay_store::{Reader, StoreError};
use forebay_types::{ALL_NAMESPACES, Namespace};

use crate::messages::{look::ShardLook, look_turn::Turn};

/// How long a look waits for one shard.
const READ_TIMEOUT: Duration = Duration::from_secs(5);

/// The tenant of a look, or the name under which a look at all tenants has its turns.
fn caller(namespace: Option<&Namespace>) -> Namespace {
    namespace.cloned().unwrap_or_else(|| ALL_NAMESPACES.into())
}

/// Reads a shard once it is this look's turn. `None`: that failed, or took too long.
async fn read<T, F>(shard: &ShardLook, read: impl FnOnce(Arc<dyn Reader>) -> F) -> Option<T>
where
    F: Future<Output = Result<T, StoreError>>,
{
    read_then(shard, Turn::rest, read).await
}

/// The same, after which the next look has its turn at once: for who must be through within some time.
async fn read_without_rest<T, F>(shard: &ShardLook, read: impl FnOnce(Arc<dyn Reader>) -> F) -> Option<T>
where
    F: Future<Output = Result<T, StoreError>>,
{
    read_then(shard, drop, read).await
}

async fn read_then<T, F>(
    shard: &ShardLook,
    end: impl FnOnce(Turn),
    read: impl FnOnce(Arc<dyn Reader>) -> F,
) -> Option<T>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let reading = async {
        let turn = shard.turn.take().await;
        let found = read(shard.reader.clone()).await;
        end(turn);
        found
    };
    let error = match tokio::time::timeout(READ_TIMEOUT, reading).await {
        Ok(Ok(found)) => {
            shard.turn.failed.store(false, Ordering::Relaxed);
            return Some(found);
        }
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no answer within {} s", READ_TIMEOUT.as_secs()),
    };
    let id = shard.id;
    if shard.turn.failed.swap(true, Ordering::Relaxed) {
        tracing::debug!(shard.id = id.0, error, "shard {id} cannot be looked at: {error}");
    } else {
        tracing::warn!(shard.id = id.0, error, "shard {id} cannot be looked at, lists miss it: {error}");
    }
    None
}
