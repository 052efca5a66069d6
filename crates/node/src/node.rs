//! A running node.

use std::{net::SocketAddr, sync::Arc, sync::atomic::Ordering, time::Duration};

use forebay_engine::Engine;

use crate::{
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

    /// Waits until every reachable shard is owned, then reports the node as serving.
    pub async fn ready(&self) {
        self.engine.ready().await;
        self.grpc.set_serving(true).await;
        self.info.serving.store(true, Ordering::Release);
    }
}
