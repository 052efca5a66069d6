//! Nodes are replaced one after the other, under load. No call of the Rust client may fail.
//!
//! `cargo xtask upgrade` names the program of an earlier commit in `FOREBAY_E2E_OLD_BIN`. Then the cluster is
//! of that one, and gets the new program, node by node, and one node gets the old one back. Otherwise nodes
//! are restarted with the program that they had.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use forebay_testkit::{
    program,
    servers::{Kind, Place, Private},
};
use tokio::time::{Instant, sleep};

use super::nodes::{Nodes, owned_by};
use crate::{
    client_load::ClientLoad, drain::drain_and_check, history::History, load::Load, node::Node,
    scenario::progress,
};

const NODES: usize = 3;
const SERVERS: usize = 2;
const SHARDS_PER_SERVER: usize = 2;
/// Items that are stored, delivered and acked before each step.
const PROGRESS: u64 = 300;
/// A node that joins has its share within this time. Shards that were moved stay for half a minute.
const SHARE_TIMEOUT: Duration = Duration::from_secs(90);

/// A cluster under load.
struct UpgradeCluster {
    cluster: Nodes,
    /// By their numbers.
    nodes: BTreeMap<usize, Node>,
    history: Arc<History>,
    /// Makes much that a careful client would not do, loses answers, and repeats calls with keys and request
    /// ids.
    load: Load,
    /// Sees no error.
    client: ClientLoad,
    /// They end with the test.
    _servers: Vec<Private>,
}

impl UpgradeCluster {
    /// A catalog and shards that `program` made, and nodes of it.
    async fn of(program: &Path) -> Self {
        let (mut servers, mut urls) = (Vec::new(), Vec::new());
        for _ in 0..SERVERS {
            let server = Private::start(Kind::MariaDb, &[]).await;
            for _ in 0..SHARDS_PER_SERVER {
                urls.push(server.fresh_url().await);
            }
            servers.push(server);
        }
        let catalog = servers[0].fresh_url().await;
        let mut cluster = Nodes::configured(vec![Place::default(); NODES], &catalog, &urls);
        cluster.program = program.to_owned();
        cluster.migrate().await;
        let nodes: BTreeMap<usize, Node> = (0..).zip(cluster.start_all().await).collect();
        let history = Arc::new(History::new());
        let load = Load::start_repeating(&history, nodes.values().map(Node::channel).collect(), 13);
        let client = ClientLoad::start(&history, nodes.values().map(|node| node.grpc.clone()), 14);
        Self { cluster, nodes, history, load, client, _servers: servers }
    }

    fn retarget(&self) {
        self.load.retarget(self.nodes.values().map(Node::channel).collect());
    }

    /// Ends a node, and starts it with the cluster's program.
    async fn replace(&mut self, number: usize) {
        progress(&self.history, &format!("load before node {number} is replaced"), PROGRESS).await;
        let log = || fs::read_to_string(self.cluster.log(number)).unwrap();
        let left = log().matches("left the cluster").count();
        let node = self.nodes.remove(&number).expect("a node");
        self.retarget();
        let had = owned_by(&node).await.len();
        let (status, took) = node.terminate().await;
        assert!(status.success(), "{status} after {took:?}");
        let waited = self.cluster.all_owned(&self.nodes.values().collect::<Vec<_>>()).await;
        println!("node {number} stopped after {took:?}; its {had} shards had owners {waited:?} later");
        let log = log();
        let again = log.matches("left the cluster").count();
        assert!(again == left + 1 && !log.contains("not every shard"), "{log}");
        self.nodes.insert(number, self.cluster.start(number).await);
        self.retarget();
    }

    /// Waits until a node owns a shard.
    async fn has_a_share(&self, number: usize) {
        let begun = Instant::now();
        while owned_by(&self.nodes[&number]).await.is_empty() {
            assert!(begun.elapsed() < SHARE_TIMEOUT, "node {number} owns nothing");
            sleep(Duration::from_millis(100)).await;
        }
        println!("node {number} owned a shard {:?} after its start", begun.elapsed());
    }

    /// Stops the load, drains the queue through one node, and checks what clients saw.
    async fn end(self) {
        progress(&self.history, "load after all were replaced", PROGRESS).await;
        self.client.stop().await;
        self.load.stop().await;
        let last = self.cluster.through_one(self.nodes.into_values().collect()).await;
        drain_and_check(&self.history, last.channel()).await;
        for number in 0..NODES {
            let log = fs::read_to_string(self.cluster.log(number)).unwrap();
            assert!(!log.contains("report this as a bug"), "{log}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_are_replaced_and_clients_see_no_error() {
    let old = env::var_os("FOREBAY_E2E_OLD_BIN").map(PathBuf::from);
    let mut rolling = UpgradeCluster::of(old.as_deref().unwrap_or(program())).await;
    let Some(old) = old else {
        for number in 0..NODES {
            rolling.replace(number).await;
        }
        return rolling.end().await;
    };
    progress(&rolling.history, "load before the migration", PROGRESS).await;
    rolling.cluster.program = program().to_owned();
    rolling.cluster.migrate().await;
    println!("migrated");
    for number in 0..NODES {
        rolling.replace(number).await;
        rolling.has_a_share(number).await;
    }
    for back in [&*old, program()] {
        rolling.cluster.program = back.to_owned();
        println!("node 0 gets {}", back.display());
        rolling.replace(0).await;
        rolling.has_a_share(0).await;
    }
    rolling.end().await;
}
