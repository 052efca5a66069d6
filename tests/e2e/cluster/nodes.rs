//! A catalog, shards and nodes, on a database server.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use forebay_testkit::{
    program,
    proxy::Proxy,
    servers::{self, Kind, Place, Server, free_port},
};
use serde_json::Value;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};
use tonic::transport::Channel;

use crate::{
    drain::drain_and_check,
    history::{Counts, History},
    node::Node,
};

/// All shards must have owners within this time, on a machine that does much else.
const OWNED_TIMEOUT: Duration = Duration::from_secs(30);
/// Nodes have their shares within this time: a shard that has just moved stays for 30 s.
const EVEN_TIMEOUT: Duration = Duration::from_secs(60);
/// A metric shows what has happened within this time.
const METRIC_TIMEOUT: Duration = Duration::from_secs(20);
/// How often that is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A catalog, its shards, and the ports of its nodes.
pub struct Nodes {
    /// Holds configurations and logs.
    folder: TempDir,
    /// Of each node: gRPC, HTTP, and the port for other nodes. They survive restarts.
    ports: Vec<[u16; 3]>,
    /// Where each node runs.
    places: Vec<Place>,
    /// How many shards there are.
    pub shards: usize,
    /// The program that migrates, and that nodes run from their next start on.
    pub program: PathBuf,
}

impl Nodes {
    /// An empty cluster of so many nodes and shards, on a server that many tests share.
    pub async fn new(kind: Kind, nodes: usize, shards: usize) -> Self {
        let server = servers::shared(kind).await;
        let catalog = server.fresh_url().await;
        Self::on(&catalog, &fresh(server, shards).await, nodes).await
    }

    /// The same with a proxy before the catalog.
    pub async fn with_way_to_catalog(kind: Kind, nodes: usize, shards: usize) -> (Self, Proxy) {
        let server = servers::shared(kind).await;
        let catalog = server.fresh_url().await;
        let way = Proxy::of_url(&catalog).await;
        // A proxy does not see statements in what is encrypted.
        let through = format!("{}?ssl-mode=DISABLED", way.through(&catalog));
        (Self::on(&through, &fresh(server, shards).await, nodes).await, way)
    }

    /// The same with a proxy between one node and the catalog.
    pub async fn with_way_of(node: usize, kind: Kind, nodes: usize, shards: usize) -> (Self, Proxy) {
        let server = servers::shared(kind).await;
        let catalog = server.fresh_url().await;
        let cluster = Self::on(&catalog, &fresh(server, shards).await, nodes).await;
        let way = Proxy::of_url(&catalog).await;
        let text = fs::read_to_string(cluster.config(node)).unwrap();
        fs::write(cluster.config(node), text.replace(&catalog, &way.through(&catalog))).unwrap();
        (cluster, way)
    }

    /// An empty cluster of so many nodes, with its catalog and its shards in these databases.
    pub async fn on(catalog: &str, urls: &[String], nodes: usize) -> Self {
        Self::at(vec![Place::default(); nodes], catalog, urls).await
    }

    /// The same, with a node in each of these places.
    pub async fn at(places: Vec<Place>, catalog: &str, urls: &[String]) -> Self {
        let cluster = Self::configured(places, catalog, urls);
        cluster.migrate().await;
        cluster
    }

    /// The configurations of such a cluster. Nothing is in the databases yet.
    pub fn configured(places: Vec<Place>, catalog: &str, urls: &[String]) -> Self {
        let nodes = places.len();
        let folder = tempfile::Builder::new().prefix("forebay-e2e-").tempdir().unwrap();
        let port = || free_port().unwrap();
        let ports = (0..nodes).map(|_| [port(), port(), port()]).collect();
        let cluster = Self { folder, ports, places, shards: urls.len(), program: program().to_owned() };
        (0..nodes).for_each(|node| cluster.write_config(node, catalog, urls));
        cluster
    }

    /// Creates or upgrades the catalog and the shards.
    pub async fn migrate(&self) {
        Node::run_of(&self.program, &["migrate".into(), "--config".into(), self.config(0)]).await;
    }

    fn write_config(&self, node: usize, catalog: &str, urls: &[String]) {
        let ([grpc, http, peer], host) = (self.ports[node], &self.places[node].host);
        let secret = self.folder.path().join("secret");
        fs::write(&secret, "the secret of the tests\n".replace(' ', "-")).unwrap();
        // An earlier release does not know the key.
        let insecure = if host.starts_with("127.") { "" } else { "insecure = true\n" };
        let mut text = format!(
            "[node]\nname = \"node{node}\"\ngrpc = \"{host}:{grpc}\"\nhttp = \"{host}:{http}\"\n\
             peer = \"{host}:{peer}\"\npeer_secret_file = \"{}\"\ndrain_ms = 0\n{insecure}\
             [catalog]\nurl = \"{catalog}\"\n",
            secret.display()
        );
        for (id, url) in (1..).zip(urls) {
            write!(text, "\n[[shard]]\nid = {id}\nurl = \"{url}\"\n").unwrap();
        }
        fs::write(self.config(node), text).unwrap();
    }

    /// Adds keys to the configurations of all nodes.
    pub fn configure(&self, keys: &str) {
        for node in 0..self.ports.len() {
            let mut text = fs::read_to_string(self.config(node)).unwrap();
            text.push_str(keys);
            fs::write(self.config(node), text).unwrap();
        }
    }

    /// Each node keeps a copy of the catalog, from its next start on. Returns where.
    pub fn keep_copies(&self) -> Vec<PathBuf> {
        let keep = |node| {
            let copy = self.log(node).with_extension("copy");
            let text = fs::read_to_string(self.config(node)).unwrap();
            let key = format!("[catalog]\ncopy_file = \"{}\"\n", copy.display());
            fs::write(self.config(node), text.replacen("[catalog]\n", &key, 1)).unwrap();
            copy
        };
        (0..self.ports.len()).map(keep).collect()
    }

    /// The configuration of node number `node` with other ports.
    pub fn other_ports(&self, node: usize) -> String {
        let mut text = fs::read_to_string(self.config(node)).unwrap();
        for port in self.ports[node] {
            text = text.replace(&format!(":{port}\""), ":0\"");
        }
        let path = self.folder.path().join("other.toml");
        fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    /// Where node number `node` listens for other nodes.
    pub fn peer_address(&self, node: usize) -> String {
        format!("{}:{}", self.places[node].host, self.ports[node][2])
    }

    /// Other nodes are told to reach node number `node` at this address, from its next start on.
    pub fn advertise(&self, node: usize, address: &str) {
        let text = fs::read_to_string(self.config(node)).unwrap();
        let text = text.replacen("\npeer = ", &format!("\nadvertise = \"{address}\"\npeer = "), 1);
        fs::write(self.config(node), text).unwrap();
    }

    /// Where the configuration of node number `node` is.
    pub fn config(&self, node: usize) -> String {
        self.folder.path().join(format!("node{node}.toml")).display().to_string()
    }

    /// Where node number `node` logs.
    pub fn log(&self, node: usize) -> PathBuf {
        self.folder.path().join(format!("node{node}.log"))
    }

    /// Starts node number `node`. It may get no shard for a while.
    pub async fn start(&self, node: usize) -> Node {
        let arguments = ["serve".into(), "--config".into(), self.config(node)];
        let ([grpc, http, _], place) = (self.ports[node], &self.places[node]);
        let addresses = [grpc, http].map(|port| format!("{}:{port}", place.host));
        let command = place.command(&self.program);
        Node::start_standby_by(command, &arguments, &self.log(node), addresses).await
    }

    /// Starts all of them, and waits until each owns its share of the shards. Before that a shard may move,
    /// seconds later: to a node that started late.
    pub async fn start_all(&self) -> Vec<Node> {
        let mut nodes = Vec::new();
        for node in 0..self.ports.len() {
            nodes.push(self.start(node).await);
        }
        self.evenly_owned(&nodes).await;
        nodes
    }

    /// Waits until each of these nodes owns its share of the shards.
    pub async fn evenly_owned(&self, nodes: &[Node]) {
        let begun = Instant::now();
        loop {
            let mut owned = Vec::new();
            for node in nodes {
                owned.push(owned_by(node).await.len());
            }
            let share = self.shards / nodes.len();
            if owned.iter().sum::<usize>() == self.shards && owned.iter().all(|&count| count >= share) {
                return;
            }
            assert!(begun.elapsed() < EVEN_TIMEOUT, "the nodes own {owned:?} of {} shards", self.shards);
            sleep(LOOK_EVERY).await;
        }
    }

    /// Waits until these nodes own all shards. Returns how long that took.
    pub async fn all_owned(&self, nodes: &[&Node]) -> Duration {
        let begun = Instant::now();
        loop {
            let mut owned = BTreeSet::new();
            for node in nodes {
                owned.extend(owned_by(node).await);
            }
            if owned.len() == self.shards {
                return begun.elapsed();
            }
            assert!(begun.elapsed() < OWNED_TIMEOUT, "only {owned:?} of {} shards are owned", self.shards);
            sleep(LOOK_EVERY).await;
        }
    }
}

impl Nodes {
    /// Stops all nodes but the last, which then has all shards. Returns that one.
    pub async fn through_one(&self, mut nodes: Vec<Node>) -> Node {
        let last = nodes.pop().expect("a node");
        for node in nodes {
            let (status, took) = node.terminate().await;
            assert!(status.success(), "{status} after {took:?}");
        }
        self.all_owned(&[&last]).await;
        last
    }

    /// Drains the queue through the last node, and checks the history.
    pub async fn drain_and_check(&self, history: &Arc<History>, nodes: Vec<Node>) -> Counts {
        let last = self.through_one(nodes).await;
        drain_and_check(history, last.channel()).await
    }
}

/// Makes empty databases.
async fn fresh(server: &Server, count: usize) -> Vec<String> {
    let mut urls = Vec::new();
    for _ in 0..count {
        urls.push(server.fresh_url().await);
    }
    urls
}

/// A connection to each of these nodes.
pub fn channels(nodes: &[Node]) -> Vec<Channel> {
    nodes.iter().map(Node::channel).collect()
}

/// The sum of the values of a metric on a node: those of the lines that begin with this text.
pub async fn metric(node: &Node, begins: &str) -> f64 {
    let (_, metrics) = node.fetch("/metrics").await;
    let lines = metrics.lines().filter(|line| line.starts_with(begins));
    lines.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
}

/// The sum over all of these nodes.
pub async fn metric_of_all(nodes: &[Node], begins: &str) -> f64 {
    let mut sum = 0.0;
    for node in nodes {
        sum += metric(node, begins).await;
    }
    sum
}

/// Waits until the sum over all of these nodes is as wanted.
pub async fn metric_becomes(nodes: &[Node], begins: &str, wanted: impl Fn(f64) -> bool) {
    let begun = Instant::now();
    loop {
        let sum = metric_of_all(nodes, begins).await;
        if wanted(sum) {
            return;
        }
        assert!(begun.elapsed() < METRIC_TIMEOUT, "{begins} is {sum}");
        sleep(LOOK_EVERY).await;
    }
}

/// The shards that a node owns.
pub async fn owned_by(node: &Node) -> BTreeSet<u64> {
    let (_, body) = node.fetch("/status.json").await;
    let status: Value = serde_json::from_str(&body).unwrap();
    let shards = status["engine"]["shards"].as_array().cloned().unwrap_or_default();
    let owned = shards.iter().filter(|shard| shard["state"] == "owned");
    owned.filter_map(|shard| shard["id"].as_u64()).collect()
}

/// The owners of shards, by their places among these nodes.
pub async fn owners(nodes: &[Node]) -> BTreeMap<u32, usize> {
    let mut owners = BTreeMap::new();
    for (number, node) in nodes.iter().enumerate() {
        owners.extend(owned_by(node).await.into_iter().map(|shard| (u32::try_from(shard).unwrap(), number)));
    }
    owners
}
