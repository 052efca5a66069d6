//! Settings that are made at one node count at all, and stay so while the catalog is away.

use std::time::Duration;

use forebay_proto::v1::{
    EnqueueItem, EnqueueRequest, GetItemRequest, GetTopicRequest, PutTopicRequest, TopicSettings,
    admin_service_client::AdminServiceClient, queue_service_client::QueueServiceClient,
};
use forebay_testkit::{proxy::Ways, servers::Kind};
use tokio::time::Instant;
use tonic::{Code, transport::Channel};

use super::nodes::{Nodes, metric_becomes, owned_by};
use crate::node::Node;

const NAMESPACE: &str = "e2e";
const TOPIC: &str = "set";
/// How long nodes may take to agree, on a machine that does much else. Alone it takes less than 2 s.
const AGREE_TIMEOUT: Duration = Duration::from_secs(30);

fn admin(node: &Node) -> AdminServiceClient<Channel> {
    AdminServiceClient::new(node.channel())
}

fn put(version: u64, attempts: u32) -> PutTopicRequest {
    let settings = TopicSettings { default_max_attempts: attempts, ..Default::default() };
    PutTopicRequest {
        namespace: NAMESPACE.into(),
        topic: TOPIC.into(),
        settings: Some(settings),
        version,
        ..Default::default()
    }
}

/// Waits until a node shows settings of a version.
async fn shows(node: &Node, version: u64) {
    let begun = Instant::now();
    loop {
        let request = GetTopicRequest { namespace: NAMESPACE.into(), topic: TOPIC.into() };
        let shown = admin(node).get_topic(request).await.ok().and_then(|shown| shown.into_inner().topic);
        if shown.as_ref().map(|topic| topic.settings_version) == Some(version) {
            return;
        }
        assert!(begun.elapsed() < AGREE_TIMEOUT, "{shown:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Stores an item without a number of attempts in a shard, by way of a node. Returns the number that it got.
async fn attempts(node: &Node, shard: u32) -> u32 {
    let items = vec![EnqueueItem { topic: TOPIC.into(), shard: Some(shard), ..Default::default() }];
    let request = EnqueueRequest { namespace: NAMESPACE.into(), items, ..Default::default() };
    let answer = QueueServiceClient::new(node.channel()).enqueue(request).await.unwrap().into_inner();
    let item_id = answer.results[0].item_id.clone();
    let request = GetItemRequest { namespace: NAMESPACE.into(), item_id, ..Default::default() };
    admin(node).get_item(request).await.unwrap().into_inner().item.unwrap().max_attempts
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_at_one_node_count_at_all_and_hold_without_the_catalog() {
    let (cluster, way) = Nodes::with_way_to_catalog(Kind::MariaDb, 2, 2).await;
    let nodes = cluster.start_all().await;
    let begun = Instant::now();
    for node in &nodes {
        while owned_by(node).await.len() != 1 {
            assert!(begun.elapsed() < AGREE_TIMEOUT);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    assert_eq!(attempts(&nodes[0], 1).await, 16);
    let version = admin(&nodes[0]).put_topic(put(0, 5)).await.unwrap().into_inner().version;
    shows(&nodes[1], version).await;
    // Also in the shard of the other node, to which the call is passed on.
    for node in &nodes {
        assert_eq!((attempts(node, 1).await, attempts(node, 2).await), (5, 5));
    }
    let stale = admin(&nodes[1]).put_topic(put(0, 6)).await.unwrap_err();
    assert_eq!(stale.code(), Code::Aborted, "{stale}");
    let version = admin(&nodes[1]).put_topic(put(version, 6)).await.unwrap().into_inner().version;
    shows(&nodes[0], version).await;

    way.stall(Ways::Both);
    metric_becomes(&nodes, "forebay_catalog_answers", |answering| answering == 0.0).await;
    assert_eq!((attempts(&nodes[0], 1).await, attempts(&nodes[0], 2).await), (6, 6), "the last copy holds");
    let away = admin(&nodes[0]).put_topic(put(version, 7)).await.unwrap_err();
    assert_eq!(away.code(), Code::Unavailable, "{away}");
    way.pass();
    metric_becomes(&nodes, "forebay_catalog_answers", |answering| answering == 2.0).await;
    shows(&nodes[0], version).await;
}
