//! Connections to other nodes. Each is opened when it is first used, and reopened after it broke.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use forebay_engine::{OwnerAnswer, OwnerQuestion, Peers};
use forebay_proto::peer::{
    CatalogChangedRequest, IsReadyForRequest, OwnsShardRequest, peer_service_client::PeerServiceClient,
};
use forebay_types::ShardId;
use tonic::{
    service::interceptor::InterceptedService,
    transport::{Channel, Endpoint},
};

use super::credentials::{AddCredentials, Credentials};

/// A node that takes longer to answer a question counts as silent.
const ASK_TIMEOUT: Duration = Duration::from_millis(500);
/// How long a connection may take to open.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);
/// How often a connection in use is checked, and how long the other side may take to answer that. A node that
/// was cut off without a sign is noticed by this.
const KEEPALIVE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(1));

/// The client of one node.
type Client = PeerServiceClient<InterceptedService<Channel, AddCredentials>>;

/// The connections to other nodes of the cluster.
pub struct PeerLinks {
    /// What every call carries.
    credentials: Credentials,
    /// This node's own address. A shard that names it was owned by an earlier process, which is dead because
    /// this one has its port.
    own: String,
    /// The connections, by address.
    links: Mutex<HashMap<String, Client>>,
}

impl PeerLinks {
    /// For a node that others reach at `own`.
    pub fn new(own: impl Into<String>, credentials: Credentials) -> Self {
        Self { credentials, own: own.into(), links: Mutex::default() }
    }

    /// The connection to a node. `None`: the address is not valid.
    fn link(&self, address: &str) -> Option<Client> {
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(link) = links.get(address) {
            return Some(link.clone());
        }
        let endpoint = Endpoint::from_shared(format!("http://{address}")).ok()?;
        let channel = endpoint
            .connect_timeout(CONNECT_TIMEOUT)
            .http2_keep_alive_interval(KEEPALIVE.0)
            .keep_alive_timeout(KEEPALIVE.1)
            .tcp_nodelay(true)
            .connect_lazy();
        let link = PeerServiceClient::with_interceptor(channel, AddCredentials(self.credentials.clone()));
        links.insert(address.to_owned(), link.clone());
        Some(link)
    }

    /// Forgets the connections to all nodes but these.
    pub fn retain(&self, addresses: &[&str]) {
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        links.retain(|address, _| addresses.contains(&address.as_str()));
    }

    /// Whether a node is ready to take a shard over.
    pub async fn is_ready_for(&self, address: &str, shard: ShardId) -> bool {
        let Some(mut link) = self.link(address) else { return false };
        let asked = link.is_ready_for(IsReadyForRequest { shard: shard.0 });
        match tokio::time::timeout(ASK_TIMEOUT, asked).await {
            Ok(Ok(answer)) => answer.get_ref().ready,
            Ok(Err(_)) | Err(_) => false,
        }
    }

    /// Tells a node that the catalog has changed. Returns whether it answered in time.
    pub async fn catalog_changed(&self, address: &str) -> bool {
        let Some(mut link) = self.link(address) else { return false };
        let told = tokio::time::timeout(ASK_TIMEOUT, link.catalog_changed(CatalogChangedRequest {}));
        matches!(told.await, Ok(Ok(_)))
    }
}

#[async_trait]
impl Peers for PeerLinks {
    async fn ask(&self, address: &str, question: OwnerQuestion) -> OwnerAnswer {
        if address == self.own || address.is_empty() {
            return OwnerAnswer::Silent;
        }
        let Some(mut link) = self.link(address) else { return OwnerAnswer::Silent };
        let OwnerQuestion { shard, epoch, incarnation } = question;
        let request = OwnsShardRequest { shard: shard.0, epoch, incarnation: incarnation.0.to_vec().into() };
        match tokio::time::timeout(ASK_TIMEOUT, link.owns_shard(request)).await {
            Ok(Ok(answer)) if answer.get_ref().owns => OwnerAnswer::Owns,
            Ok(Ok(_)) => OwnerAnswer::Resigned,
            // An error is no answer: it may come from anybody.
            Ok(Err(_)) | Err(_) => OwnerAnswer::Silent,
        }
    }
}
