//! Asks other nodes whether they live, by a gRPC health check.

use std::time::Duration;

use async_trait::async_trait;
use forebay_engine::Peers;
use tonic::transport::Endpoint;
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};

/// A node that takes longer than this does not answer.
const PATIENCE: Duration = Duration::from_millis(500);

/// The way to other nodes over gRPC.
pub struct GrpcPeers {
    /// This node's own address. Whoever wrote it into a shard before is a process that is no more: this one
    /// has its port.
    own: String,
}

impl GrpcPeers {
    /// For a node that others reach at `own`.
    pub fn new(own: impl Into<String>) -> Self {
        Self { own: own.into() }
    }
}

#[async_trait]
impl Peers for GrpcPeers {
    async fn answers(&self, address: &str) -> bool {
        if address == self.own || address.is_empty() {
            return false;
        }
        let Ok(endpoint) = Endpoint::from_shared(format!("http://{address}")) else { return false };
        let ask = async {
            let channel = endpoint.connect().await.ok()?;
            // Whatever it says, and be it that it is stopping: it lives.
            let answer = HealthClient::new(channel).check(HealthCheckRequest::default()).await;
            answer.ok()
        };
        matches!(tokio::time::timeout(PATIENCE, ask).await, Ok(Some(_)))
    }
}
