//! The nodes, servers and ways of a random walk, and what faults do to them.

use std::{fs, time::Duration};

use forebay_testkit::{
    proxy::Proxy,
    servers::{Kind, Private, kill},
};
use tokio::time::{Instant, sleep};

use super::plan::{NODES, SERVERS, SHARDS_PER_SERVER, Step};
use crate::{
    cluster::{nodes::Nodes, operate::run},
    node::Node,
};

/// A node has joined within this time. If the name was in use, the old process is watched for 4 s.
const JOINED_TIMEOUT: Duration = Duration::from_secs(30);
/// How often that is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A cluster on servers of its own. All of its ways lead through proxies.
pub struct World {
    /// The nodes, by their numbers. One that is stopped is absent.
    nodes: Vec<Option<Node>>,
    /// The catalog and the shards.
    pub cluster: Nodes,
    /// The servers.
    servers: Vec<Private>,
    /// The names of the shards' databases on each server.
    databases: Vec<Vec<String>>,
    /// The way to each server's shards.
    ways: Vec<Proxy>,
    /// The way to the catalog.
    catalog: Proxy,
    /// The way of other nodes to each node.
    peers: Vec<Proxy>,
}

impl World {
    /// A cluster in which all is well.
    pub async fn new() -> Self {
        let (mut servers, mut databases, mut ways, mut urls) = (vec![], vec![], vec![], vec![]);
        for _ in 0..SERVERS {
            let server = Private::start(Kind::MariaDb, &[]).await;
            let way = Proxy::of_url(&server.url()).await;
            let mut names = Vec::new();
            for _ in 0..SHARDS_PER_SERVER {
                let url = server.fresh_url().await;
                names.push(url.rsplit('/').next().expect("a database").to_owned());
                urls.push(way.through(&url));
            }
            servers.push(server);
            databases.push(names);
            ways.push(way);
        }
        let url = servers[0].fresh_url().await;
        let catalog = Proxy::of_url(&url).await;
        let cluster = Nodes::on(&catalog.through(&url), &urls, NODES).await;
        let mut peers = Vec::new();
        for node in 0..NODES {
            let peer = Proxy::to(&cluster.peer_address(node)).await;
            cluster.advertise(node, &peer.address());
            peers.push(peer);
        }
        let nodes = cluster.start_all().await.into_iter().map(Some).collect();
        Self { nodes, cluster, servers, databases, ways, catalog, peers }
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
            Step::KillServer(server) => self.servers[server].kill9().await,
            Step::FreezeServer(server) => self.servers[server].freeze().await,
            Step::ResetWay(way) => self.ways[way].reset(),
            Step::RefuseWay(way) => {
                self.ways[way].refuse();
                self.ways[way].reset();
            }
            Step::StallWay(way, ways) => self.ways[way].stall(ways),
            Step::DelayWay(way, ways, delay) => self.ways[way].delay(ways, delay),
            Step::CutWay(way, toward, bytes) => self.ways[way].cut_after(toward, bytes),
            Step::TrapCommits(way, spring, times) => {
                self.ways[way].trap(forebay_testkit::proxy::BATCH_COMMIT, spring, times);
            }
            Step::StallCatalog(ways) => self.catalog.stall(ways),
            Step::ResetCatalog => self.catalog.reset(),
            Step::RefusePeer(node) => {
                self.peers[node].refuse();
                self.peers[node].reset();
            }
            Step::StallPeer(node, ways) => self.peers[node].stall(ways),
            Step::MoveShard(shard, node) => {
                let (shard, name, config) =
                    (shard.to_string(), format!("node{node}"), self.cluster.config(0));
                let (done, stdout, stderr) =
                    run(&["shards", "move", &shard, &name, "--config", &config]).await;
                println!("  {}", if done { stdout } else { stderr }.trim_end());
            }
            Step::Kill(server, what, count) => {
                kill(&self.servers[server].url(), &self.databases[server], what, count).await;
            }
        }
    }

    /// Ends a fault.
    pub async fn end(&mut self, step: Step) {
        match step {
            Step::FreezeNode(node) => self.nodes[node].as_ref().expect("a node").thaw(),
            Step::KillServer(server) => self.servers[server].restart().await,
            Step::FreezeServer(server) => self.servers[server].thaw().await,
            Step::ResetWay(way)
            | Step::RefuseWay(way)
            | Step::StallWay(way, _)
            | Step::DelayWay(way, ..)
            | Step::CutWay(way, ..)
            | Step::TrapCommits(way, ..) => self.ways[way].pass(),
            Step::StallCatalog(_) | Step::ResetCatalog => self.catalog.pass(),
            Step::RefusePeer(node) | Step::StallPeer(node, _) => self.peers[node].pass(),
            // A node starts once its servers are there, see `start_missing`.
            Step::KillNode(_) | Step::StopNode(_) | Step::MoveShard(..) | Step::Kill(..) => {}
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
