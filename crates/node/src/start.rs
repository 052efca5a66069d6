//! The order of start-up, from a configuration to a node that serves.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use forebay_engine::{Duty, Engine, ListedShard, Reach, Setup, TenantBudget};
use forebay_front::{Front, Links};
use forebay_membership::{BeginError, Begun, Followed, JoinError, NodeState};
use forebay_types::{Clock, SystemClock};
use prost_reflect::DescriptorError;
use tokio::{sync::watch, task::JoinHandle};

use crate::{
    access::{Access, AccessError, Following, TokenBook, Writer},
    audit::{self, Auditor},
    cluster::{self, CatalogShards, Joining, JoiningError, Member},
    config::{Config, ShardConfig, ShardUrl},
    connections::{PlaceRules, Places},
    descriptors::{self, Asked},
    gather::Gather,
    grpc::{self, Admin, LoadLimits, PageTokens, Queue, ReflectionError},
    history::History,
    http::{Measured, NodeInfo, StatusCache, metrics},
    listen::{BindError, host_name, listen, reachable},
    node::Node,
    peers::HealthPeers,
    policies::{AloneError, PolicyBook, begin_alone},
    random::{NoRandomNumbers, random},
    readiness,
    serve_http::{HttpError, serve_http},
    shard_reports,
    shards::{Checks, NumberedShard, Opener, UnfitShard},
    tls::{Certificates, Live, PeerTls, Reloading, TlsError},
    traces::{Exporting, Traces, TracesError},
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
    /// The catalog of policies can't be used.
    #[error(transparent)]
    Policies(#[from] AloneError),
    /// Spans have no way to their collector.
    #[error(transparent)]
    Traces(#[from] TracesError),
    /// No random numbers.
    #[error(transparent)]
    Random(#[from] NoRandomNumbers),
}

/// Starts a node. It takes over its shards in the background; [`Node::ready`] waits for the first.
pub async fn start(config: Config) -> Result<Node, StartError> {
    // 1. Certificates, credentials, and the catalog, which names the shards. Metrics include the first call.
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let certificates = certificates(&config, &clock)?;
    let begun = cluster::begin(&config).await?;
    let (access, tokens, book) = protection(&config, begun.as_ref(), &clock).await?;
    let listed = &listed_shards(&config, begun.as_ref());
    let recorder = metrics::recorder(&listed.iter().map(|shard| shard.id).collect::<Vec<_>>())?;
    let (limit, asked) = (descriptors::raise_limit(), asked(&config));
    let (rules, caps) = (place_rules(&config), descriptors::share(limit, listed, asked));
    let peer_connections = Places::new("peer", caps.peer, &rules);

    // 2. The ports. If another process has them, no shard was touched yet.
    let (grpc_listener, grpc_address) = listen(&config.grpc, "--grpc").await?;
    let (http_listener, http_address) = listen(&config.http, "--http").await?;

    // 3. The shards. An unknown schema, or a server that may lose commits, is refused here.
    let (shards, followed) = open_shards(&config, listed, begun.as_ref()).await?;

    // 4. The engine. Without a catalog it takes over all shards; with one it is told which.
    let clients_address = config.advertise_clients.clone().unwrap_or_else(|| reachable(grpc_address));
    let port = (peer_connections.clone(), certificates.peer());
    let member = joining(&config, begun, port, &clients_address, http_address).await?;
    let (own, address) = (member.as_ref(), address(&config, grpc_address, member.as_ref()));
    let engine = start_engine(&config, &address, shards, clock.clone(), own)?;

    // 5. gRPC. Health answers not serving until the shards are owned, which shows peers that we are alive.
    let (status, cluster) = (status_cache(&engine, config.status_age), own.map(|own| own.state.subscribe()));
    let queue = queue(&engine, &config, own, clock.clone());
    let alone = cluster::alone(&address, &clients_address, http_address);
    let (policies, following) = policies(&config, &engine, own, clock.clone()).await?.unzip();
    let books = (policies, following.flatten(), book);
    let (admin, audit, history, mut tasks) = admin(&config, &queue, alone, own, status.clone(), books)?;
    let load = LoadLimits { connections: caps.grpc, http_connections: caps.http, ..config.load };
    let (traces, exporting) = traces(&config)?.unzip();
    let layers = (access.clone(), audit.clone(), traces.clone());
    let grpc = grpc::serve(grpc_listener, certificates.grpc(), queue, admin, (load, rules), layers).await?;

    // 6. HTTP: alive, and ready as soon as a shard is served.
    let info = Arc::new(NodeInfo {
        status,
        engine: engine.clone(),
        load: grpc.load().clone(),
        peers: own.map(|own| (peer_connections.clone(), own.links.clone())),
        certificates: certificates.clone(),
        access,
        exposed: config.exposed.clone(),
        grpc: grpc_address,
        http: http_address,
        address,
        started: clock.wall(),
        clock: clock.clone(),
        serving: Default::default(),
        cluster,
        metrics: Measured { recorder, history, settings: config.settings.clone() },
        streams: Default::default(),
        grafana: config.http_access.grafana.clone(),
    });
    let http = serve_http(&config, http_listener, (info.clone(), audit), grpc.calls().clone(), own)?;
    let readiness = tokio::spawn(readiness::follow(engine.clone(), grpc.health().clone(), info.clone()));

    // 7. The cluster, last: from now on others count on this node.
    let ports = [grpc.load().connections.clone(), grpc.load().http_connections.clone(), peer_connections];
    let (followed, listed) = followed.unzip();
    tasks.extend(listed.map(|listed| tokio::spawn(descriptors::follow(limit, listed, asked, ports))));
    let member = join(member.zip(followed), engine.clone(), clock, traces).await?;
    let reloading = Reloading::start(&certificates, info.clock.clone());
    let (following, drain) = (tokens.map(Following::start), config.drain);
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

/// Access control of the ports, the writer that follows the tokens, and the book that changes those of the
/// catalog.
async fn protection(
    config: &Config,
    begun: Option<&Begun>,
    clock: &Arc<dyn Clock>,
) -> Result<(Arc<Access>, Option<Writer>, Option<TokenBook>), StartError> {
    let catalog = begun.map(|begun| begun.catalog.clone());
    let writer = match config.access.is_on() {
        true => Some(Writer::begin(config.access.clone(), catalog.clone(), clock).await?),
        false => None,
    };
    let book = writer.as_ref().and_then(|writer| writer.book(catalog, clock));
    Ok((Access::new(writer.as_ref(), clock.clone()), writer, book))
}

/// Serves other nodes of the cluster, if there is one, before it is joined.
async fn joining(
    config: &Config,
    begun: Option<Begun>,
    port: (Arc<Places>, Option<Arc<Live<PeerTls>>>),
    clients_address: &str,
    http: SocketAddr,
) -> Result<Option<Joining>, JoiningError> {
    match begun {
        Some(begun) => Joining::listen(config, begun, port, clients_address, http).await.map(Some),
        None => Ok(None),
    }
}

/// Begins the traces and their export, if they have somewhere to go.
fn traces(config: &Config) -> Result<Option<(Traces, Exporting)>, TracesError> {
    let name = config.name.as_ref().map_or_else(host_name, ToString::to_string);
    config.traces.as_ref().map(|settings| Traces::start(settings, &name)).transpose()
}

/// Joins the cluster, if there is one.
async fn join(
    joining: Option<(Joining, Followed)>,
    engine: Engine,
    clock: Arc<dyn Clock>,
    traces: Option<Traces>,
) -> Result<Option<Member>, JoinError> {
    match joining {
        Some((joining, followed)) => joining.join(engine, clock, followed, traces).await.map(Some),
        None => Ok(None),
    }
}

/// The address that this node gives others.
fn address(config: &Config, grpc: SocketAddr, member: Option<&Joining>) -> String {
    let own = || config.advertise.clone().unwrap_or_else(|| reachable(grpc));
    member.map_or_else(own, |member| member.node.peer_address.clone())
}

/// How the ports give places.
fn place_rules(config: &Config) -> PlaceRules {
    let balancers = config.http_access.trusted_proxies.clone();
    PlaceRules { per_address: config.connections_per_address, balancers }
}

/// How many connections the configuration sets for each port.
fn asked(config: &Config) -> Asked {
    Asked {
        grpc: config.grpc_connections,
        http: config.http_connections,
        peer: config.peer_connections,
        in_cluster: config.catalog.is_some(),
    }
}

/// The shards of the catalog; without one, those of the configuration.
fn listed_shards(config: &Config, begun: Option<&Begun>) -> Vec<ShardConfig> {
    match begun {
        Some(begun) => begun.shards().iter().map(cluster::shard_config).collect(),
        None => config.shards.clone(),
    }
}

/// The shards of the catalog, and what tells of their changes.
type FollowedShards = (Followed, watch::Receiver<Vec<ShardConfig>>);

/// Opens the shards and checks them. With a catalog, they are followed from then on.
async fn open_shards(
    config: &Config,
    listed: &[ShardConfig],
    begun: Option<&Begun>,
) -> Result<(Vec<ListedShard>, Option<FollowedShards>), StartError> {
    let opener = Opener::new(config);
    let shards = opener.open_all(listed).map_err(StartError::Unfit)?;
    shard_reports::check(&shards, config.allow_not_durable).await.map_err(StartError::Unfit)?;
    let checks = Checks::new(begun.map(|begun| begun.cluster), config.allow_not_durable);
    let shards: Vec<NumberedShard> = shards.into_iter().map(|shard| checks.on(shard)).collect();
    Ok(match begun {
        Some(begun) => {
            let opener = CatalogShards::new(opener, checks);
            let listed = opener.listed();
            let followed = Followed::begin(begun.shards().to_vec(), Arc::new(opener), shards);
            (followed.shards(), Some((followed, listed)))
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
            None => Arc::new(HealthPeers::new(address, config.tls.server.is_some())),
        },
        tasks: Arc::new(()),
        seed: random()?,
    }))
}

/// The queue that serves clients. As a member of a cluster it passes calls on to other nodes.
fn queue(engine: &Engine, config: &Config, member: Option<&Joining>, clock: Arc<dyn Clock>) -> Queue {
    let links = member.map(|member| member.links.clone() as Arc<dyn Links>);
    let front = Front::new(engine.clone(), links);
    Queue { engine: engine.clone(), front, rules: Arc::new(config.rules.clone()), clock }
}

/// The calls for operators, what writes them down, and tasks that see to both.
type Operators = (Admin, Arc<Auditor>, History, Vec<JoinHandle<()>>);

/// The calls for operators, what writes them down, and what sees to operations and old records. `alone`: the
/// node, if there is no cluster.
fn admin(
    config: &Config,
    queue: &Queue,
    alone: NodeState,
    member: Option<&Joining>,
    status: Arc<StatusCache>,
    (policies, following, token_book): (Option<PolicyBook>, Option<JoinHandle<()>>, Option<TokenBook>),
) -> Result<Operators, DescriptorError> {
    let cluster = member.map(|member| member.state.subscribe());
    let operator = member.map(|member| member.operator(config));
    let links = member.map(|member| member.links.clone());
    let history = member.map_or_else(History::default, |member| member.history.clone());
    let gather = Gather::new(queue.engine.clone(), links, cluster.clone(), history.clone());
    let mut tasks = vec![tokio::spawn(gather.clone().see_to_operations())];
    tasks.push(tokio::spawn(history.clone().follow(queue.engine.clone(), queue.clock.clone())));
    tasks.extend(following);
    let (rules, clock) = (queue.rules.clone(), queue.clock.clone());
    let catalog = policies.as_ref().map(|book| book.catalog.clone());
    tasks.extend(catalog.clone().map(|catalog| tokio::spawn(audit::sweep(catalog, clock.clone()))));
    let name = member.map_or(alone.name.clone(), |member| member.node.name.to_string());
    // Without a catalog there is the log alone.
    let audit = Auditor::new(catalog, &name, clock.clone())?;
    let tokens = page_tokens(config, clock.clone());
    let settings = Arc::new(config.settings.clone());
    let records = TenantBudget::new(RECORD_BYTES_MAX);
    let admin = Admin {
        alone,
        cluster,
        operator,
        status,
        gather,
        policies,
        settings,
        token_book,
        records,
        rules,
        tokens,
        clock,
    };
    Ok((admin, audit, history, tasks))
}

/// The book that changes policies, and for a node without a cluster the task that follows them. `None`: there
/// is no catalog.
async fn policies(
    config: &Config,
    engine: &Engine,
    member: Option<&Joining>,
    clock: Arc<dyn Clock>,
) -> Result<Option<(PolicyBook, Option<JoinHandle<()>>)>, AloneError> {
    match (member, &config.policies_file) {
        (Some(member), _) => Ok(Some((member.policies(clock), None))),
        (None, Some(path)) => {
            let (book, following) = begin_alone(path, engine, clock).await?;
            Ok(Some((book, Some(following))))
        }
        (None, None) => Ok(None),
    }
}

/// Signs page tokens by the secret of the cluster. Nodes with a list of shards of their own have none; nodes
/// that share the list share the addresses of the shards, with their passwords.
fn page_tokens(config: &Config, clock: Arc<dyn Clock>) -> PageTokens {
    if let Some(secret) = config.peer_secrets.first() {
        return PageTokens::new(&[secret.reveal().as_bytes()], clock);
    }
    let address = |shard: &ShardConfig| match &shard.url {
        ShardUrl::MySql(url) => format!("{} {url}", shard.id),
        ShardUrl::Sqlite(path) => format!("{} {}", shard.id, path.display()),
    };
    let addresses: Vec<String> = config.shards.iter().map(address).collect();
    let secrets: Vec<&[u8]> = addresses.iter().map(String::as_bytes).collect();
    PageTokens::new(&secrets, clock)
}

/// The status of the engine for the pages, the metrics and the calls for operators.
fn status_cache(engine: &Engine, age: Duration) -> Arc<StatusCache> {
    let engine = engine.clone();
    Arc::new(StatusCache::new(age, move || {
        let engine = engine.clone();
        async move { engine.status().await }
    }))
}
