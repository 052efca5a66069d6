//! Checks whether other nodes are alive, by a gRPC health check, or with TLS by the beginning of a handshake.
//! That is all that nodes with a static list of shards know of each other.

use std::time::Duration;

use async_trait::async_trait;
use forebay_engine::{KeyQuestion, OwnerAnswer, OwnerQuestion, Peers, RememberedKey};
use tokio::net::TcpStream;
use tonic::transport::Endpoint;
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};

use crate::tls;

/// A node that takes longer than this counts as dead.
const HEALTH_CHECK_TIMEOUT: Duration = Duration::from_millis(500);

/// Reaches other nodes over gRPC.
pub struct HealthPeers {
    /// This node's own address. A shard that names it was owned by an earlier process, which is dead because
    /// this one has its port.
    own: String,
    /// The nodes' gRPC ports have TLS.
    tls: bool,
}

impl HealthPeers {
    /// For a node that others reach at `own`. `tls`: its gRPC port has TLS, and so have theirs.
    pub fn new(own: impl Into<String>, tls: bool) -> Self {
        Self { own: own.into(), tls }
    }
}

#[async_trait]
impl Peers for HealthPeers {
    async fn ask(&self, address: &str, _question: OwnerQuestion) -> OwnerAnswer {
        if address == self.own || address.is_empty() {
            return OwnerAnswer::Silent;
        }
        let ask = async {
            match self.tls {
                true => tls_answers(address).await,
                false => health_answers(address).await,
            }
        };
        match tokio::time::timeout(HEALTH_CHECK_TIMEOUT, ask).await {
            Ok(true) => OwnerAnswer::Alive,
            _ => OwnerAnswer::Silent,
        }
    }

    /// A node with a static list of shards asks nobody: it knows no other's engine.
    async fn find_keys(&self, _address: &str, _question: KeyQuestion) -> Option<Vec<RememberedKey>> {
        None
    }
}

async fn health_answers(address: &str) -> bool {
    let Ok(endpoint) = Endpoint::from_shared(format!("http://{address}")) else { return false };
    let Ok(channel) = endpoint.connect().await else { return false };
    // Any answer means that the node is alive, even that it is stopping.
    HealthClient::new(channel).check(HealthCheckRequest::default()).await.is_ok()
}

/// Checks that a server answers in TLS. Its proof of who it is does not matter here, as it does not without
/// TLS: that nobody lives there is worth nothing to whom could say so.
async fn tls_answers(address: &str) -> bool {
    match TcpStream::connect(address).await {
        Ok(stream) => tls::answers(stream).await,
        Err(_) => false,
    }
}
