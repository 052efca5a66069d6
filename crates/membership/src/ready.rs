//! What a node answers to the owner of a shard that is to be given to it.

use forebay_engine::Engine;
use forebay_types::ShardId;

/// Whether a node is ready to take a shard over: it is to own it, and the shard's server answers it.
pub async fn is_ready_for(engine: &Engine, shard: ShardId) -> bool {
    let sights = engine.sights().await.unwrap_or_default();
    sights.iter().any(|sight| sight.id == shard && sight.wanted && sight.answers)
}
