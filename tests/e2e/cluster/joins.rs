//! A node joins while the catalog goes away.

use std::{fs, time::Duration};

use forebay_testkit::{proxy::Spring, servers::Kind};
use tokio::time::{Instant, sleep};

use super::{nodes::Nodes, operate::json};

/// How a node's first statement to join looks on its way to the catalog.
const JOIN: &[u8] = b"INSERT INTO node ";
/// A node that joined is listed within this time.
const LISTED_WITHIN: Duration = Duration::from_secs(15);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_waits_for_a_catalog_that_goes_away_while_it_joins() {
    let (cluster, way) = Nodes::with_way_to_catalog(Kind::MariaDb, 2, 2).await;
    let first = cluster.start(0).await;
    cluster.all_owned(&[&first]).await;
    // The catalog is there when the second node reads it, and is gone when that node writes its name.
    way.trap(JOIN, Spring::ResetBefore, u32::MAX);
    let back = async {
        way.wait_sprung(2).await;
        way.pass();
    };
    let (second, ()) = tokio::join!(cluster.start(1), back);
    let begun = Instant::now();
    let names = async || {
        let listed = json(&["node", "list", "--addr", &first.grpc, "--output", "json"]).await;
        let nodes = listed["nodes"].as_array().unwrap();
        nodes.iter().map(|node| node["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    while names().await != ["node0", "node1"] {
        assert!(begun.elapsed() < LISTED_WITHIN, "{:?}", names().await);
        sleep(Duration::from_millis(100)).await;
    }
    let log = fs::read_to_string(cluster.log(1)).unwrap();
    assert!(
        log.contains("the catalog does not answer") && log.contains("joined the cluster as node1"),
        "{log}"
    );
    for node in [second, first] {
        let (status, took) = node.terminate().await;
        assert!(status.success(), "{status} after {took:?}");
    }
}
