//! The order of start-up, from a configuration to a node that serves.

use std::{sync::Arc, time::Duration};

use forebay_config::{Config, ShardConfig};
use forebay_edge::{
    access::{Access, AccessError, FollowTask, TokenBook, Writer},
    admission::LoadLimits,
    audit::{self, Auditor},
    connections::{PlaceRules, Places},
    listen::{BindError, host_name, listen, reachable},
    random::{NoRandomNumbers, random},
    rpc::PageTokens,
    tls::{Certificates, ReloadTask, TlsError},
    traces::{ExportTask, Traces, TracesError},
};
use forebay_engine::{Duty, Engine, ListedShard, Reach, Setup, TenantBudget};
use forebay_front::{Front, Links, watch_nodes};
use forebay_membership::{BeginError, EngineShards, InitialCatalog, JoinError, living_nodes};
use forebay_operators::{
    calls::Admin,
    cluster::{
        self, CatalogMigrateError, CatalogShards, CopyFile, JoiningError, JoiningNode, NoFolder,
        ShardMismatch,
    },
    gather::Gather,
    shard_reports,
    shards::{Checks, NumberedShard, Opener, UnfitShard},
    status_cache::StatusCache,
};
use forebay_types::{Clock, SystemClock};
use forebay_web::{
    MetricSources, NodeInfo, metrics,
    serve_http::{HttpError, serve_http},
};
use futures_util::future::BoxFuture;
use prost_reflect::DescriptorError;
use tokio::{sync::watch, task::JoinHandle};

use crate::{
    descriptors::{self, PortConnections},
    grpc::{self, Layers, Queue, ReflectionError},
    huge_pages,
    node::Node,
    readiness,
};

/// Bytes of lists of records that are read from the catalog at one time. A tenant has a quarter.
const RECORD_BYTES_MAX: usize = 32 << 20;

/// Why a node did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Certificates can't be used.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Tls(Vec<TlsError>),
    /// Access can't be controlled.
    #[error(transparent)]
    Access(#[from] AccessError),
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
    /// No HTTP server.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// Calls can't be written down.
    #[error("cannot set up the audit log: {0}")]
    Audit(#[from] DescriptorError),
    /// A copy of the catalog can't be kept.
    #[error(transparent)]
    Copy(#[from] NoFolder),
    /// Shards are listed elsewhere than in the catalog.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Misplaced(Vec<ShardMismatch>),
    /// The catalog can't be made.
    #[error(transparent)]
    Catalog(#[from] CatalogMigrateError),
    /// Spans have no way to their collector.
    #[error(transparent)]
    Traces(#[from] TracesError),
    /// No random numbers.
    #[error(transparent)]
    Random(#[from] NoRandomNumbers),
}

/// Starts a node. It takes over its shards in the background; [`Node::ready`] waits for the first. Boxed, so
/// that this crate compiles all that a node does, and not each program that runs one.
pub fn start(config: Config) -> BoxFuture<'static, Result<Node, StartError>> {
    Box::pin(start_node(config))
}

async fn start_node(config: Config) -> Result<Node, StartError> {
    huge_pages::refuse();
    // 1. Certificates, the catalog, which names the shards, and credentials. Metrics include the first call.
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let certificates = certificates(&config, &clock)?;
    let begun = begin(&config, &certificates).await?;
    let (access, tokens, token_book) = protection(&config, &begun, &clock).await?;
    let shards: Vec<ShardConfig> = begun.shards().iter().map(cluster::shard_config).collect();
    let recorder = metrics::recorder(&shards.iter().map(|shard| shard.id).collect::<Vec<_>>())?;
    let (limit, asked) = (descriptors::raise_limit(), asked(&config));
    let (rules, caps) = (place_rules(&config), descriptors::share(limit, &shards, asked));
    let peer_connections = Places::new("peer", caps.peer, &rules);

    // 2. The ports. If another process has them, no shard was touched yet.
    let (grpc_listener, grpc_address) = listen(&config.grpc, "--grpc").await?;
    let (http_listener, http_address) = listen(&config.http, "--http").await?;

    // 3. The shards. An unknown schema, or a server that may lose commits, is refused here.
    let (followed, listed) = open_shards(&config, &shards, &begun).await?;

    // 4. The engine. It owns nothing until the cluster tells it to.
    let clients_address = config.advertise_clients.clone().unwrap_or_else(|| reachable(grpc_address));
    let (places, tls) = (peer_connections.clone(), certificates.peer());
    let own = JoiningNode::listen(&config, begun, places, tls, &clients_address, http_address).await?;
    let engine = start_engine(&config, &own, followed.shards(), clock.clone())?;

    // 5. gRPC. Health answers not serving until the shards are owned, which shows peers that we are alive.
    let status = status_cache(&engine, config.status_age);
    let queue = queue(&engine, &config, &own, clock.clone());
    let admin = admin(&config, &queue, &own, status.clone(), token_book);
    let audit = Auditor::new(own.catalog(), own.node.name.as_str(), clock.clone())?;
    let mut tasks = tasks(&config, &admin, &own, engine.clone());
    let load = LoadLimits { connections: caps.grpc, http_connections: caps.http, ..config.load };
    let (traces, exporting) = traces(&config)?.unzip();
    let layers = Layers { access: access.clone(), audit: audit.clone(), traces: traces.clone() };
    let grpc = grpc::serve(grpc_listener, certificates.grpc(), queue, admin, load, rules, layers).await?;

    // 6. HTTP: alive, and ready as soon as a shard is served.
    let info = Arc::new(NodeInfo {
        status,
        engine: engine.clone(),
        load: grpc.load().clone(),
        peers: (peer_connections.clone(), own.links.clone()),
        certificates: certificates.clone(),
        access,
        exposed: config.exposed.clone(),
        grpc: grpc_address,
        http: http_address,
        address: own.node.peer_address.clone(),
        started: clock.wall(),
        clock: clock.clone(),
        serving: Default::default(),
        cluster: own.state.subscribe(),
        metrics: MetricSources { recorder, history: own.history.clone(), settings: config.settings.clone() },
        streams: Default::default(),
        grafana: config.http_access.grafana.clone(),
    });
    let http = serve_http(&config, http_listener, info.clone(), audit, grpc.calls().clone(), own.catalog())?;
    let readiness = tokio::spawn(readiness::follow(engine.clone(), grpc.health().clone(), info.clone()));

    // 7. The cluster, last: from now on others count on this node.
    let ports = [grpc.load().connections.clone(), grpc.load().http_connections.clone(), peer_connections];
    tasks.push(tokio::spawn(descriptors::follow(limit, listed, asked, ports)));
    tasks.extend(watch(&config, &own, engine.clone()));
    let member = own.join(engine.clone(), clock, followed, traces).await?;
    let reloading = ReloadTask::start(&certificates, info.clock.clone());
    let (following, drain) = (tokens.map(FollowTask::start), config.drain);
    Ok(Node { engine, grpc, http, info, readiness, tasks, member, reloading, following, exporting, drain })
}

/// The certificates of the ports.
fn certificates(config: &Config, clock: &Arc<dyn Clock>) -> Result<Certificates, StartError> {
    let certificates = Certificates::load(&config.tls, clock.wall()).map_err(StartError::Tls)?;
    for sentence in &config.exposed {
        tracing::warn!("insecure: {sentence}");
    }
    Ok(certificates)
}

/// The catalog as it is now. Its shards are where the configuration lists them.
async fn begin(config: &Config, certificates: &Certificates) -> Result<InitialCatalog, StartError> {
    CopyFile::of(config).map_or(Ok(()), |file| file.check())?;
    cluster::make_missing(config).await?;
    let begun = cluster::begin(config, certificates.peer()).await?;
    let misplaced = cluster::misplaced(config, begun.shards());
    if misplaced.is_empty() { Ok(begun) } else { Err(StartError::Misplaced(misplaced)) }
}

/// Access control of the ports, the writer that follows the tokens, and the book that changes those of the
/// catalog.
async fn protection(
    config: &Config,
    begun: &InitialCatalog,
    clock: &Arc<dyn Clock>,
) -> Result<(Arc<Access>, Option<Writer>, Option<TokenBook>), StartError> {
    let catalog = begun.catalog.clone();
    let writer = match config.access.is_on() {
        true => {
            Some(Writer::begin(config.access.clone(), catalog.clone(), begun.tokens.clone(), clock).await?)
        }
        false => None,
    };
    let book = writer.as_ref().and_then(|writer| writer.book(catalog, clock));
    Ok((Access::new(writer.as_ref(), clock.clone()), writer, book))
}

/// Begins the traces and their export, if they have somewhere to go.
fn traces(config: &Config) -> Result<Option<(Traces, ExportTask)>, TracesError> {
    let name = config.name.as_ref().map_or_else(host_name, ToString::to_string);
    config.traces.as_ref().map(|settings| Traces::start(settings, &name)).transpose()
}

/// How the ports give places.
fn place_rules(config: &Config) -> PlaceRules {
    let balancers = config.http_access.trusted_proxies.clone();
    PlaceRules { per_address: config.connections_per_address, balancers }
}

/// How many connections the configuration sets for each port.
fn asked(config: &Config) -> PortConnections {
    PortConnections {
        grpc: config.grpc_connections,
        http: config.http_connections,
        peer: config.peer_connections,
        has_peers: !config.is_alone(),
    }
}

/// Opens the shards of the catalog and checks them. They are followed from then on.
async fn open_shards(
    config: &Config,
    listed: &[ShardConfig],
    begun: &InitialCatalog,
) -> Result<(EngineShards, watch::Receiver<Vec<ShardConfig>>), StartError> {
    let opener = Opener::new(config);
    let shards = opener.open_all(listed).map_err(StartError::Unfit)?;
    shard_reports::check(&shards, config.allow_not_durable).await.map_err(StartError::Unfit)?;
    let checks = Checks::new(begun.cluster, config.allow_not_durable);
    let shards: Vec<NumberedShard> = shards.into_iter().map(|shard| checks.on(shard)).collect();
    let opener = CatalogShards::new(opener, checks);
    let listed = opener.listed();
    Ok((EngineShards::begin(begun.shards().to_vec(), Arc::new(opener), shards), listed))
}

/// Starts the engine. It owns nothing until it is told to.
fn start_engine(
    config: &Config,
    own: &JoiningNode,
    shards: Vec<ListedShard>,
    clock: Arc<dyn Clock>,
) -> Result<Engine, NoRandomNumbers> {
    Ok(Engine::start_with(Setup {
        settings: config.settings.clone(),
        address: own.node.peer_address.clone(),
        shards,
        duty: Duty::Leave { successor: String::new() },
        reach: if config.is_alone() { Reach::Own } else { Reach::All },
        clock,
        peers: own.links.clone(),
        tasks: Arc::new(()),
        seed: random()?,
    }))
}

/// The way to other nodes, if any can join.
fn links(config: &Config, own: &JoiningNode) -> Option<Arc<dyn Links>> {
    (!config.is_alone()).then(|| own.links.clone() as Arc<dyn Links>)
}

/// The task that listens to other nodes, if any can join.
fn watch(config: &Config, own: &JoiningNode, engine: Engine) -> Option<JoinHandle<()>> {
    let (links, nodes) = (links(config, own)?, living_nodes(own.state.subscribe()));
    Some(tokio::spawn(watch_nodes(engine, links, Arc::new(()), nodes)))
}

/// The queue that serves clients. It passes calls on to other nodes, if any can join.
fn queue(engine: &Engine, config: &Config, own: &JoiningNode, clock: Arc<dyn Clock>) -> Queue {
    let front = Front::new(engine.clone(), links(config, own));
    let (rules, cluster) = (Arc::new(config.rules.clone()), own.state.subscribe());
    Queue { engine: engine.clone(), front, rules, cluster, clock }
}

/// The calls for operators.
fn admin(
    config: &Config,
    queue: &Queue,
    own: &JoiningNode,
    status: Arc<StatusCache>,
    token_book: Option<TokenBook>,
) -> Admin {
    let (cluster, clock) = (own.state.subscribe(), queue.clock.clone());
    Admin {
        gather: Gather::new(queue.engine.clone(), own.links.clone(), cluster.clone(), own.history.clone()),
        cluster,
        operator: own.operator(config),
        status,
        policies: own.policies(clock.clone()),
        settings: Arc::new(config.settings.clone()),
        token_book,
        records: TenantBudget::new(RECORD_BYTES_MAX),
        rules: queue.rules.clone(),
        tokens: page_tokens(config, own, clock.clone()),
        clock,
    }
}

/// Tasks that see to operations, the history of figures, old audit records, and the copy of the catalog.
fn tasks(config: &Config, admin: &Admin, own: &JoiningNode, engine: Engine) -> Vec<JoinHandle<()>> {
    let clock = || admin.clock.clone();
    let copy = cluster::keep_copy(config, own.image(), clock()).map(tokio::spawn);
    let tasks = [
        tokio::spawn(admin.gather.clone().see_to_operations()),
        tokio::spawn(own.history.clone().follow(engine, clock())),
        tokio::spawn(audit::sweep(own.catalog(), clock())),
    ];
    tasks.into_iter().chain(copy).collect()
}

/// Signs page tokens by the secret of the cluster. Its only node has none: it signs by the cluster's random
/// id, so that a list goes on after a restart.
fn page_tokens(config: &Config, own: &JoiningNode, clock: Arc<dyn Clock>) -> PageTokens {
    if let Some(secret) = config.peer_secrets.first() {
        return PageTokens::new(&[secret.reveal().as_bytes()], clock);
    }
    PageTokens::new(&[own.cluster().to_string().as_bytes()], clock)
}

/// The status of the engine for the pages, the metrics and the calls for operators.
fn status_cache(engine: &Engine, age: Duration) -> Arc<StatusCache> {
    let engine = engine.clone();
    Arc::new(StatusCache::new(age, move || {
        let engine = engine.clone();
        async move { engine.status().await }
    }))
}
