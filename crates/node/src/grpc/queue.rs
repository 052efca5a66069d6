//! Parts that every call needs: the engine, the rules for requests, and the clock.

use std::sync::Arc;

use forebay_edge::rpc::RequestRules;
use forebay_engine::Engine;
use forebay_front::Front;
use forebay_membership::ClusterState;
use forebay_types::Clock;
use tokio::sync::watch;

/// The queue service. Cheap to clone.
#[derive(Clone)]
pub struct Queue {
    /// Executes the calls that this node can only serve itself.
    pub engine: Engine,
    /// Executes the others, here or at other nodes.
    pub front: Front,
    /// Checked before the engine is called.
    pub rules: Arc<RequestRules>,
    /// Names the owners of shards.
    pub cluster: watch::Receiver<Arc<ClusterState>>,
    /// Decides whether an item would expire before it may be delivered.
    pub clock: Arc<dyn Clock>,
}
