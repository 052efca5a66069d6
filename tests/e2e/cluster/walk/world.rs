//! The nodes, servers and ways of a random walk, and what faults do to them.

use std::{fs, time::Duration};

use forebay_testkit::{
    proxy::Proxy,
    servers::{Foreign, Kind, Place, Private, WallClock, kill},
};
use tokio::time::{Instant, sleep};

use super::{
    namespaces::Namespaces,
    plan::{NODES, SERVERS, SHARDS_PER_SERVER, Step, Wires},
    proxies::Proxies,
};
use crate::{
    cluster::{nodes::Nodes, operate::run},
    node::Node,
};

/// A node has joined within this time. If the name was in use, the old process is watched for 4 s.
const JOINED_TIMEOUT: Duration = Duration::from_secs(30);
/// How often that is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Network between nodes, servers and clients.
enum Network {
    /// See [`Wires::Proxies`].
    Proxies(Proxies),
    /// See [`Wires::Namespaces`].
    Namespaces(Namespaces),
}

/// A server with shards.
struct Server {
    /// The process.
    process: Private,
    /// Its clock.
    clock: WallClock,
    /// The names of its shards' databases.
    databases: Vec<String>,
}

/// A cluster on servers of its own.
pub struct World {
    /// The nodes, by their numbers. One that is stopped is absent.
    nodes: Vec<Option<Node>>,
    /// The catalog and the shards.
    pub cluster: Nodes,
    /// The servers.
    servers: Vec<Server>,
    /// All of its ways lead through it.
    network: Network,
    /// Another program, while it holds rows.
    foreign: Option<Foreign>,
}

impl Server {
    /// A server in this place, and the URLs of its shards.
    async fn start(place: Place) -> (Self, Vec<String>) {
        let clock = WallClock::new().unwrap();
        let place = Place { before: [place.before, clock.before()].concat(), ..place };
        let process = Private::start_at(Kind::MariaDb, &["--bind-address=0.0.0.0"], place).await;
        let (mut databases, mut urls) = (Vec::new(), Vec::new());
        for _ in 0..SHARDS_PER_SERVER {
            let url = process.fresh_url().await;
            databases.push(url.rsplit('/').next().expect("a database").to_owned());
            urls.push(url);
        }
        (Self { process, clock, databases }, urls)
    }
}

impl World {
    /// A cluster in which all is well.
    pub async fn new(wires: Wires) -> Self {
        match wires {
            Wires::Proxies => Self::with_proxies().await,
            Wires::Namespaces => Self::in_namespaces().await,
        }
    }

    async fn with_proxies() -> Self {
        let (mut servers, mut ways, mut urls, mut peers) = (vec![], vec![], vec![], vec![]);
        for _ in 0..SERVERS {
            let (server, shards) = Server::start(Place::default()).await;
            let way = Proxy::of_url(&server.process.url()).await;
            urls.extend(shards.iter().map(|url| way.through(url)));
            servers.push(server);
            ways.push(way);
        }
        let url = servers[0].process.fresh_url().await;
        let catalog = Proxy::of_url(&url).await;
        let cluster = Nodes::on(&catalog.through(&url), &urls, NODES).await;
        for node in 0..NODES {
            let peer = Proxy::to(&cluster.peer_address(node)).await;
            cluster.advertise(node, &peer.address());
            peers.push(peer);
        }
        Self::of(servers, cluster, Network::Proxies(Proxies { ways, catalog, peers })).await
    }

    async fn in_namespaces() -> Self {
        let namespaces = Namespaces::new();
        let (mut servers, mut urls) = (vec![], vec![]);
        for number in 0..SERVERS {
            let (server, shards) = Server::start(namespaces.server(number)).await;
            urls.extend(shards);
            servers.push(server);
        }
        let catalog = namespaces.catalog(&servers[0].process.fresh_url().await);
        let places = (0..NODES).map(|number| namespaces.node(number)).collect();
        let cluster = Nodes::at(places, &catalog, &urls).await;
        Self::of(servers, cluster, Network::Namespaces(namespaces)).await
    }

    async fn of(servers: Vec<Server>, cluster: Nodes, network: Network) -> Self {
        let nodes = cluster.start_all().await.into_iter().map(Some).collect();
        Self { nodes, cluster, servers, network, foreign: None }
    }

    /// The nodes that run.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().flatten()
    }

    /// Begins a fault. What happens at once is done when this returns.
    pub async fn begin(&mut self, step: Step) {
        match step {
            Step::KillNode(node) => self.nodes[node].take().expect("a node").kill9().await,
            Step::StopNode(node) => {
                // Whether it leaves in an orderly way depends on what else happens.
                let (status, took) = self.nodes[node].take().expect("a node").terminate().await;
                println!("  node {node} ended with {status} after {took:?}");
            }
            Step::FreezeNode(node) => self.nodes[node].as_ref().expect("a node").freeze(),
            Step::KillServer(server) => self.servers[server].process.kill9().await,
            Step::FreezeServer(server) => self.servers[server].process.freeze().await,
            Step::JumpClock(server, ahead) => self.servers[server].clock.set(ahead).unwrap(),
            Step::MoveShard(shard, node) => {
                let (shard, name, config) =
                    (shard.to_string(), format!("node{node}"), self.cluster.config(0));
                let (done, stdout, stderr) =
                    run(&["shard", "move", &shard, &name, "--config", &config]).await;
                println!("  {}", if done { stdout } else { stderr }.trim_end());
            }
            Step::Kill(server, what, count) => {
                let Server { process, databases, .. } = &self.servers[server];
                kill(&process.url(), databases, what, count).await;
            }
            Step::HoldRows(shard, rows) => {
                // Shards are numbered from 1, server by server.
                let number = shard as usize - 1;
                let Server { process, databases, .. } = &self.servers[number / SHARDS_PER_SERVER];
                let database = &databases[number % SHARDS_PER_SERVER];
                let foreign = self.foreign.insert(Foreign::connect(&process.url(), database).await);
                rows.hold(foreign).await;
            }
            of_network => match &self.network {
                Network::Proxies(proxies) => proxies.begin(of_network),
                Network::Namespaces(namespaces) => namespaces.begin(of_network),
            },
        }
    }

    /// Ends a fault.
    pub async fn end(&mut self, step: Step) {
        match step {
            Step::FreezeNode(node) => self.nodes[node].as_ref().expect("a node").thaw(),
            Step::KillServer(server) => self.servers[server].process.restart().await,
            Step::FreezeServer(server) => self.servers[server].process.thaw().await,
            Step::JumpClock(server, _) => self.servers[server].clock.set(0).unwrap(),
            // Its locks end with its connection.
            Step::HoldRows(..) => self.foreign = None,
            // A node starts once its servers are there, see `start_missing`.
            Step::KillNode(_) | Step::StopNode(_) | Step::MoveShard(..) | Step::Kill(..) => {}
            _ => match &self.network {
                Network::Proxies(proxies) => proxies.heal(),
                Network::Namespaces(namespaces) => println!("  {} packets were lost", namespaces.heal()),
            },
        }
    }

    /// Starts the nodes that do not run, and waits until they have joined the cluster. A node whose catalog
    /// goes away before that ends, as one that starts without it.
    pub async fn start_missing(&mut self) {
        for (number, node) in self.nodes.iter_mut().enumerate() {
            if node.is_some() {
                continue;
            }
            let log = self.cluster.log(number);
            let joined = || fs::read_to_string(&log).unwrap().matches("joined the cluster as").count();
            let (before, begun) = (joined(), Instant::now());
            *node = Some(self.cluster.start(number).await);
            while joined() == before {
                assert!(begun.elapsed() < JOINED_TIMEOUT, "node {number} has not joined");
                sleep(LOOK_EVERY).await;
            }
        }
    }

    /// Stops all nodes but one, which then has all shards.
    pub async fn through_one(&mut self) -> &Node {
        let nodes = self.nodes.iter_mut().map(|node| node.take().expect("a node")).collect();
        let last = self.cluster.through_one(nodes).await;
        self.nodes[NODES - 1].insert(last)
    }
}
