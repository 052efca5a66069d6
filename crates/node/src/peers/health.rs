//! Checks whether other nodes are alive, by a gRPC health check. That is all that nodes with a static list of
//! shards know of each other.

use std::time::Duration;

use async_trait::async_trait;
use forebay_engine::{KeyQuestion, OwnerAnswer, OwnerQuestion, Peers};
use forebay_store::DedupeHit;
use tonic::transport::Endpoint;
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};

/// A node that takes longer than this counts as dead.
const HEALTH_CHECK_TIMEOUT: Duration = Duration::from_millis(500);

/// Reaches other nodes over gRPC.
pub struct HealthPeers {
    /// This node's own address. A shard that names it was owned by an earlier process, which is dead because
    /// this one has its port.
    own: String,
}

impl HealthPeers {
    /// For a node that others reach at `own`.
    pub fn new(own: impl Into<String>) -> Self {
        Self { own: own.into() }
    }
}

#[async_trait]
impl Peers for HealthPeers {
    async fn ask(&self, address: &str, _question: OwnerQuestion) -> OwnerAnswer {
        if address == self.own || address.is_empty() {
            return OwnerAnswer::Silent;
        }
        let Ok(endpoint) = Endpoint::from_shared(format!("http://{address}")) else {
            return OwnerAnswer::Silent;
        };
        let ask = async {
            let channel = endpoint.connect().await.ok()?;
            // Any answer means that the node is alive, even that it is stopping.
            let answer = HealthClient::new(channel).check(HealthCheckRequest::default()).await;
            answer.ok()
        };
        match tokio::time::timeout(HEALTH_CHECK_TIMEOUT, ask).await {
            Ok(Some(_)) => OwnerAnswer::Alive,
            _ => OwnerAnswer::Silent,
        }
    }

    /// A node with a static list of shards asks nobody: it knows no other's engine.
    async fn find_keys(&self, _address: &str, _question: KeyQuestion) -> Option<Vec<DedupeHit>> {
        None
    }
}
