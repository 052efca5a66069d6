//! State of a node, as the pages, the probes and `/status.json` show it.

use std::{net::SocketAddr, sync::Arc};

use forebay_config::Grafana;
use forebay_edge::{access::Access, admission::AdmissionLoad, connections::Places, tls::Certificates};
use forebay_engine::{Engine, Status};
use forebay_membership::ClusterState;
use forebay_operators::status_cache::StatusCache;
use forebay_peers::PeerLinks;
use forebay_types::{Clock, Timestamp};
use serde::Serialize;
use tokio::sync::watch;

use super::{condition::Condition, measured::MetricSources, streams::Streams};

/// The state of the node, which every request handler reads.
pub type State = axum::extract::State<Arc<NodeInfo>>;

/// A node's addresses, its state, and where its figures come from.
pub struct NodeInfo {
    /// Reports shards and topics.
    pub status: Arc<StatusCache>,
    /// Reports the bytes of long polls.
    pub engine: Engine,
    /// Reports calls and bytes in memory.
    pub load: Arc<AdmissionLoad>,
    /// Connections of other nodes, and calls on their way to them.
    pub peers: (Arc<Places>, Arc<PeerLinks>),
    /// The certificates of the ports.
    pub certificates: Certificates,
    /// Decides who may do what.
    pub access: Arc<Access>,
    /// Warnings of what strangers who reach this node may do, one sentence each.
    pub exposed: Vec<String>,
    /// The bound gRPC address.
    pub grpc: SocketAddr,
    /// The bound HTTP address.
    pub http: SocketAddr,
    /// The address at which other nodes reach this one.
    pub address: String,
    /// When the node started.
    pub started: Timestamp,
    /// Computes the uptime.
    pub clock: Arc<dyn Clock>,
    /// Calls reach a shard of this node or of another one, and the node is not stopping. `/readyz` answers
    /// this.
    pub serving: watch::Sender<bool>,
    /// The cluster as this node sees it.
    pub cluster: watch::Receiver<Arc<ClusterState>>,
    /// Sources of the metrics.
    pub metrics: MetricSources,
    /// Open pages that follow what happens.
    pub streams: Streams,
    /// The template of links to Grafana.
    pub grafana: Option<Grafana>,
}

/// The document at `/status.json`.
#[derive(Serialize)]
pub struct NodeStatus {
    /// The program's version.
    pub version: &'static str,
    /// The address at which other nodes reach this one.
    pub address: String,
    /// The bound gRPC address.
    pub grpc: SocketAddr,
    /// The bound HTTP address.
    pub http: SocketAddr,
    /// How the node is, in one line.
    pub state: Condition,
    /// Warnings of what strangers who reach this node may do, one sentence each.
    pub exposed: Vec<String>,
    /// Calls reach a shard of this node or of another one, and the node is not stopping.
    pub serving: bool,
    /// When the node started, in microseconds since the Unix epoch.
    pub started_micros: i64,
    /// How long ago that was, in seconds.
    pub uptime_seconds: u64,
    /// Calls in progress.
    pub calls: usize,
    /// Bytes of requests in memory.
    pub request_bytes: usize,
    /// Shards and topics; `None` once the engine has stopped.
    pub engine: Option<Arc<Status>>,
    /// The cluster, as this node sees it.
    pub cluster: Arc<ClusterState>,
}

impl NodeInfo {
    /// The status as of now.
    pub async fn status(&self) -> NodeStatus {
        let engine = self.status.get().await;
        let (serving, now) = (*self.serving.borrow(), self.clock.wall());
        let cluster = self.cluster.borrow().clone();
        NodeStatus {
            version: env!("CARGO_PKG_VERSION"),
            address: self.address.clone(),
            grpc: self.grpc,
            http: self.http,
            state: Condition::of(serving, engine.as_deref(), &cluster, now)
                .and(self.certificates.troubles(now))
                .and(self.access.trouble().iter().map(ToString::to_string).collect()),
            exposed: self.exposed.clone(),
            serving,
            started_micros: self.started.as_micros(),
            uptime_seconds: now.since(self.started).as_secs(),
            calls: self.load.calls.in_use(),
            request_bytes: self.load.request_bytes.in_use(),
            engine,
            cluster,
        }
    }
}
