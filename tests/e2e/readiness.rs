//! A node is ready while it serves a shard: `/readyz` and health checks follow what is so.

use forebay_testkit::servers::{self, Kind};
use tokio::time::{Duration, Instant, sleep};
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};

use crate::{
    backend::{Backend, Cluster},
    node::Node,
};

/// Shards of a list.
const SHARDS: usize = 6;
/// A take-over takes no longer.
const TAKE_OVER_TIMEOUT: Duration = Duration::from_secs(20);

/// Two nodes with one list of six shards, which nobody owns yet.
async fn two_nodes() -> (Cluster, Vec<String>) {
    let server = servers::shared(Kind::MariaDb).await;
    let mut urls = Vec::new();
    for _ in 0..SHARDS {
        urls.push(server.fresh_url().await);
    }
    (Cluster::on(Backend::Server(Kind::MariaDb), &urls, 2).await, urls)
}

/// How many shards a node owns.
async fn owned(node: &Node) -> usize {
    let status: serde_json::Value = serde_json::from_str(&node.fetch("/status.json").await.1).unwrap();
    let shards = status["engine"]["shards"].as_array().unwrap();
    shards.iter().filter(|shard| shard["state"] == "owned").count()
}

async fn wait_until_all_are_owned(nodes: [&Node; 2]) -> [usize; 2] {
    let deadline = Instant::now() + TAKE_OVER_TIMEOUT;
    loop {
        let counts = [owned(nodes[0]).await, owned(nodes[1]).await];
        if counts.iter().sum::<usize>() == SHARDS {
            return counts;
        }
        assert!(Instant::now() < deadline, "{counts:?}");
        sleep(Duration::from_millis(10)).await;
    }
}

async fn health(node: &Node) -> ServingStatus {
    let mut client = HealthClient::new(node.channel());
    client.check(HealthCheckRequest::default()).await.unwrap().into_inner().status()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_share_a_list_are_ready_as_far_as_they_serve() {
    let (cluster, urls) = two_nodes().await;
    let both = tokio::join!(cluster.start_standby(0), cluster.start_standby(1));
    let counts = wait_until_all_are_owned([&both.0, &both.1]).await;
    for (node, owned) in [&both.0, &both.1].into_iter().zip(counts) {
        node.wait_for_readyz(if owned > 0 { 200 } else { 503 }).await;
    }
    both.0.terminate().await;
    both.1.terminate().await;

    // However they share them: here each has three.
    cluster.write_config(0, &urls[..SHARDS / 2]);
    let first = cluster.start(0).await;
    let second = cluster.start(1).await;
    assert_eq!(wait_until_all_are_owned([&first, &second]).await, [3, 3]);
    for node in [&first, &second] {
        assert_eq!(health(node).await, ServingStatus::Serving);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_lost_all_its_shards_is_not_ready_until_it_has_one_again() {
    let (cluster, _) = two_nodes().await;
    let first = cluster.start(0).await;
    let second = cluster.start_standby(1).await;
    assert_eq!((second.get("/readyz").await, second.get("/healthz").await), (503, 200));
    first.freeze();
    second.wait_for_readyz(200).await;
    wait_until_owns_all(&second).await;
    first.thaw();
    first.wait_for_readyz(503).await;
    assert_eq!(health(&first).await, ServingStatus::NotServing);
    assert_eq!(second.get("/readyz").await, 200);
    assert!(second.terminate().await.0.success());
    first.wait_for_readyz(200).await;
    assert_eq!(health(&first).await, ServingStatus::Serving);
}

async fn wait_until_owns_all(node: &Node) {
    let deadline = Instant::now() + TAKE_OVER_TIMEOUT;
    while owned(node).await < SHARDS {
        assert!(Instant::now() < deadline, "not all shards are taken over");
        sleep(Duration::from_millis(10)).await;
    }
}
