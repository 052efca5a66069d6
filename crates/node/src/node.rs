//! A node that runs.

use std::{net::SocketAddr, sync::Arc, sync::atomic::Ordering, time::Duration};

use forebay_engine::Engine;

use crate::{
    grpc::Serving,
    http::{Facts, HttpServing},
};

/// A node that runs. It goes on until [`crate::stop::stop`].
pub struct Node {
    pub(crate) engine: Engine,
    pub(crate) grpc: Serving,
    pub(crate) http: HttpServing,
    pub(crate) facts: Arc<Facts>,
    pub(crate) drain: Duration,
}

impl Node {
    /// The real address of gRPC.
    pub fn grpc(&self) -> SocketAddr {
        self.facts.grpc
    }

    /// The real address of HTTP.
    pub fn http(&self) -> SocketAddr {
        self.facts.http
    }

    /// Waits until the shards that can be reached are owned, then says so to whoever asks.
    pub async fn ready(&self) {
        self.engine.ready().await;
        self.grpc.set_serving(true).await;
        self.facts.serving.store(true, Ordering::Release);
    }
}
