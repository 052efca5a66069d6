//! The way to other nodes.

use async_trait::async_trait;

/// The way to other nodes, as far as the engine needs it.
#[async_trait]
pub trait Peers: Send + Sync + 'static {
    /// Whether a node answers at this address, `host:port`, within half a second. A candidate for a shard
    /// asks the owner that stopped renewing.
    async fn answers(&self, address: &str) -> bool;
}

/// For an engine that is alone: nobody answers.
#[async_trait]
impl Peers for () {
    async fn answers(&self, _address: &str) -> bool {
        false
    }
}
