//! Two nodes try to take the same shards at the same moment.

use std::{sync::Arc, time::Duration};

use forebay_testkit::{
    proxy::{Proxy, Spring},
    servers::{self, Foreign, Kind},
};
use tokio::time::{Instant, sleep};

use super::{
    nodes::{metric, metric_becomes, metric_of_all},
    ways::epoch,
};
use crate::{
    backend::{Backend, Cluster},
    drain::drain_and_check,
    history::History,
    load::Load,
    node::Node,
    scenario::{kinds, progress},
};

/// Every node is to own all of them, since no catalog says otherwise.
const SHARDS: usize = 4;
/// How often an owner is killed.
const ROUNDS: u32 = 2;
/// How a claim looks on its way to a server.
const CLAIM: &[u8] = b"/* forebay take-over */ UPDATE fence";
/// A claim arrives so much later: more than the two candidates are apart, which look every 100 ms.
const HELD: Duration = Duration::from_millis(300);
/// Shards have new owners within this time.
const OWNED_WITHIN: Duration = Duration::from_secs(20);

/// The shards, and the ways to them.
struct Shards {
    /// The way to each.
    ways: Vec<Proxy>,
    /// Another program's connection to each.
    foreign: Vec<Foreign>,
    /// Their URLs, through the proxies.
    urls: Vec<String>,
}

impl Shards {
    async fn new(kind: Kind) -> Self {
        let server = servers::shared(kind).await;
        let mut shards = Self { ways: Vec::new(), foreign: Vec::new(), urls: Vec::new() };
        for _ in 0..SHARDS {
            let url = server.fresh_url().await;
            let (way, database) = (Proxy::of_url(&url).await, url.rsplit('/').next().expect("a database"));
            // A proxy does not see claims in what is encrypted.
            shards.urls.push(format!("{}?ssl-mode=DISABLED", way.through(&url)));
            shards.foreign.push(Foreign::connect(server.url(), database).await);
            shards.ways.push(way);
        }
        shards
    }

    async fn epochs(&mut self) -> Vec<i64> {
        let mut epochs = Vec::new();
        for foreign in &mut self.foreign {
            epochs.push(epoch(foreign).await);
        }
        epochs
    }

    /// How many claims were sent so far.
    fn claims(&self) -> u32 {
        self.ways.iter().map(Proxy::sprung).sum()
    }
}

/// Waits until these nodes own all shards.
async fn all_owned(nodes: &[Node]) {
    let begun = Instant::now();
    while metric_of_all(nodes, "forebay_shard_owned").await < SHARDS as f64 {
        assert!(begun.elapsed() < OWNED_WITHIN, "shards have no owner");
        sleep(Duration::from_millis(20)).await;
    }
}

/// Takes out the node with the most shards. Says how many it has.
async fn largest(nodes: &mut Vec<Node>) -> (Node, f64) {
    let (mut largest, mut most) = (0, 0.0);
    for (number, node) in nodes.iter().enumerate() {
        let owned = metric(node, "forebay_shard_owned").await;
        if owned > most {
            (largest, most) = (number, owned);
        }
    }
    (nodes.remove(largest), most)
}

/// Kills owners. The two nodes that are left find the shards silent together, and each sends its claim before
/// the other one's has arrived.
async fn candidates_race(kind: Kind, seed: u64) {
    let mut shards = Shards::new(kind).await;
    let cluster = Cluster::on(Backend::Server(kind), &shards.urls, 3 + ROUNDS as usize).await;
    // Each has a catalog of its own, so that nothing but the shards keeps them apart.
    for node in 0..3 + ROUNDS as usize {
        cluster.set_catalog(node, &servers::shared(kind).await.fresh_url().await).await;
    }
    let mut nodes = vec![cluster.start(0).await];
    nodes.extend([cluster.start_standby(1).await, cluster.start_standby(2).await]);
    let channels = |nodes: &[Node]| nodes.iter().map(Node::channel).collect::<Vec<_>>();
    let history = Arc::new(History::new());
    let load = Load::start(&history, channels(&nodes), seed);
    progress(&history, "load on one of three nodes", 200).await;
    shards.ways.iter().for_each(|way| way.trap(CLAIM, Spring::Hold(HELD), u32::MAX));
    let mut beaten = 0;
    for round in 0..ROUNDS {
        let (before, claims) = (shards.epochs().await, shards.claims());
        let (owner, owned) = largest(&mut nodes).await;
        owner.kill9().await;
        load.retarget(channels(&nodes));
        all_owned(&nodes).await;
        let grown: Vec<i64> =
            shards.epochs().await.iter().zip(&before).map(|(now, then)| now - then).collect();
        let sent = shards.claims() - claims;
        println!("round {round}: {owned} shards, {sent} claims, epochs grew by {grown:?}");
        assert!(grown.iter().all(|grown| *grown <= 1), "more than one candidate has won: {grown:?}");
        assert_eq!(grown.iter().sum::<i64>(), owned as i64, "each shard has one winner");
        assert_eq!(metric_of_all(&nodes, "forebay_shard_owned").await, SHARDS as f64);
        beaten += i64::from(sent) - owned as i64;
        progress(&history, "load on two of three nodes", 100).await;
        nodes.push(cluster.start_standby(3 + round as usize).await);
        load.retarget(channels(&nodes));
    }
    assert!(beaten > 0, "no two candidates tried at once");
    shards.ways.iter().for_each(Proxy::pass);
    load.stop().await;
    while nodes.len() > 1 {
        nodes.remove(0).kill9().await;
    }
    metric_becomes(&nodes, "forebay_shard_owned", |owned| owned == SHARDS as f64).await;
    drain_and_check(&history, nodes[0].channel()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_08_of_two_candidates_at_once_exactly_one_wins() {
    for kind in kinds(Kind::MariaDb) {
        candidates_race(kind, 93).await;
    }
}
