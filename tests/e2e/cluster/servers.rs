//! The catalog, or one of two database servers, is away for a while.

use std::{collections::BTreeSet, fs, sync::Arc, time::Duration};

use forebay_proto::v1::{ListShardsRequest, admin_service_client::AdminServiceClient};
use forebay_testkit::servers::{Kind, Private};
use tokio::time::{Instant, sleep};

use super::{
    nodes::{Nodes, channels, owned_by},
    set_ups::logged,
};
use crate::{
    history::History,
    load::Load,
    node::Node,
    scenario::{outage, progress},
};

/// Expected lines of a page are there within this time.
const SAID_TIMEOUT: Duration = Duration::from_secs(15);
/// So long a server stands still, or the catalog is away, at least.
const AWAY: Duration = Duration::from_secs(5);

/// Waits until a node's metrics have this line.
async fn shows(node: &Node, line: &str) {
    let begun = Instant::now();
    loop {
        let (_, metrics) = node.fetch("/metrics").await;
        if metrics.lines().any(|shown| shown == line) {
            return;
        }
        assert!(begun.elapsed() < SAID_TIMEOUT, "{line} is not shown");
        sleep(Duration::from_millis(20)).await;
    }
}

/// Row 26 of the faults: the data path goes on. And shards of a node that dies meanwhile are served again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_go_on_without_the_catalog() {
    let mut catalog = Private::start(Kind::MariaDb, &[]).await;
    let shards = Private::start(Kind::MariaDb, &[]).await;
    let mut urls = Vec::new();
    for _ in 0..4 {
        urls.push(shards.fresh_url().await);
    }
    let cluster = Nodes::on(&catalog.fresh_url().await, &urls, 3).await;
    let mut nodes = cluster.start_all().await;
    let history = Arc::new(History::new());
    let load = Load::start(&history, channels(&nodes), 21);
    progress(&history, "load with the catalog", 300).await;
    let before: Vec<_> =
        [owned_by(&nodes[0]).await, owned_by(&nodes[1]).await, owned_by(&nodes[2]).await].into();

    catalog.kill9().await;
    for node in &nodes {
        shows(node, "forebay_catalog_answers 0").await;
    }
    let until = Instant::now() + outage(AWAY);
    while Instant::now() < until {
        progress(&history, "load without the catalog", 100).await;
    }
    for (node, before) in nodes.iter().zip(&before) {
        assert_eq!(owned_by(node).await, *before, "nothing moves");
        let (_, page) = node.fetch("/").await;
        assert!(page.contains("The catalog does not answer"), "{page}");
    }

    nodes.remove(1).kill9().await;
    load.retarget(channels(&nodes));
    let took = cluster.all_owned(&nodes.iter().collect::<Vec<_>>()).await;
    println!("served again after {took:?} without the catalog");
    progress(&history, "load without the catalog and a node", 300).await;

    catalog.restart().await;
    for node in &nodes {
        shows(node, "forebay_catalog_answers 1").await;
        shows(node, "forebay_nodes{state=\"silent\"} 1").await;
    }
    progress(&history, "load with the catalog again", 300).await;
    load.stop().await;
    cluster.drain_and_check(&history, nodes).await;
}

/// The shards of one server have no trouble when another one stands still, and nothing moves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stands_still_moves_no_shard_of_another() {
    let healthy = Private::start(Kind::MariaDb, &[]).await;
    let mut sick = Private::start(Kind::MariaDb, &[]).await;
    let mut urls = Vec::new();
    for _ in 0..2 {
        urls.extend([healthy.fresh_url().await, sick.fresh_url().await]);
    }
    let cluster = Nodes::on(&healthy.fresh_url().await, &urls, 2).await;
    let nodes = cluster.start_all().await;
    let history = Arc::new(History::new());
    let load = Load::start(&history, channels(&nodes), 22);
    progress(&history, "load on two servers", 300).await;
    let epochs = async |node: &Node| {
        let (_, metrics) = node.fetch("/metrics").await;
        // The shards of the healthy server have odd numbers.
        let of_healthy = |line: &&str| {
            ["1", "3"]
                .iter()
                .any(|shard| line.starts_with(&format!("forebay_take_overs_total{{shard=\"{shard}\"}}")))
        };
        metrics.lines().filter(of_healthy).map(str::to_owned).collect::<BTreeSet<_>>()
    };
    let before = [epochs(&nodes[0]).await, epochs(&nodes[1]).await];
    sick.freeze().await;
    let until = Instant::now() + outage(AWAY);
    while Instant::now() < until {
        progress(&history, "load while one server stands still", 50).await;
    }
    assert_eq!([epochs(&nodes[0]).await, epochs(&nodes[1]).await], before, "no shard of the other one moved");
    sick.thaw().await;
    cluster.all_owned(&nodes.iter().collect::<Vec<_>>()).await;
    progress(&history, "load on two servers again", 300).await;
    load.stop().await;
    cluster.drain_and_check(&history, nodes).await;
}

/// A server with several shards goes away, and then a node that owned some of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_away_is_one_line_and_a_node_that_is_gone_owns_nothing() {
    let healthy = Private::start(Kind::MariaDb, &[]).await;
    let mut sick = Private::start(Kind::MariaDb, &[]).await;
    let mut urls = Vec::new();
    for _ in 0..4 {
        urls.push(sick.fresh_url().await);
    }
    let cluster = Nodes::on(&healthy.fresh_url().await, &urls, 2).await;
    let mut nodes = cluster.start_all().await;
    sick.kill9().await;
    let line = "cannot take over shards of";
    logged(&cluster.log(0), line).await;
    nodes.remove(1).kill9().await;
    shows(&nodes[0], "forebay_nodes{state=\"silent\"} 1").await;

    let mut admin = AdminServiceClient::new(nodes[0].channel());
    let begun = Instant::now();
    loop {
        let shards = admin.list_shards(ListShardsRequest::default()).await.unwrap().into_inner().shards;
        let of_gone: Vec<_> = shards.iter().filter(|shard| shard.owner == "node1").collect();
        if of_gone.is_empty() {
            break;
        }
        assert!(begun.elapsed() < SAID_TIMEOUT, "{of_gone:?}");
        sleep(Duration::from_millis(20)).await;
    }
    // Meanwhile it has tried for seconds to take over each of the four.
    assert_eq!(logged(&cluster.log(0), line).await, 1);
    assert_eq!(fs::read_to_string(cluster.log(0)).unwrap().matches("cannot take over shard ").count(), 0);
}
