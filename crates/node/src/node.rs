//! A running node.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use forebay_engine::Engine;
use tokio::task::JoinHandle;

use crate::{
    cluster::Member,
    grpc::Serving,
    http::{HttpServing, NodeInfo},
};

/// A running node. It runs until it is passed to `stop`.
pub struct Node {
    /// Stopped before the servers, so that it can still answer calls.
    pub(crate) engine: Engine,
    /// Closed once the engine has answered.
    pub(crate) grpc: Serving,
    /// Closed last, so that operators see the shutdown.
    pub(crate) http: HttpServing,
    /// Holds the addresses, and the flag that `/readyz` answers.
    pub(crate) info: Arc<NodeInfo>,
    /// Keeps the flag and the health checks true to what is served.
    pub(crate) readiness: JoinHandle<()>,
    /// The node's part in its cluster. `None`: it has a static list of shards.
    pub(crate) member: Option<Member>,
    /// How long a stopping node still serves while load balancers notice.
    pub(crate) drain: Duration,
}

impl Node {
    /// The bound gRPC address.
    pub fn grpc(&self) -> SocketAddr {
        self.info.grpc
    }

    /// The bound HTTP address.
    pub fn http(&self) -> SocketAddr {
        self.info.http
    }

    /// Waits until a task of the engine panics: the process is of no use any more. Returns what the task
    /// said.
    pub async fn failed(&self) -> String {
        self.engine.failed().await
    }

    /// Waits until the node serves a shard.
    pub async fn ready(&self) {
        // The sender is in the same value: it is not gone.
        let _ = self.info.serving.subscribe().wait_for(|serving| *serving).await;
    }
}
