//! The order of start-up, from a configuration to a node that serves.

use std::{sync::Arc, time::Duration};

use forebay_engine::{Duty, Engine, ListedShard, Reach, Setup};
use forebay_front::{Front, Links};
use forebay_types::{Clock, ShardId, SystemClock};

use crate::{
    cluster::{self, BeginError, Begun, Followed, JoinError, Joining, JoiningError, NodeState},
    config::{Config, ShardConfig},
    connections::ConnectionCap,
    descriptors,
    grpc::{self, Admin, LoadLimits, Queue, ReflectionError},
    http::{self, NodeInfo, StatusCache, metrics},
    listen::{BindError, listen, reachable},
    node::Node,
    peers::HealthPeers,
    random::{NoRandomNumbers, random},
    readiness, shard_reports,
    shards::{Checks, NumberedShard, Opener, UnfitShard},
};

/// Why a node did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A port is not available.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// Shards must not be served.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Unfit(Vec<UnfitShard>),
    /// No metrics recorder.
    #[error("cannot set up metrics: {0}")]
    Metrics(#[from] metrics::MetricsError),
    /// No gRPC server.
    #[error(transparent)]
    Grpc(#[from] ReflectionError),
    /// The cluster can't be used.
    #[error(transparent)]
    Cluster(#[from] BeginError),
    /// The node can't be made ready to join it.
    #[error(transparent)]
    Joining(#[from] JoiningError),
    /// The node can't join it.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// No random numbers.
    #[error(transparent)]
    Random(#[from] NoRandomNumbers),
}

/// Starts a node. It takes over its shards in the background; [`Node::ready`] waits for the first.
pub async fn start(config: Config) -> Result<Node, StartError> {
    // 1. The catalog, if there is one: it names the shards. Then metrics, so that they include the first
    //    call, and the file descriptors, before any is used up.
    let begun = cluster::begin(&config).await?;
    let listed = begun.as_ref().map_or(&config.shards, |begun| &begun.shards);
    let ids: Vec<ShardId> = listed.iter().map(|shard| shard.id).collect();
    let recorder = metrics::recorder(&ids)?;
    let (limit, asked) = (descriptors::raise_limit(), [config.grpc_connections, config.http_connections]);
    let caps = descriptors::share(limit, listed, asked);

    // 2. The ports. If another process has them, no shard was touched yet.
    let (grpc_listener, grpc_address) = listen(&config.grpc, "--grpc").await?;
    let (http_listener, http_address) = listen(&config.http, "--http").await?;

    // 3. The shards. An unknown schema, or a server that may lose commits, is refused here.
    let (shards, followed) = open_shards(&config, listed, begun.as_ref()).await?;

    // 4. The engine. Without a catalog it takes over all shards; with one it is told which.
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let clients_address = config.advertise_clients.clone().unwrap_or_else(|| reachable(grpc_address));
    let member = match begun {
        Some(begun) => Some(Joining::listen(&config, begun, &clients_address, http_address).await?),
        None => None,
    };
    let own = || config.advertise.clone().unwrap_or_else(|| reachable(grpc_address));
    let address = member.as_ref().map_or_else(own, |member| member.node.peer_address.clone());
    let engine = start_engine(&config, &address, shards, clock.clone(), member.as_ref())?;

    // 5. gRPC. Health answers not serving until the shards are owned, which shows peers that we are alive.
    let status = status_cache(&engine, config.status_age);
    let cluster = member.as_ref().map(|member| member.state.subscribe());
    let (front, rules) = (front(&engine, member.as_ref()), Arc::new(config.rules.clone()));
    let queue = Queue { engine: engine.clone(), front, rules, clock: clock.clone() };
    let admin = Admin {
        alone: NodeState::alone(&address, &clients_address, http_address),
        cluster: cluster.clone(),
        status: status.clone(),
    };
    let load = LoadLimits { connections: caps.grpc, ..config.load };
    let grpc = grpc::serve(grpc_listener, queue, admin, load).await?;

    // 6. HTTP: alive, and ready as soon as a shard is served.
    let info = Arc::new(NodeInfo {
        status,
        engine: engine.clone(),
        load: grpc.load().clone(),
        http_connections: ConnectionCap::new("http", caps.http),
        grpc: grpc_address,
        http: http_address,
        address,
        started: clock.wall(),
        clock: clock.clone(),
        serving: Default::default(),
        cluster,
        recorder,
    });
    let http = http::serve(http_listener, info.clone(), config.load.timeouts.handshake);
    let readiness = tokio::spawn(readiness::follow(engine.clone(), grpc.health().clone(), info.clone()));

    // 7. The cluster, last: from now on others count on this node.
    let member = match member.zip(followed) {
        Some((member, followed)) => {
            let ports = [grpc.load().connections.clone(), info.http_connections.clone()];
            tokio::spawn(descriptors::follow(limit, member.shards.subscribe(), asked, ports));
            Some(member.join(engine.clone(), clock, followed).await?)
        }
        None => None,
    };
    Ok(Node { engine, grpc, http, info, readiness, member, drain: config.drain })
}

/// Opens the shards and checks them. With a catalog, they are followed from then on.
async fn open_shards(
    config: &Config,
    listed: &[ShardConfig],
    begun: Option<&Begun>,
) -> Result<(Vec<ListedShard>, Option<Followed>), StartError> {
    let opener = Opener::new(config);
    let shards = opener.open_all(listed).map_err(StartError::Unfit)?;
    shard_reports::check(&shards, config.allow_not_durable).await.map_err(StartError::Unfit)?;
    let checks = Checks::new(begun.map(|begun| begun.cluster), config.allow_not_durable);
    let shards: Vec<NumberedShard> = shards.into_iter().map(|shard| checks.on(shard)).collect();
    Ok(match begun {
        Some(begun) => {
            let rows = begun.copy.view().map(|view| view.shards.clone()).unwrap_or_default();
            let followed = Followed::begin(rows, opener, checks, shards);
            (followed.shards(), Some(followed))
        }
        None => (shards.into_iter().map(|(id, shard)| ListedShard::open(id, shard)).collect(), None),
    })
}

/// Starts the engine. As a member of a cluster it owns nothing until it is told to.
fn start_engine(
    config: &Config,
    address: &str,
    shards: Vec<ListedShard>,
    clock: Arc<dyn Clock>,
    member: Option<&Joining>,
) -> Result<Engine, NoRandomNumbers> {
    Ok(Engine::start_with(Setup {
        settings: config.settings.clone(),
        address: address.to_owned(),
        shards,
        duty: if member.is_some() { Duty::Leave { successor: String::new() } } else { Duty::Own },
        reach: if member.is_some() { Reach::All } else { Reach::Own },
        clock,
        peers: match member {
            Some(member) => member.links.clone(),
            None => Arc::new(HealthPeers::new(address)),
        },
        tasks: Arc::new(()),
        seed: random()?,
    }))
}

/// What passes calls on to other nodes, as a member of a cluster.
fn front(engine: &Engine, member: Option<&Joining>) -> Front {
    let links = member.map(|member| member.links.clone() as Arc<dyn Links>);
    Front::new(engine.clone(), links)
}

/// What the pages, the metrics and the calls for operators show of the engine.
fn status_cache(engine: &Engine, age: Duration) -> Arc<StatusCache> {
    let engine = engine.clone();
    Arc::new(StatusCache::new(age, move || {
        let engine = engine.clone();
        async move { engine.status().await }
    }))
}
