//! The server of a shard is gone for good.

use std::time::Duration;

use forebay_proto::v1::{EnqueueItem, EnqueueRequest, queue_service_client::QueueServiceClient};
use forebay_testkit::{
    proxy::Proxy,
    servers::{self, Kind},
};
use tokio::time::{Instant, sleep};

use super::{nodes::Nodes, operate::run};
use crate::node::Node;

/// Nodes have followed the removal within this time.
const FOLLOWED_WITHIN: Duration = Duration::from_secs(15);
/// Number of keys: some have their home at each shard.
const KEYS: usize = 32;

/// Enqueues items, each under a key. Returns how many were refused.
async fn refused(node: &Node, round: &str) -> usize {
    let item = |key| EnqueueItem {
        topic: "keys".into(),
        dedupe_key: format!("{round} {key}"),
        ..EnqueueItem::default()
    };
    let request = EnqueueRequest {
        namespace: "keys".into(),
        items: (0..KEYS).map(item).collect(),
        ..EnqueueRequest::default()
    };
    let answer = QueueServiceClient::new(node.channel()).enqueue(request).await.unwrap().into_inner();
    answer.results.iter().filter(|result| result.error.is_some()).count()
}

/// Waits until every key of a round is taken. `what` names the rounds.
async fn all_are_taken(node: &Node, what: &str) {
    let (begun, mut round) = (Instant::now(), 0);
    while refused(node, &format!("{what} {round}")).await > 0 {
        assert!(begun.elapsed() < FOLLOWED_WITHIN, "keys still wait for a shard: {what}");
        round += 1;
        sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shard_whose_server_is_gone_is_removed() {
    let server = servers::shared(Kind::MariaDb).await;
    let gone = server.fresh_url().await;
    let way = Proxy::of_url(&gone).await;
    let urls = [server.fresh_url().await, server.fresh_url().await, way.through(&gone)];
    let cluster = Nodes::on(&server.fresh_url().await, &urls, 2).await;
    let nodes = cluster.start_all().await;
    all_are_taken(&nodes[0], "before").await;
    way.refuse();
    way.reset();
    assert!(refused(&nodes[0], "without").await > 0, "keys wait for their home");
    let config = cluster.config(0);
    let (done, _, stderr) = run(&["shard", "drain", "3", "--config", &config]).await;
    assert!(done, "{stderr}");
    let (done, _, stderr) = run(&["shard", "remove", "3", "--config", &config]).await;
    assert!(!done && stderr.contains("shard 3 can't be looked at") && stderr.contains("--lost"), "{stderr}");
    let (done, stdout, stderr) = run(&["shard", "remove", "3", "--lost", "--config", &config]).await;
    assert!(done && stdout.starts_with("shard 3 was removed with all that was in it"), "{stdout}{stderr}");
    for (number, node) in nodes.iter().enumerate() {
        all_are_taken(node, &format!("removed, node {number}")).await;
    }
    for node in nodes {
        let (status, took) = node.terminate().await;
        assert!(status.success(), "{status} after {took:?}");
    }
}
