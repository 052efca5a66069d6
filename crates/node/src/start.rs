//! The order of start-up, from a configuration to a node that serves.

use std::{net::SocketAddr, sync::Arc};

use forebay_engine::Engine;
use forebay_types::{Clock, SystemClock};
use rand::{TryRng as _, rngs::SysRng};
use tokio::net::TcpListener;

use crate::{
    config::Config,
    grpc::{self, Queue, ReflectionError},
    http::{self, Facts, metrics},
    node::Node,
    peers::GrpcPeers,
    shards::{self, Guarded, UnfitShard},
};

/// Why a node did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A port can't be had.
    #[error("{address} can't be listened on: {error}")]
    Bind {
        /// The address.
        address: String,
        /// Why.
        error: std::io::Error,
    },
    /// Shards must not be served.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Unfit(Vec<UnfitShard>),
    /// The metrics can't be kept.
    #[error("metrics can't be kept: {0}")]
    Metrics(#[from] metrics::MetricsError),
    /// The gRPC server can't be set up.
    #[error(transparent)]
    Grpc(#[from] ReflectionError),
    /// The system gives no random numbers.
    #[error("the system gives no random numbers: {0}")]
    Random(String),
}

/// Starts a node. It takes its shards over in the background: [`Node::ready`] waits for that.
pub async fn start(config: Config) -> Result<Node, StartError> {
    // 1. Figures are kept from the first call on.
    let recorder = metrics::recorder()?;

    // 2. The ports: if another process has them, nothing was touched yet.
    let grpc_listener = listen(&config.grpc).await?;
    let http_listener = listen(&config.http).await?;
    let grpc_address = local(&grpc_listener, &config.grpc)?;
    let http_address = local(&http_listener, &config.http)?;
    let address = config.advertise.clone().unwrap_or_else(|| reachable(grpc_address));

    // 3. The shards: a schema that we don't know, or a server that forgets, is refused here.
    let shards = shards::open(&config).map_err(StartError::Unfit)?;
    shards::check(&shards, config.allow_not_durable).await.map_err(StartError::Unfit)?;
    let shards = Guarded::all(shards, config.allow_not_durable);

    // 4. The engine, which takes the shards over.
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let seed = SysRng.try_next_u64().map_err(|error| StartError::Random(error.to_string()))?;
    let peers = Arc::new(GrpcPeers::new(address.clone()));
    let engine = Engine::start(config.settings.clone(), address.clone(), shards, clock.clone(), peers, seed);

    // 5. gRPC. Health says not serving until the shards are there, but it answers, so that peers see us.
    let queue = Queue { engine: engine.clone(), rules: Arc::new(config.rules.clone()), clock: clock.clone() };
    let grpc = grpc::serve(grpc_listener, queue, config.load).await?;

    // 6. HTTP: alive, and not ready.
    let facts = Arc::new(Facts {
        engine: engine.clone(),
        load: grpc.load().clone(),
        grpc: grpc_address,
        http: http_address,
        address,
        started: clock.wall(),
        clock,
        serving: Default::default(),
        recorder,
    });
    let http = http::serve(http_listener, facts.clone());
    Ok(Node { engine, grpc, http, facts, drain: config.drain })
}

async fn listen(address: &str) -> Result<TcpListener, StartError> {
    let bound = TcpListener::bind(address).await;
    bound.map_err(|error| StartError::Bind { address: address.to_owned(), error })
}

fn local(listener: &TcpListener, address: &str) -> Result<SocketAddr, StartError> {
    listener.local_addr().map_err(|error| StartError::Bind { address: address.to_owned(), error })
}

/// Where others may reach a node that is told nothing about it: the bound address, or the host's name where
/// that is every address.
fn reachable(bound: SocketAddr) -> String {
    if !bound.ip().is_unspecified() {
        return bound.to_string();
    }
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match name.trim() {
        "" => format!("127.0.0.1:{}", bound.port()),
        name => format!("{name}:{}", bound.port()),
    }
}
