//! The way to other nodes, as far as membership needs it.

use async_trait::async_trait;
use forebay_types::ShardId;

/// Questions and notices to other nodes. Each node is named by the address at which it answers others,
/// `host:port`. An answer comes within a second; none counts as no.
#[async_trait]
pub trait ClusterLinks: Send + Sync + 'static {
    /// Whether a node is ready to take a shard over: what [`is_ready_for`](crate::is_ready_for) says there.
    async fn is_ready_for(&self, address: &str, shard: ShardId) -> bool;
    /// Whether a node answers.
    async fn answers(&self, address: &str) -> bool;
    /// Tells a node that the catalog has changed. Returns whether it answered.
    async fn catalog_changed(&self, address: &str) -> bool;
    /// There are no other nodes than these any more.
    fn retain(&self, addresses: &[&str]);
}
