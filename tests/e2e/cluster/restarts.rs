//! Nodes are restarted one after the other, under load.

use std::{fs, sync::Arc};

use forebay_testkit::servers::Kind;

use super::nodes::{Nodes, owned_by};
use crate::{drain::drain_and_check, history::History, load::Load, node::Node, scenario::progress};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_hand_their_shards_over_before_they_stop() {
    let cluster = Nodes::new(Kind::MariaDb, 3, 4).await;
    let mut nodes = cluster.start_all().await;
    let history = Arc::new(History::new());
    let channels = |nodes: &[Node]| nodes.iter().map(Node::channel).collect::<Vec<_>>();
    let load = Load::start(&history, channels(&nodes), 13);
    for number in 0..3 {
        progress(&history, &format!("load before node {number} is restarted"), 300).await;
        let node = nodes.remove(0);
        load.retarget(channels(&nodes));
        let had = owned_by(&node).await.len();
        let (status, took) = node.terminate().await;
        assert!(status.success(), "{status} after {took:?}");
        let others: Vec<&Node> = nodes.iter().collect();
        let waited = cluster.all_owned(&others).await;
        println!("node {number} stopped after {took:?}; its {had} shards had owners {waited:?} later");
        let log = fs::read_to_string(cluster.log(number)).unwrap();
        assert!(log.contains("left the cluster") && !log.contains("not every shard"), "{log}");
        nodes.push(cluster.start(number).await);
        load.retarget(channels(&nodes));
    }
    progress(&history, "load after all were restarted", 300).await;
    load.stop().await;
    let last = nodes.pop().unwrap();
    for node in nodes {
        assert!(node.terminate().await.0.success());
    }
    cluster.all_owned(&[&last]).await;
    drain_and_check(&history, last.channel()).await;
}
