//! Questions to other nodes, and the calls that are passed on to them. The two have separate connections: an
//! answer on which the owner of a shard depends does not wait behind other tenants' items.

use std::time::Duration;

use async_trait::async_trait;
use forebay_engine::{KeyQuestion, OwnerAnswer, OwnerQuestion, Peers};
use forebay_proto::peer::{CatalogChangedRequest, IsReadyForRequest, OwnsShardRequest, PingRequest};
use forebay_store::DedupeHit;
use forebay_types::ShardId;
use tonic::Code;

use super::{
    channels::{Channels, Link},
    credentials::Credentials,
    keys,
};

/// A node that takes longer to answer a question counts as silent.
const ASK_TIMEOUT: Duration = Duration::from_millis(500);

/// The way to other nodes of the cluster.
pub struct PeerLinks {
    /// This node's own address. A shard that names it was owned by an earlier process, which is dead because
    /// this one has its port.
    own: String,
    /// For questions.
    control: Channels,
    /// For calls that are passed on.
    bulk: Channels,
}

impl PeerLinks {
    /// For a node that others reach at `own`. At most so many bytes of calls are on their way to one node.
    pub fn new(own: impl Into<String>, credentials: Credentials, forward_bytes: usize) -> Self {
        let control = Channels::new(credentials.clone(), 0);
        Self { own: own.into(), control, bulk: Channels::new(credentials, forward_bytes) }
    }

    /// The address of this node.
    pub(super) fn own_address(&self) -> &str {
        &self.own
    }

    /// The connection over which calls are passed on to a node. `None`: it is this node, or its address is
    /// not valid.
    pub(super) fn bulk(&self, address: &str) -> Option<Link> {
        if address == self.own { None } else { self.bulk.link(address) }
    }

    /// Forgets the connections to all nodes but these.
    pub fn retain(&self, addresses: &[&str]) {
        self.control.retain(addresses);
        self.bulk.retain(addresses);
    }

    /// Whether a node is ready to take a shard over.
    pub async fn is_ready_for(&self, address: &str, shard: ShardId) -> bool {
        let Some(mut link) = self.control.link(address) else { return false };
        let asked = link.client.is_ready_for(IsReadyForRequest { shard: shard.0 });
        match tokio::time::timeout(ASK_TIMEOUT, asked).await {
            Ok(Ok(answer)) => answer.get_ref().ready,
            Ok(Err(_)) | Err(_) => false,
        }
    }

    /// Whether a node answers.
    pub async fn answers(&self, address: &str) -> bool {
        let Some(mut link) = self.control.link(address) else { return false };
        match tokio::time::timeout(ASK_TIMEOUT, link.client.ping(PingRequest {})).await {
            Ok(Ok(_)) => true,
            // A node of the release before this call was there.
            Ok(Err(status)) => status.code() == Code::Unimplemented,
            Err(_) => false,
        }
    }

    /// Tells a node that the catalog has changed. Returns whether it answered in time.
    pub async fn catalog_changed(&self, address: &str) -> bool {
        let Some(mut link) = self.control.link(address) else { return false };
        let told = link.client.catalog_changed(CatalogChangedRequest {});
        matches!(tokio::time::timeout(ASK_TIMEOUT, told).await, Ok(Ok(_)))
    }
}

#[async_trait]
impl Peers for PeerLinks {
    async fn ask(&self, address: &str, question: OwnerQuestion) -> OwnerAnswer {
        if address == self.own || address.is_empty() {
            return OwnerAnswer::Silent;
        }
        let Some(mut link) = self.control.link(address) else { return OwnerAnswer::Silent };
        let OwnerQuestion { shard, epoch, incarnation } = question;
        let request = OwnsShardRequest { shard: shard.0, epoch, incarnation: incarnation.0.to_vec().into() };
        match tokio::time::timeout(ASK_TIMEOUT, link.client.owns_shard(request)).await {
            Ok(Ok(answer)) if answer.get_ref().owns => OwnerAnswer::Owns,
            Ok(Ok(_)) => OwnerAnswer::Resigned,
            // An error is no answer: it may come from anybody.
            Ok(Err(_)) | Err(_) => OwnerAnswer::Silent,
        }
    }

    async fn find_keys(&self, address: &str, question: KeyQuestion) -> Option<Vec<DedupeHit>> {
        if address == self.own || address.is_empty() {
            return None;
        }
        let mut link = self.control.link(address)?;
        // The engine waits for a second.
        let answer = link.client.find_keys(keys::request(question)).await.ok()?;
        keys::answer(answer.into_inner())
    }
}
