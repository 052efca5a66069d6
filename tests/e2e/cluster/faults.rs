//! A node of three dies, or stands still, under load.

use std::{sync::Arc, time::Duration};

use forebay_testkit::servers::Kind;

use super::nodes::{Nodes, channels, owned_by};
use crate::{history::History, load::Load, scenario::progress};

/// Shards of a node that is gone are served again within 3 s. The rest is for a machine that does much else.
const SERVED_AGAIN: Duration = Duration::from_secs(10);

async fn a_node_that_dies_is_replaced(kind: Kind) {
    let cluster = Nodes::new(kind, 3, 4).await;
    let mut nodes = cluster.start_all().await;
    let history = Arc::new(History::new());
    let load = Load::start(&history, channels(&nodes), 11);
    progress(&history, "load on three nodes", 500).await;
    let victim = nodes.remove(1);
    assert!(!owned_by(&victim).await.is_empty(), "it owns a shard");
    victim.kill9().await;
    load.retarget(channels(&nodes));
    let took = cluster.all_owned(&nodes.iter().collect::<Vec<_>>()).await;
    println!("served again after {took:?}");
    assert!(took < SERVED_AGAIN, "{took:?}");
    progress(&history, "load on two nodes", 500).await;
    // Under its old name it comes back once that is free.
    nodes.push(cluster.start(1).await);
    load.retarget(channels(&nodes));
    progress(&history, "load on three nodes again", 300).await;
    load.stop().await;
    cluster.drain_and_check(&history, nodes).await;
}

async fn a_node_that_stands_still_is_replaced(kind: Kind) {
    let cluster = Nodes::new(kind, 3, 4).await;
    let mut nodes = cluster.start_all().await;
    let history = Arc::new(History::new());
    let load = Load::start(&history, channels(&nodes), 12);
    progress(&history, "load on three nodes", 500).await;
    let victim = nodes.remove(1);
    assert!(!owned_by(&victim).await.is_empty(), "it owns a shard");
    victim.freeze();
    let took = cluster.all_owned(&nodes.iter().collect::<Vec<_>>()).await;
    println!("served again after {took:?}");
    assert!(took < SERVED_AGAIN, "{took:?}");
    // Some workers stay with it. When it goes on, it must refuse their calls for shards that it has lost.
    victim.thaw();
    nodes.insert(1, victim);
    progress(&history, "load on three nodes again", 500).await;
    load.stop().await;
    cluster.drain_and_check(&history, nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shards_of_a_killed_node_are_served_by_others_on_mariadb() {
    a_node_that_dies_is_replaced(Kind::MariaDb).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shards_of_a_killed_node_are_served_by_others_on_mysql() {
    a_node_that_dies_is_replaced(Kind::MySql).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shards_of_a_stopped_node_are_served_by_others_on_mariadb() {
    a_node_that_stands_still_is_replaced(Kind::MariaDb).await;
}
