//! A node that is about to join its cluster: first its port for other nodes, if any may join; last its name
//! in the catalog.

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use forebay_config::Config;
use forebay_edge::{
    connections::Places,
    listen::{BindError, host_name, listen, reachable},
    random::{NoRandomNumbers, random},
    tls::{HandshakeConfig, Listener, Live, PeerTls, Source},
    traces::Traces,
    turns::Turns,
};
use forebay_engine::Engine;
use forebay_membership::{ClusterState, ClusterTask, EngineShards, InitialCatalog, JoinError, Membership};
use forebay_peers::{Credentials, Dial, PeerCalls, PeerLinks, PeerListener, PeerServer, history::History};
use forebay_store::{Catalog, CatalogNode, ImageVersions, NodeReport};
use forebay_types::{Clock, ClusterId, Incarnation, SystemClock};
use tokio::sync::{Notify, watch};

use super::Operator;
use crate::policies::PolicyBook;

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
    /// Others would take it for the only node of its cluster.
    #[error(
        "other nodes would find this one at {0}, where clients do: node.advertise is the address of node.peer"
    )]
    ClientsAddress(String),
    /// The node has no name that others could use.
    #[error("the host's name {0:?} can't be the node's name; set node.name")]
    Name(String),
}

/// A node's part in its cluster.
pub struct Member {
    /// Learns which shards the node is to own. `None`: the node has left.
    pub cluster: Option<ClusterTask>,
    /// Serves other nodes. `None`: this one is the only one.
    pub peers: Option<PeerServer>,
}

/// A node that is about to join its cluster.
pub struct JoiningNode {
    /// The catalog as it was read at the start.
    begun: InitialCatalog,
    /// The entry with which the node tells others of itself.
    pub node: CatalogNode,
    /// The way to other nodes.
    pub links: Arc<PeerLinks>,
    /// Credentials of calls between nodes.
    credentials: Credentials,
    /// Where the node keeps a copy of the catalog.
    catalog_copy: Option<PathBuf>,
    /// The port for other nodes. `None`: this one is the only one.
    incoming: Option<PeerListener>,
    /// Receives what the rest of the node is to know of the cluster.
    pub state: watch::Sender<Arc<ClusterState>>,
    /// Notified when the catalog has changed.
    catalog_changed: Arc<Notify>,
    /// Receives up to which version the engine knows the policies.
    policies_told: watch::Sender<u64>,
    /// How figures of this node were.
    pub history: History,
}

impl JoiningNode {
    /// Takes the port for other nodes, if any may join, with a bound of its connections, and with TLS if
    /// there is a certificate for it. The only node of a cluster has one address: that for clients.
    pub async fn listen(
        config: &Config,
        begun: InitialCatalog,
        places: Arc<Places>,
        tls: Option<Arc<Live<PeerTls>>>,
        clients_address: &str,
        http: SocketAddr,
    ) -> Result<Self, JoiningError> {
        let (incoming, peer_address) = match config.is_alone() {
            true => (None, clients_address.to_owned()),
            false => {
                let (listener, bound) = listen(&config.peer, "node.peer").await?;
                let source = tls.clone();
                let source =
                    source.map(|live| Source::new(live, |tls| (tls.server.clone(), Some(tls.nodes.clone()))));
                let beginning =
                    HandshakeConfig { tls: source, http2: true, limit: config.load.timeouts.handshake };
                let incoming = PeerListener(Listener::new(listener, places, beginning));
                let address = config.advertise.clone().unwrap_or_else(|| reachable(bound));
                if address == clients_address {
                    return Err(JoiningError::ClientsAddress(address));
                }
                (Some(incoming), address)
            }
        };
        let host_name = host_name();
        let name = match &config.name {
            Some(name) => name.clone(),
            None => host_name.parse().map_err(|_| JoiningError::Name(host_name))?,
        };
        let incarnation = (u128::from(random()?) << 64 | u128::from(random()?)).to_be_bytes();
        let node = CatalogNode {
            name,
            incarnation: Incarnation(incarnation),
            peer_address,
            clients_address: clients_address.to_owned(),
            http_address: reachable(http),
            release: env!("CARGO_PKG_VERSION").to_owned(),
            format: STORED_FORMAT,
            draining: false,
            started_at: Some(SystemClock::default().wall()),
            beats: 0,
            report: NodeReport::default(),
        };
        let credentials = Credentials::new(begun.cluster, config.peer_secrets.clone());
        let links =
            PeerLinks::new(&node.peer_address, Dial::new(tls), credentials.clone(), config.forward_bytes);
        let links = Arc::new(links);
        let (catalog_changed, policies_told) = (Arc::new(Notify::new()), watch::Sender::default());
        let state = watch::Sender::default();
        Ok(Self {
            begun,
            node,
            links,
            credentials,
            catalog_copy: config.catalog_copy.clone(),
            incoming,
            state,
            catalog_changed,
            policies_told,
            history: History::default(),
        })
    }

    /// Changes shards and nodes in the catalog.
    pub fn operator(&self, config: &Config) -> Operator {
        Operator::new(config.clone(), self.catalog_changed.clone(), self.state.subscribe())
    }

    /// Changes policies in the catalog.
    pub fn policies(&self, clock: Arc<dyn Clock>) -> PolicyBook {
        PolicyBook {
            catalog: self.begun.catalog.clone(),
            look: self.catalog_changed.clone(),
            told: self.policies_told.subscribe(),
            others: (self.links.clone(), self.state.subscribe()),
            clock,
            turns: Turns::default(),
        }
    }

    /// The cluster.
    pub const fn cluster(&self) -> ClusterId {
        self.begun.cluster
    }

    /// The catalog of the cluster.
    pub fn catalog(&self) -> Arc<dyn Catalog> {
        self.begun.catalog.clone()
    }

    /// The versions of the image with which the node begins, if the catalog is away.
    pub fn image(&self) -> Option<ImageVersions> {
        self.begun.image()
    }

    /// Serves other nodes, and joins the cluster.
    /// `followed`: the shards with which the engine was started.
    pub async fn join(
        self,
        engine: Engine,
        clock: Arc<dyn Clock>,
        followed: EngineShards,
        traces: Option<Traces>,
    ) -> Result<Member, JoinError> {
        let Self {
            begun,
            node,
            links,
            credentials,
            catalog_copy,
            incoming,
            state,
            catalog_changed,
            policies_told,
            history,
        } = self;
        let calls = PeerCalls {
            engine: engine.clone(),
            catalog_changed: catalog_changed.clone(),
            catalog_copy,
            history,
            traces,
        };
        let peers = incoming.map(|incoming| forebay_peers::serve(incoming, credentials, calls));
        let InitialCatalog { catalog, copy, tokens, .. } = begun;
        let tasks = Arc::new(());
        let membership = Membership {
            catalog,
            node,
            engine,
            links,
            clock,
            tasks,
            catalog_changed,
            state,
            policies_told,
            followed,
        };
        Ok(Member { cluster: Some(membership.start(copy, tokens.is_some()).await?), peers })
    }
}
