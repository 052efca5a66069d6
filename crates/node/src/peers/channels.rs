//! Connections to other nodes. Each is opened when it is first used, and reopened after it broke.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use forebay_engine::TenantBudget;
use forebay_proto::peer::peer_service_client::PeerServiceClient;
use tonic::{
    service::interceptor::InterceptedService,
    transport::{Channel, Endpoint},
};

use super::credentials::{AddCredentials, Credentials};

/// How long a connection may take to open.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);
/// How often a connection in use is checked, and how long the other side may take to answer that. A node that
/// was cut off without a sign is noticed by this.
const KEEPALIVE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(1));

/// The client of one node.
pub type Client = PeerServiceClient<InterceptedService<Channel, AddCredentials>>;

/// One connection to each node.
pub struct Channels {
    /// What every call carries.
    credentials: Credentials,
    /// The most bytes on their way to one node.
    bytes: usize,
    /// The connections, by address.
    links: Mutex<HashMap<String, Link>>,
}

/// The connection to one node.
#[derive(Clone)]
pub struct Link {
    /// Its client.
    pub client: Client,
    /// Bytes of calls that the node has not answered yet.
    pub sent: Arc<TenantBudget>,
}

impl Channels {
    /// None is open yet. At most so many bytes are on their way to one node.
    pub fn new(credentials: Credentials, bytes: usize) -> Self {
        Self { credentials, bytes, links: Mutex::default() }
    }

    /// The connection to a node. `None`: the address is not valid.
    pub fn link(&self, address: &str) -> Option<Link> {
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
        let client = PeerServiceClient::with_interceptor(channel, AddCredentials(self.credentials.clone()));
        let link = Link { client, sent: TenantBudget::new(self.bytes) };
        links.insert(address.to_owned(), link.clone());
        Some(link)
    }

    /// Forgets the connections to all nodes but these.
    pub fn retain(&self, addresses: &[&str]) {
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        links.retain(|address, _| addresses.contains(&address.as_str()));
    }
}
