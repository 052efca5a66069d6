//! A node that lives by the catalog, and that the other nodes do not reach; and one that lives, and does not
//! reach the catalog.

use std::{fs, time::Duration};

use forebay_testkit::{
    proxy::Ways,
    servers::{Kind, free_port},
};
use tokio::time::{Instant, sleep};

use super::nodes::{Nodes, metric_of_all, owned_by};

/// It is out of reach after 3 s, and outvoted 8 s later. Nodes that join get shards 35 s later.
const OUTVOTED_TIMEOUT: Duration = Duration::from_secs(90);

/// Longer than a node lives whose counter stands still.
const CUT_OFF: Duration = Duration::from_secs(10);
/// A counter that moves again is seen within this time, and what follows from it.
const SEEN_WITHIN: Duration = Duration::from_secs(5);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_others_do_not_reach_gives_its_shards_away() {
    let cluster = Nodes::new(Kind::MariaDb, 3, 3).await;
    // Nobody listens where it says that it answers.
    let config = fs::read_to_string(cluster.config(2)).unwrap();
    let advertised = format!("drain_ms = 0\nadvertise = \"127.0.0.1:{}\"", free_port().unwrap());
    fs::write(cluster.config(2), config.replace("drain_ms = 0", &advertised)).unwrap();
    // It is there first and owns all shards: those that come later give it none.
    let last = cluster.start(2).await;
    cluster.all_owned(&[&last]).await;
    let nodes = [cluster.start(0).await, cluster.start(1).await, last];

    let begun = Instant::now();
    while owned_by(&nodes[0]).await.len() + owned_by(&nodes[1]).await.len() < 3 {
        assert!(begun.elapsed() < OUTVOTED_TIMEOUT, "the third node still owns shards");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let (_, metrics) = nodes[0].fetch("/metrics").await;
    for expected in [
        "forebay_nodes{state=\"unreached\"} 1\n",
        "forebay_peer_up{peer=\"node1\"} 1\n",
        "forebay_peer_up{peer=\"node2\"} 0\n",
        "forebay_memory_bytes{budget=\"forwards\"} 0\n",
    ] {
        assert!(metrics.contains(expected), "{expected}: {metrics}");
    }
    let (_, page) = nodes[0].fetch("/nodes").await;
    assert!(page.contains("does not answer this node"), "{page}");
    assert!(page.contains("class=\"bad\">degraded"), "{page}");
    assert!(page.contains("Node node2 does not answer this one."), "{page}");
    let (_, page) = nodes[2].fetch("/nodes").await;
    assert!(!page.contains("does not answer this"), "it reaches the others: {page}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_cut_off_from_the_catalog_alone_keeps_its_shards() {
    let (cluster, way) = Nodes::with_way_of(2, Kind::MariaDb, 3, 6).await;
    let nodes = cluster.start_all().await;
    let owned = async || {
        let mut owned = Vec::new();
        for node in &nodes {
            owned.push(owned_by(node).await);
        }
        owned
    };
    let (before, moves) = (owned().await, metric_of_all(&nodes, "forebay_take_overs_total{").await);
    way.stall(Ways::Both);
    sleep(CUT_OFF).await;
    assert!(fs::read_to_string(cluster.log(2)).unwrap().contains("the catalog does not answer"));
    let (_, page) = nodes[0].fetch("/metrics").await;
    assert!(page.contains("forebay_nodes{state=\"silent\"} 1\n"), "its counter stands still: {page}");
    way.pass();
    way.reset();
    sleep(SEEN_WITHIN).await;
    assert_eq!(owned().await, before);
    assert_eq!(metric_of_all(&nodes, "forebay_take_overs_total{").await, moves, "none went to and fro");
}
