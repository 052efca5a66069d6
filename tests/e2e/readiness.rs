//! A node is ready while calls reach a shard: `/readyz` and health checks follow what is so.

use forebay_testkit::{proxy::Proxy, servers::Kind};
use tokio::time::{Duration, Instant, sleep};
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};

use crate::{
    cluster::{nodes::Nodes, operate::run},
    node::Node,
};

/// Shards of the cluster.
const SHARDS: usize = 6;
/// A take-over takes no longer.
const TAKE_OVER_TIMEOUT: Duration = Duration::from_secs(20);

/// How many shards a node owns.
async fn owned(node: &Node) -> usize {
    let status: serde_json::Value = serde_json::from_str(&node.fetch("/status.json").await.1).unwrap();
    let shards = status["engine"]["shards"].as_array().unwrap();
    shards.iter().filter(|shard| shard["state"] == "owned").count()
}

async fn health(node: &Node) -> ServingStatus {
    let mut client = HealthClient::new(node.channel());
    client.check(HealthCheckRequest::default()).await.unwrap().into_inner().status()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_serve_shards_are_ready() {
    let cluster = Nodes::new(Kind::MariaDb, 2, SHARDS).await;
    for node in &cluster.start_all().await {
        node.wait_for_readyz(200).await;
        assert_eq!(health(node).await, ServingStatus::Serving);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_lost_all_its_shards_is_ready_while_it_reaches_their_owner() {
    let cluster = Nodes::new(Kind::MariaDb, 2, SHARDS).await;
    let way = Proxy::to(&cluster.peer_address(1)).await;
    cluster.advertise(1, &way.address());
    let first = cluster.start(0).await;
    cluster.all_owned(&[&first]).await;
    first.wait_for_readyz(200).await;
    let second = cluster.start(1).await;
    second.wait_for_readyz(200).await;
    assert_eq!(owned(&second).await, 0, "it is ready before it owns a shard");
    first.freeze();
    wait_until_owns_all(&second).await;
    way.refuse();
    way.reset();
    first.thaw();
    first.wait_for_readyz(503).await;
    assert_eq!(health(&first).await, ServingStatus::NotServing);
    let (ready, _, stderr) = run(&["health", "--http", &first.http]).await;
    assert!(!ready && stderr.contains("503"), "{stderr}");
    assert!(run(&["health", "--alive", "--http", &first.http]).await.0);
    assert_eq!(second.get("/readyz").await, 200);
    way.pass();
    first.wait_for_readyz(200).await;
    assert_eq!((health(&first).await, owned(&first).await), (ServingStatus::Serving, 0));
    assert!(second.terminate().await.0.success());
    wait_until_owns_all(&first).await;
    assert_eq!(first.get("/readyz").await, 200);
}

async fn wait_until_owns_all(node: &Node) {
    let deadline = Instant::now() + TAKE_OVER_TIMEOUT;
    while owned(node).await < SHARDS {
        assert!(Instant::now() < deadline, "not all shards are taken over");
        sleep(Duration::from_millis(10)).await;
    }
}
