//! `forebay dev --nodes`: a cluster in one process.

use std::{collections::BTreeSet, time::Duration};

use serde_json::Value;
use tokio::time::Instant;

use super::operate::json;
use crate::node::Node;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_nodes_run_in_one_process() {
    let folder = tempfile::Builder::new().prefix("forebay-e2e-").tempdir().unwrap();
    let data = folder.path().join("data").display().to_string();
    let any = "127.0.0.1:0";
    let arguments = ["dev", "--nodes", "3", "--data-dir", &data, "--grpc", any, "--http", any];
    let node = Node::start(&arguments.map(str::to_owned), &folder.path().join("log")).await;

    let nodes = each_with_a_shard(&node).await;
    let text = |key: &str| nodes.iter().map(|node| node[key].as_str().unwrap()).collect::<Vec<_>>();
    assert_eq!(text("name"), ["node1", "node2", "node3"]);
    let addresses: BTreeSet<&str> = text("clientsAddress").into_iter().collect();
    assert!(addresses.len() == 3 && addresses.contains(node.grpc.as_str()), "{addresses:?}");

    // One node takes items for the shards of all.
    for shard in ["1", "2", "3"] {
        let put =
            ["enqueue", "--addr", &node.grpc, "--topic", "t", "--shard", shard, "--output", "json", "x"];
        json(&put).await;
    }
    let owners = owners(&node).await;
    let (status, _) = node.terminate().await;
    assert!(status.success(), "{status}");

    // The nodes stopped together: no shard has moved.
    let node = Node::start(&arguments.map(str::to_owned), &folder.path().join("log")).await;
    each_with_a_shard(&node).await;
    assert_eq!(self::owners(&node).await, owners);
    let (status, _) = node.terminate().await;
    assert!(status.success(), "{status}");
}

/// Waits until each of the nodes has a shard. What a node shows of the others is up to a second old.
async fn each_with_a_shard(node: &Node) -> Vec<Value> {
    let begun = Instant::now();
    loop {
        let listed = json(&["node", "list", "--addr", &node.grpc, "--output", "json"]).await;
        let nodes = listed["nodes"].as_array().unwrap().clone();
        if nodes.len() == 3 && nodes.iter().all(|node| node["shards"] == 1) {
            return nodes;
        }
        assert!(begun.elapsed() < Duration::from_secs(10), "{listed}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The shards with their owners.
async fn owners(node: &Node) -> Vec<(u64, String)> {
    let listed = json(&["shard", "list", "--addr", &node.grpc, "--output", "json"]).await;
    let owner = |shard: &Value| (shard["id"].as_u64().unwrap(), shard["owner"].as_str().unwrap().to_owned());
    listed["shards"].as_array().unwrap().iter().map(owner).collect()
}
