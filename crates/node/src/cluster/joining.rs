//! A node that is about to join its cluster: first its port for other nodes, last its name in the catalog.

use std::{net::SocketAddr, sync::Arc};

use forebay_engine::Engine;
use forebay_store::{CatalogNode, NodeReport};
use forebay_types::{Clock, Incarnation};
use tokio::{
    net::TcpListener,
    sync::{Notify, watch},
};

use super::{
    begin::Begun,
    followed::Followed,
    join::JoinError,
    membership::{ClusterTask, Membership},
    shared::ClusterState,
};
use crate::{
    config::{Config, Secret, ShardConfig},
    listen::{BindError, host_name, listen, reachable},
    peers::{self, Credentials, PeerLinks, PeerServing},
    random::{NoRandomNumbers, random},
};

/// The newest format of stored rows that this program reads. It grows with each that older programs do not
/// read.
const STORED_FORMAT: u32 = 1;

/// Why a node can't be made ready to join.
#[derive(Debug, thiserror::Error)]
pub enum JoiningError {
    /// Its port for other nodes is not available.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// No random numbers.
    #[error(transparent)]
    Random(#[from] NoRandomNumbers),
    /// The node has no name that others could use.
    #[error("the host's name {0:?} can't be the node's name; set node.name")]
    Name(String),
}

/// A node's part in its cluster.
pub(crate) struct Member {
    /// Learns which shards the node is to own.
    pub cluster: ClusterTask,
    /// Serves other nodes.
    pub peers: PeerServing,
}

/// A node that is about to join its cluster.
pub(crate) struct Joining {
    /// The catalog as it was read at the start.
    begun: Begun,
    /// What the node tells others of itself.
    pub node: CatalogNode,
    /// The way to other nodes.
    pub links: Arc<PeerLinks>,
    /// What calls between nodes carry.
    credentials: Credentials,
    /// The port for other nodes.
    listener: TcpListener,
    /// Receives what the rest of the node is to know of the cluster.
    pub state: watch::Sender<Arc<ClusterState>>,
    /// Receives the shards whenever they change.
    pub shards: watch::Sender<Vec<ShardConfig>>,
}

impl Joining {
    /// Takes the port for other nodes.
    pub async fn listen(
        config: &Config,
        begun: Begun,
        clients_address: &str,
        http: SocketAddr,
    ) -> Result<Self, JoiningError> {
        let (listener, bound) = listen(&config.peer, "node.peer").await?;
        let host_name = host_name();
        let name = match &config.name {
            Some(name) => name.clone(),
            None => host_name.parse().map_err(|_| JoiningError::Name(host_name))?,
        };
        let incarnation = (u128::from(random()?) << 64 | u128::from(random()?)).to_be_bytes();
        let node = CatalogNode {
            name,
            incarnation: Incarnation(incarnation),
            peer_address: config.advertise.clone().unwrap_or_else(|| reachable(bound)),
            clients_address: clients_address.to_owned(),
            http_address: reachable(http),
            release: env!("CARGO_PKG_VERSION").to_owned(),
            format: STORED_FORMAT,
            draining: false,
            beats: 0,
            report: NodeReport::default(),
        };
        let secret = config.peer_secret.clone().unwrap_or_else(|| Secret::new(""));
        let credentials = Credentials::new(begun.cluster, secret);
        let links = Arc::new(PeerLinks::new(&node.peer_address, credentials.clone(), config.forward_bytes));
        let (state, shards) = (watch::Sender::default(), watch::Sender::default());
        Ok(Self { begun, node, links, credentials, listener, state, shards })
    }

    /// Serves other nodes, and joins the cluster.
    /// `followed`: the shards with which the engine was started.
    pub async fn join(
        self,
        engine: Engine,
        clock: Arc<dyn Clock>,
        followed: Followed,
    ) -> Result<Member, JoinError> {
        let Self { begun, node, links, credentials, listener, state, shards } = self;
        let catalog_changed = Arc::new(Notify::new());
        let peers = peers::serve(listener, engine.clone(), credentials, catalog_changed.clone());
        let Begun { catalog, copy, .. } = begun;
        let membership =
            Membership { catalog, node, engine, links, clock, catalog_changed, state, followed, shards };
        Ok(Member { cluster: membership.start(copy).await?, peers })
    }
}
