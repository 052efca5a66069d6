//! The order of start-up, from a configuration to a node that serves.

use std::{io, net::SocketAddr, sync::Arc};

use forebay_engine::Engine;
use forebay_types::{Clock, ShardId, SystemClock};
use rand::{TryRng as _, rngs::SysRng};
use tokio::net::{TcpListener, TcpSocket, lookup_host};

use crate::{
    config::Config,
    connections::ConnectionCap,
    descriptors,
    grpc::{self, LoadLimits, Queue, ReflectionError},
    http::{self, NodeInfo, StatusCache, metrics},
    node::Node,
    peers::GrpcPeers,
    readiness, shard_reports,
    shards::{self, CheckedShard, UnfitShard},
};

/// Connections that may wait to be accepted. Where they are too many for that, clients try again only after
/// seconds, and think meanwhile that they are connected. `net.core.somaxconn` bounds it too.
const BACKLOG: u32 = 4_096;

/// Why a node did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A port is not available.
    #[error("cannot listen on {address}: {}", bind_error(error, flag))]
    Bind {
        /// The configured address.
        address: String,
        /// The flag that sets another address.
        flag: &'static str,
        /// Why.
        error: io::Error,
    },
    /// Shards must not be served.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Unfit(Vec<UnfitShard>),
    /// No metrics recorder.
    #[error("cannot set up metrics: {0}")]
    Metrics(#[from] metrics::MetricsError),
    /// No gRPC server.
    #[error(transparent)]
    Grpc(#[from] ReflectionError),
    /// No random numbers.
    #[error("cannot read random numbers from the system: {0}")]
    Random(String),
}

fn bind_error(error: &io::Error, flag: &str) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => format!("already in use (try `{flag}`)"),
        _ => error.to_string(),
    }
}

/// Starts a node. It takes over its shards in the background; [`Node::ready`] waits for the first.
pub async fn start(config: Config) -> Result<Node, StartError> {
    // 1. Metrics, so that they include the first call. Then the file descriptors, before any is used up.
    let ids: Vec<ShardId> = config.shards.iter().map(|shard| shard.id).collect();
    let recorder = metrics::recorder(&ids)?;

    let limit = descriptors::raise_limit();
    let caps = descriptors::share(limit, &config.shards, [config.grpc_connections, config.http_connections]);

    // 2. The ports. If another process has them, no shard was touched yet.
    let (grpc_listener, grpc_address) = listen(&config.grpc, "--grpc").await?;
    let (http_listener, http_address) = listen(&config.http, "--http").await?;
    let address = config.advertise.clone().unwrap_or_else(|| reachable(grpc_address));

    // 3. The shards. An unknown schema, or a server that may lose commits, is refused here.
    let shards = shards::open(&config).map_err(StartError::Unfit)?;
    shard_reports::check(&shards, config.allow_not_durable).await.map_err(StartError::Unfit)?;
    let shards = CheckedShard::wrap_all(shards, config.allow_not_durable);

    // 4. The engine, which takes over the shards.
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let seed = SysRng.try_next_u64().map_err(|error| StartError::Random(error.to_string()))?;
    let peers = Arc::new(GrpcPeers::new(address.clone()));
    let engine = Engine::start(config.settings.clone(), address.clone(), shards, clock.clone(), peers, seed);

    let load = LoadLimits { connections: caps.grpc, ..config.load };

    // 5. gRPC. Health answers not serving until the shards are owned, which shows peers that we are alive.
    let queue = Queue { engine: engine.clone(), rules: Arc::new(config.rules.clone()), clock: clock.clone() };
    let grpc = grpc::serve(grpc_listener, queue, load).await?;

    // 6. HTTP: alive, and ready as soon as a shard is served.
    let asked = engine.clone();
    let ask = move || {
        let engine = asked.clone();
        async move { engine.status().await }
    };
    let info = Arc::new(NodeInfo {
        status: StatusCache::new(config.status_age, ask),
        engine: engine.clone(),
        load: grpc.load().clone(),
        http_connections: ConnectionCap::new("http", caps.http),
        grpc: grpc_address,
        http: http_address,
        address,
        started: clock.wall(),
        clock,
        serving: Default::default(),
        recorder,
    });
    let http = http::serve(http_listener, info.clone(), config.load.timeouts.handshake);
    let readiness = tokio::spawn(readiness::follow(engine.clone(), grpc.health().clone(), info.clone()));
    Ok(Node { engine, grpc, http, info, readiness, drain: config.drain })
}

/// Binds an address; returns the real one too, since the configured port may be 0.
async fn listen(address: &str, flag: &'static str) -> Result<(TcpListener, SocketAddr), StartError> {
    let failed = |error| StartError::Bind { address: address.to_owned(), flag, error };
    let listener = bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    Ok((listener, bound))
}

/// Listens at the first address of a name that can be bound.
async fn bind(address: &str) -> io::Result<TcpListener> {
    let mut failed = io::Error::new(io::ErrorKind::InvalidInput, "the name has no address");
    for address in lookup_host(address).await? {
        let listen = || {
            let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
            socket.set_reuseaddr(true)?;
            socket.bind(address)?;
            socket.listen(BACKLOG)
        };
        match listen() {
            Ok(listener) => return Ok(listener),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// The default of `node.advertise`: the bound address, or the host's name if every address is bound.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_port_in_use_names_the_address_and_the_flag() {
        let (_listener, bound) = listen("127.0.0.1:0", "--grpc").await.unwrap();
        let error = listen(&bound.to_string(), "--grpc").await.unwrap_err();
        assert_eq!(error.to_string(), format!("cannot listen on {bound}: already in use (try `--grpc`)"));
    }
}
