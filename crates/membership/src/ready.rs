//! The answer of a node to the owner of a shard that is to be given to it.

use forebay_engine::Engine;
use forebay_types::ShardId;

/// Whether a node is ready to take a shard over: it is to own it, the shard's server answers it, and it
/// has read of the shard what can be read before.
pub async fn is_ready_for(engine: &Engine, shard: ShardId) -> bool {
    let sights = engine.sights().await.unwrap_or_default();
    sights.iter().any(|sight| sight.id == shard && sight.wanted && sight.answers && sight.prepared)
}
