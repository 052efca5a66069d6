//! Set-ups that are wrong, and what nodes say of them.

use std::{fs, path::Path, time::Duration};

use forebay_testkit::servers::Kind;
use tokio::time::{Instant, sleep};

use super::nodes::{Nodes, metric_becomes};
use crate::node::Node;

/// The secret that all nodes have at first.
const SECRET: &str = "the-secret-of-the-tests";
/// Another one.
const OTHER: &str = "the-secret-after-that";
/// A line is in a log within this time.
const LOGGED_WITHIN: Duration = Duration::from_secs(20);

/// Gives a node a file of secrets of its own.
fn set_secrets(cluster: &Nodes, node: usize, secrets: &[&str]) {
    let config = cluster.config(node);
    let file = format!("{config}.secret");
    fs::write(&file, secrets.join("\n")).unwrap();
    let text = fs::read_to_string(&config).unwrap();
    let key = text.lines().find(|line| line.starts_with("peer_secret_file")).unwrap();
    fs::write(&config, text.replace(key, &format!("peer_secret_file = \"{file}\""))).unwrap();
}

/// Waits for a text in a log. Returns how often it is there.
pub(super) async fn logged(log: &Path, text: &str) -> usize {
    let begun = Instant::now();
    loop {
        let log = fs::read_to_string(log).unwrap();
        let count = log.matches(text).count();
        if count > 0 {
            return count;
        }
        assert!(begun.elapsed() < LOGGED_WITHIN, "{text} is not in the log: {log}");
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_secret_is_named_by_both_sides_and_two_secrets_serve_while_it_is_changed() {
    let cluster = Nodes::new(Kind::MariaDb, 2, 2).await;
    set_secrets(&cluster, 1, &[OTHER]);
    let nodes = [cluster.start(0).await, cluster.start(1).await];
    let refuses =
        "refuses all calls of this node: the secret of the cluster is wrong (node.peer_secret_file)";
    for node in 0..2 {
        logged(&cluster.log(node), refuses).await;
        logged(&cluster.log(node), "has a wrong secret of the cluster").await;
    }
    // Each of them asks once a second.
    sleep(Duration::from_secs(3)).await;
    for node in 0..2 {
        assert_eq!(logged(&cluster.log(node), refuses).await, 1);
        assert_eq!(logged(&cluster.log(node), "has a wrong secret of the cluster").await, 1);
    }
    for node in nodes {
        node.terminate().await;
    }

    // One node shows the old secret, the other one the new one.
    set_secrets(&cluster, 0, &[SECRET, OTHER]);
    set_secrets(&cluster, 1, &[OTHER, SECRET]);
    let nodes = cluster.start_all().await;
    metric_becomes(&nodes, "forebay_peer_up{", |up| up == 2.0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_does_not_start_with_the_address_of_another_one_that_lives() {
    let cluster = Nodes::new(Kind::MariaDb, 2, 2).await;
    let first = cluster.start(0).await;
    cluster.all_owned(&[&first]).await;
    cluster.advertise(1, &cluster.peer_address(0));
    let arguments = ["serve".into(), "--config".into(), cluster.config(1)];
    let refused = Node::refused(&arguments).await;
    assert!(refused.contains("node node0 lives and has the address"), "{refused}");

    // Others than those on this machine can't reach the first one.
    let config = fs::read_to_string(cluster.config(1)).unwrap();
    let told = format!("advertise = \"{}\"", cluster.peer_address(0));
    fs::write(cluster.config(1), config.replace(&told, "advertise = \"queue1.example:7422\"")).unwrap();
    let refused = Node::refused(&arguments).await;
    assert!(refused.contains("node node0 lives, others find it at 127.0.0.1:"), "{refused}");

    // The row of a dead node hinders nobody.
    first.kill9().await;
    let config = fs::read_to_string(cluster.config(1)).unwrap();
    fs::write(cluster.config(1), config.replace("advertise = \"queue1.example:7422\"\n", "")).unwrap();
    cluster.advertise(1, &cluster.peer_address(0));
    let second = cluster.start(1).await;
    cluster.all_owned(&[&second]).await;
}

/// Others would take it for the only node of its cluster.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_does_not_start_with_the_address_of_its_clients_for_other_nodes() {
    let cluster = Nodes::new(Kind::MariaDb, 1, 1).await;
    let node = cluster.start(0).await;
    cluster.advertise(0, &node.grpc);
    assert!(node.terminate().await.0.success());
    let refused = Node::refused(&["serve".into(), "--config".into(), cluster.config(0)]).await;
    assert!(refused.contains("where clients do: node.advertise is the address of node.peer"), "{refused}");
}
