//! Topics that are paused at one node are paused at all, and stay so over restarts.

use std::time::Duration;

use forebay_proto::v1::{
    DequeueRequest, EnqueueItem, EnqueueRequest, GetTopicRequest, PauseTopicRequest, ResumeTopicRequest,
    Side, TopicDemand, admin_service_client::AdminServiceClient, queue_service_client::QueueServiceClient,
    topic_demand::Selector,
};
use forebay_testkit::servers::Kind;
use tokio::time::Instant;
use tonic::transport::Channel;

use super::nodes::{Nodes, owned_by};
use crate::node::Node;

const NAMESPACE: &str = "e2e";
const TOPIC: &str = "paused";
/// How long nodes may take to agree, on a machine that does much else.
const AGREE_TIMEOUT: Duration = Duration::from_secs(30);

fn admin(node: &Node) -> AdminServiceClient<Channel> {
    AdminServiceClient::new(node.channel())
}

/// Stores an item in each shard.
async fn store(node: &Node) {
    let item = |shard| EnqueueItem { topic: TOPIC.into(), shard: Some(shard), ..Default::default() };
    let items = vec![item(1), item(2)];
    let request = EnqueueRequest { namespace: NAMESPACE.into(), items, ..Default::default() };
    let results =
        QueueServiceClient::new(node.channel()).enqueue(request).await.unwrap().into_inner().results;
    assert!(results.iter().all(|result| result.error.is_none()), "{results:?}");
}

async fn take(node: &Node, wait: i64) -> usize {
    let demands = vec![TopicDemand { selector: Some(Selector::Topic(TOPIC.to_owned())), max_items: 1 }];
    let wait = Some(prost_types::Duration { seconds: wait, nanos: 0 });
    let request = DequeueRequest { namespace: NAMESPACE.into(), demands, wait, ..Default::default() };
    QueueServiceClient::new(node.channel()).dequeue(request).await.unwrap().into_inner().items.len()
}

/// Waits until a node shows so many pauses.
async fn shows(node: &Node, pauses: usize) {
    let begun = Instant::now();
    loop {
        let request = GetTopicRequest { namespace: NAMESPACE.into(), topic: TOPIC.into() };
        let topic = admin(node).get_topic(request).await.map(|answer| answer.into_inner().topic);
        if topic.as_ref().is_ok_and(|topic| topic.as_ref().unwrap().pauses.len() == pauses) {
            return;
        }
        assert!(begun.elapsed() < AGREE_TIMEOUT, "{topic:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until a node owns so many shards.
async fn owns(node: &Node, shards: usize) {
    let begun = Instant::now();
    while owned_by(node).await.len() != shards {
        assert!(begun.elapsed() < AGREE_TIMEOUT);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_at_one_node_is_felt_at_all_and_kept() {
    let cluster = Nodes::new(Kind::MariaDb, 2, 2).await;
    let mut nodes = cluster.start_all().await;
    for node in &nodes {
        owns(node, 1).await;
    }
    store(&nodes[0]).await;
    let request = PauseTopicRequest {
        namespace: NAMESPACE.into(),
        topic: TOPIC.into(),
        sides: vec![Side::Dequeue.into()],
        note: "a move".into(),
        ..Default::default()
    };
    admin(&nodes[0]).pause_topic(request).await.unwrap();
    assert_eq!(take(&nodes[0], 0).await, 0, "it is answered once the node acts on it");
    shows(&nodes[1], 1).await;
    assert_eq!(take(&nodes[1], 0).await, 0);

    // The node that comes back reads it before it owns anything.
    let (status, _) = nodes.remove(0).terminate().await;
    assert!(status.success());
    let node = cluster.start(0).await;
    // It gets all shards at once: the other one leaves.
    let (status, _) = nodes.remove(0).terminate().await;
    assert!(status.success());
    owns(&node, 2).await;
    shows(&node, 1).await;
    assert_eq!(take(&node, 1).await, 0);

    let waiting = [node.channel(), node.channel()].map(|channel| {
        let demands = vec![TopicDemand { selector: Some(Selector::Topic(TOPIC.to_owned())), max_items: 1 }];
        let wait = Some(prost_types::Duration { seconds: 20, nanos: 0 });
        let request = DequeueRequest { namespace: NAMESPACE.into(), demands, wait, ..Default::default() };
        tokio::spawn(async move { QueueServiceClient::new(channel).dequeue(request).await })
    });
    let sides = vec![Side::Enqueue.into(), Side::Dequeue.into()];
    let request =
        ResumeTopicRequest { namespace: NAMESPACE.into(), topic: TOPIC.into(), sides, ..Default::default() };
    assert_eq!(admin(&node).resume_topic(request).await.unwrap().into_inner().pauses, []);
    for poll in waiting {
        assert_eq!(poll.await.unwrap().unwrap().into_inner().items.len(), 1);
    }
}
