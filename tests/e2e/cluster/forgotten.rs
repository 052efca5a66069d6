//! Counts of a namespace whose topics are forgotten, over nodes of which one is killed.

use std::time::Duration;

use forebay_proto::v1::{
    Ack, AckRequest, Counts, DeleteNamespaceRequest, DequeueRequest, EnqueueItem, EnqueueRequest,
    GetNamespaceRequest, GetNamespaceResponse, TopicDemand, admin_service_client::AdminServiceClient,
    queue_service_client::QueueServiceClient, topic_demand::Selector,
};
use forebay_testkit::servers::Kind;
use tokio::time::{Instant, sleep};
use tonic::{Code, Response, Status};

use super::nodes::Nodes;
use crate::node::Node;

const NAMESPACE: &str = "e2e";
const SHARDS: u32 = 4;
/// How long nodes may take, on a machine that does much else.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How often they are asked.
const ASK_EVERY: Duration = Duration::from_millis(50);

async fn get(node: &Node) -> Result<GetNamespaceResponse, Status> {
    let request = GetNamespaceRequest { namespace: NAMESPACE.into() };
    AdminServiceClient::new(node.channel()).get_namespace(request).await.map(Response::into_inner)
}

/// The counts of a namespace that has no topic left, once all shards have told theirs.
async fn forgotten(node: &Node) -> Counts {
    let begun = Instant::now();
    loop {
        let found = get(node).await;
        if let Ok(answer) = &found
            && answer.incomplete_shards.is_empty()
            && answer.uncounted_shards.is_empty()
            && answer.namespace.as_ref().is_some_and(|it| it.topic_count == 0)
        {
            return found.unwrap().namespace.unwrap().counts.expect("it has counted");
        }
        assert!(begun.elapsed() < TIMEOUT, "{found:?}");
        sleep(ASK_EVERY).await;
    }
}

/// An item goes through each shard. Returns how many deliveries began: an item of the other node that comes
/// too late for a poll is returned, and delivered again.
async fn use_all_shards(nodes: &[Node]) -> u64 {
    let item = |shard| EnqueueItem { topic: "t".into(), shard: Some(shard), ..Default::default() };
    let items = (1..=SHARDS).map(item).collect();
    let request = EnqueueRequest { namespace: NAMESPACE.into(), items, ..Default::default() };
    let mut client = QueueServiceClient::new(nodes[0].channel());
    let results = client.enqueue(request).await.unwrap().into_inner().results;
    assert!(results.iter().all(|result| result.error.is_none()), "{results:?}");
    let (mut left, mut deliveries, begun) = (SHARDS as usize, 0, Instant::now());
    for node in nodes.iter().cycle() {
        let request = DequeueRequest {
            namespace: NAMESPACE.into(),
            demands: vec![TopicDemand { selector: Some(Selector::Topic("t".into())), max_items: 9 }],
            ..Default::default()
        };
        let mut client = QueueServiceClient::new(node.channel());
        let items = client.dequeue(request).await.unwrap().into_inner().items;
        left -= items.len();
        deliveries += items.iter().map(|item| u64::from(item.attempt)).sum::<u64>();
        if !items.is_empty() {
            let acks = items.into_iter().map(|item| Ack { receipt: item.receipt }).collect();
            let request = AckRequest { namespace: NAMESPACE.into(), acks };
            let results = client.ack(request).await.unwrap().into_inner().results;
            assert!(results.iter().all(|result| result.error.is_none()), "{results:?}");
        }
        if left == 0 {
            return deliveries;
        }
        assert!(begun.elapsed() < TIMEOUT, "{left} items do not come");
    }
    unreachable!("the nodes are asked in turn without end")
}

async fn counts_stay(kind: Kind) {
    let cluster = Nodes::new(kind, 2, SHARDS as usize).await;
    cluster.configure("\n[engine]\nidle_topic_ms = 100\n");
    let mut nodes = cluster.start_all().await;
    let mut deliveries = 0;
    for _ in 0..2 {
        deliveries += use_all_shards(&nodes).await;
    }
    let counts = forgotten(&nodes[0]).await;
    let all = u64::from(2 * SHARDS);
    assert_eq!((counts.enqueued, counts.delivered, counts.acked), (all, deliveries, all));
    assert_eq!(forgotten(&nodes[1]).await, counts);
    nodes.remove(0).kill9().await;
    let left = &nodes[0];
    assert_eq!(forgotten(left).await, counts, "another node has read them");

    let request = DeleteNamespaceRequest { namespace: NAMESPACE.into(), ..Default::default() };
    let deleted = AdminServiceClient::new(left.channel()).delete_namespace(request).await;
    let deleted = deleted.unwrap().into_inner();
    assert_eq!((deleted.namespace.unwrap().counts, deleted.uncounted_shards), (Some(counts), vec![]));
    let begun = Instant::now();
    loop {
        match get(left).await {
            Err(status) if status.code() == Code::NotFound => break,
            found => assert!(begun.elapsed() < TIMEOUT, "{found:?}"),
        }
        sleep(ASK_EVERY).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_counts_of_a_namespace_outlive_its_topics_on_mariadb() {
    counts_stay(Kind::MariaDb).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_counts_of_a_namespace_outlive_its_topics_on_mysql() {
    counts_stay(Kind::MySql).await;
}
