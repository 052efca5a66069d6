//! Questions to other nodes, the calls that are passed on to them, and what they tell of their shards. The
//! three have separate connections: an answer on which the owner of a shard depends waits for nothing else.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use forebay_engine::{
    FetchCall, FetchError, FetchedItems, KeyQuestion, OwnerAnswer, OwnerQuestion, Peers, RememberedKey,
};
use forebay_front::Links;
use forebay_membership::ClusterLinks;
use forebay_proto::peer::{CatalogChangedRequest, IsReadyForRequest, OwnsShardRequest, PingRequest};
use forebay_types::{Namespace, Receipt, ShardId};
use tonic::{Code, Response, Status};

use super::{
    channels::{Channels, Client, Link},
    credentials::Credentials,
    dial::Dial,
    keys,
};

/// A node that takes longer to answer a question counts as silent.
const ASK_TIMEOUT: Duration = Duration::from_millis(500);
/// A node that takes longer to look keys up counts as one that does not know. The engine waits as long.
const FIND_KEYS_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a node may take to answer a check of the connection for questions.
const CONTROL_KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(1);
/// The same on the connection for calls that are passed on. All that are under way there end with it, so a
/// node that stands still for a moment must not break it.
const BULK_KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(3);

/// The way to other nodes of the cluster.
pub struct PeerLinks {
    /// This node's own address. A shard that names it was owned by an earlier process, which is dead because
    /// this one has its port.
    own: String,
    /// For questions.
    control: Channels,
    /// For calls that are passed on.
    bulk: Channels,
    /// For what nodes tell of their shards.
    watch: Channels,
    /// Why nodes refuse this one, by address, as it was logged.
    refusals: Mutex<BTreeMap<String, String>>,
}

impl PeerLinks {
    /// For a node that others reach at `own`. At most so many bytes of calls are on their way to one node.
    pub fn new(own: impl Into<String>, dial: Dial, credentials: Credentials, forward_bytes: usize) -> Self {
        let control = Channels::new(dial.clone(), credentials.clone(), CONTROL_KEEPALIVE_TIMEOUT, 0);
        let bulk = Channels::new(dial.clone(), credentials.clone(), BULK_KEEPALIVE_TIMEOUT, forward_bytes);
        let watch = Channels::new(dial, credentials, CONTROL_KEEPALIVE_TIMEOUT, 0);
        Self { own: own.into(), control, bulk, watch, refusals: Mutex::default() }
    }

    /// The address of this node.
    pub(super) fn own_address(&self) -> &str {
        &self.own
    }

    /// The connection over which calls are passed on to a node. `None`: it is this node, or its address is
    /// not valid.
    pub(super) fn bulk(&self, address: &str) -> Option<Arc<Link>> {
        if address == self.own { None } else { self.bulk.link(address) }
    }

    /// The connection over which a node tells of its shards. `None`: it is this node, or its address is not
    /// valid.
    pub(crate) fn watch_link(&self, address: &str) -> Option<Arc<Link>> {
        if address == self.own { None } else { self.watch.link(address) }
    }

    /// The bytes of calls on their way to the node to which most are, and how many may be.
    pub fn forwarded_bytes(&self) -> (usize, usize) {
        self.bulk.used_bytes()
    }

    /// Asks a node. `None`: no answer came in time.
    async fn question<T>(
        &self,
        address: &str,
        timeout: Duration,
        ask: impl AsyncFnOnce(Client) -> Result<Response<T>, Status>,
    ) -> Option<Result<T, Status>> {
        let link = self.control.link(address)?;
        let asked = async {
            let (number, client) = link.client().await.ok()?;
            let answer = ask(client).await;
            if answer.is_err() {
                link.broke(number).await;
            }
            Some(answer.map(Response::into_inner))
        };
        let answer = tokio::time::timeout(timeout, asked).await.ok().flatten();
        if let Some(answer) = &answer {
            self.note(address, answer.as_ref().err());
        }
        answer
    }

    /// A node that refuses this one says so to each call. It is logged once.
    fn note(&self, address: &str, answer: Option<&Status>) {
        let refused = answer
            .filter(|status| matches!(status.code(), Code::Unauthenticated | Code::FailedPrecondition))
            .map(|status| status.message().to_owned());
        let refusals = &mut *self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(why) = refused else {
            if refusals.remove(address).is_some() {
                tracing::info!("the node at {address} takes calls of this node again");
            }
            return;
        };
        if refusals.get(address) != Some(&why) {
            tracing::error!("the node at {address} refuses all calls of this node: {why}");
            refusals.insert(address.to_owned(), why);
        }
    }
}

#[async_trait]
impl ClusterLinks for PeerLinks {
    async fn is_ready_for(&self, address: &str, shard: ShardId) -> bool {
        let request = IsReadyForRequest { shard: shard.0 };
        let ask = async |mut client: Client| client.is_ready_for(request).await;
        self.question(address, ASK_TIMEOUT, ask).await.is_some_and(|answer| answer.is_ok_and(|it| it.ready))
    }

    async fn answers(&self, address: &str) -> bool {
        let ask = async |mut client: Client| client.ping(PingRequest {}).await;
        matches!(self.question(address, ASK_TIMEOUT, ask).await, Some(Ok(_)))
    }

    async fn catalog_changed(&self, address: &str) -> bool {
        let tell = async |mut client: Client| client.catalog_changed(CatalogChangedRequest {}).await;
        matches!(self.question(address, ASK_TIMEOUT, tell).await, Some(Ok(_)))
    }

    fn retain(&self, addresses: &[&str]) {
        let refusals = &mut *self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        refusals.retain(|address, _| addresses.contains(&address.as_str()));
        self.control.retain(addresses);
        self.bulk.retain(addresses);
        self.watch.retain(addresses);
    }
}

#[async_trait]
impl Peers for PeerLinks {
    async fn ask(&self, address: &str, question: OwnerQuestion) -> OwnerAnswer {
        if address == self.own || address.is_empty() {
            return OwnerAnswer::Silent;
        }
        let OwnerQuestion { shard, epoch, incarnation, server_slow } = question;
        let incarnation = incarnation.0.to_vec().into();
        let request = OwnsShardRequest { shard: shard.0, epoch, incarnation, server_slow };
        let ask = async |mut client: Client| client.owns_shard(request).await;
        match self.question(address, ASK_TIMEOUT, ask).await {
            Some(Ok(answer)) if answer.owns => OwnerAnswer::Owns,
            Some(Ok(answer)) if answer.unsure => OwnerAnswer::Unsure,
            Some(Ok(_)) => OwnerAnswer::Resigned,
            // An error is no answer: it may come from anybody.
            Some(Err(_)) | None => OwnerAnswer::Silent,
        }
    }

    async fn lease_items(&self, address: &str, call: FetchCall) -> Result<FetchedItems, FetchError> {
        self.fetch(address, call).await
    }

    async fn return_items(&self, address: &str, namespace: Namespace, receipts: Vec<Receipt>) {
        Links::return_items(self, address, namespace, receipts).await;
    }

    async fn consume_items(&self, address: &str, namespace: Namespace, receipts: Vec<Receipt>) -> Vec<bool> {
        Links::consume_items(self, address, namespace, receipts).await
    }

    async fn find_keys(&self, address: &str, question: KeyQuestion) -> Option<Vec<RememberedKey>> {
        if address == self.own || address.is_empty() {
            return None;
        }
        let ask = async |mut client: Client| client.find_keys(keys::request(question)).await;
        let answer = self.question(address, FIND_KEYS_TIMEOUT, ask).await?;
        keys::answer(answer.ok()?)
    }
}
