//! Acts of operators on nodes and shards, and what they see.

use std::{collections::BTreeSet, process::Command, time::Duration};

use forebay_testkit::{program, servers::Kind};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::nodes::{Nodes, owned_by};
use crate::node::Node;

/// A planned move is done within this time, on a machine that does much else.
const MOVED_TIMEOUT: Duration = Duration::from_secs(15);

/// Runs a verb. Returns its exit status, stdout and stderr.
pub async fn run(arguments: &[&str]) -> (bool, String, String) {
    let mut command = Command::new(program());
    command.args(arguments);
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.success(), text(output.stdout), text(output.stderr))
}

pub async fn json(arguments: &[&str]) -> Value {
    let (done, stdout, stderr) = run(arguments).await;
    assert!(done, "{arguments:?}: {stderr}");
    serde_json::from_str(&stdout).unwrap()
}

/// Waits until a node owns exactly these shards.
pub async fn owns(node: &Node, shards: &[u64]) {
    let (begun, wanted) = (Instant::now(), shards.iter().copied().collect::<BTreeSet<_>>());
    while owned_by(node).await != wanted {
        assert!(begun.elapsed() < MOVED_TIMEOUT, "{:?} instead of {wanted:?}", owned_by(node).await);
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shards_are_moved_and_nodes_are_drained_by_the_command_line() {
    let cluster = Nodes::new(Kind::MariaDb, 2, 2).await;
    let nodes = cluster.start_all().await;
    let config = cluster.config(0);
    let addr = format!("{},{}", nodes[0].grpc, nodes[1].grpc);

    let listed = json(&["node", "list", "--addr", &addr, "--output", "json"]).await;
    let names: Vec<&str> =
        listed["nodes"].as_array().unwrap().iter().map(|node| node["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["node0", "node1"]);
    assert_eq!(listed["nodes"][1]["clientsAddress"], nodes[1].grpc);

    let (by_node, by_config) = (["--addr", &*addr], ["--config", &*config]);
    let (done, stdout, stderr) =
        run(&[&["shard", "move", "1", "node1", "--dry-run"][..], &by_node].concat()).await;
    assert!(done && stdout.starts_with("nothing was changed; "), "{stdout}{stderr}");
    for (shard, by) in [("1", by_node), ("2", by_config)] {
        let (done, stdout, stderr) = run(&[&["shard", "move", shard, "node1"][..], &by].concat()).await;
        assert!(done && stdout == format!("shard {shard} is pinned to node1\n"), "{stdout}{stderr}");
    }
    owns(&nodes[1], &[1, 2]).await;
    let listed = json(&["shard", "list", "--addr", &addr, "--output", "json"]).await;
    assert_eq!(listed["shards"][0]["pinned"], true);
    assert_eq!(listed["shards"][1]["wishedOwner"], "node1");

    let (done, _, stderr) =
        run(&[&["node", "drain", "node1", "--reason", "a test"][..], &by_node].concat()).await;
    assert!(done, "{stderr}");
    owns(&nodes[0], &[1, 2]).await;
    owns(&nodes[1], &[]).await;
    let (_, page) = nodes[0].fetch("/nodes").await;
    assert!(page.contains("<h1>Nodes</h1>") && page.contains("draining"), "{page}");
    let (_, metrics) = nodes[0].fetch("/metrics").await;
    assert!(metrics.contains("forebay_nodes{state=\"draining\"} 1"), "{metrics}");
    assert!(metrics.contains("forebay_catalog_answers 1"), "{metrics}");

    for (wrong, says) in [
        (&["shard", "move", "9", "node1"][..], "there is no shard 9"),
        (&["shard", "move", "1", "node7"], "there is no node node7 in the catalog; there are: node0, node1"),
        (&["node", "drain", "node7"], "there is no node node7"),
        (&["shard", "remove", "1"], "shard 1 takes new items: drain it first"),
    ] {
        for by in [by_node, by_config] {
            let (done, _, stderr) = run(&[wrong, &by].concat()).await;
            assert!(!done && stderr.contains(says), "{wrong:?}: {stderr}");
        }
    }
    // By a call, to repeat it does no harm.
    let unpin = ["shard", "unpin", "1"];
    let (done, _, stderr) = run(&[&unpin[..], &by_config].concat()).await;
    assert!(!done && stderr.contains("shard 1 is not pinned"), "{stderr}");
    assert!(run(&[&unpin[..], &by_node].concat()).await.0);
    let (done, _, stderr) = run(&[&["shard", "add", "sqlite:/tmp/a"][..], &by_node].concat()).await;
    assert!(!done && stderr.contains("url: must begin with mysql://"), "{stderr}");
    // A node that drains takes calls, and hands out the items of the others.
    for node in &nodes {
        let (done, _, stderr) = run(&["health", "--http", &node.http]).await;
        assert!(done, "{stderr}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_process_with_a_name_does_not_start() {
    let cluster = Nodes::new(Kind::MariaDb, 1, 1).await;
    let _node = cluster.start_all().await;
    let second = cluster.other_ports(0);
    let refused = Node::refused(&["serve".into(), "--config".into(), second]).await;
    assert!(refused.contains("another process that lives has the name node0"), "{refused}");
}
