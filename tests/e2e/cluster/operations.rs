//! Operations on nodes that are killed half way: others go on, and the counts are exact afterwards.

use std::time::Duration;

use forebay_proto::v1::{
    DequeueRequest, EnqueueItem, EnqueueRequest, GetOperationRequest, GetTopicRequest, Nack, NackRequest,
    Operation, OperationKind, OperationState, OperationUpdate, StartOperationRequest, TopicDemand,
    admin_service_client::AdminServiceClient, queue_service_client::QueueServiceClient,
    topic_demand::Selector,
};
use forebay_testkit::servers::Kind;
use tokio::time::Instant;
use tonic::{Code, transport::Channel};

use super::nodes::{Nodes, owned_by};
use crate::node::Node;

const NAMESPACE: &str = "e2e";
/// Items of each shard.
const ITEMS: usize = 600;
/// How long an operation may take, take-overs included, on a machine that does much else.
const END_TIMEOUT: Duration = Duration::from_secs(60);

const HOUR: prost_types::Duration = prost_types::Duration { seconds: 3_600, nanos: 0 };

fn admin(node: &Node) -> AdminServiceClient<Channel> {
    AdminServiceClient::new(node.channel())
}

fn queue(node: &Node) -> QueueServiceClient<Channel> {
    QueueServiceClient::new(node.channel())
}

/// Stores so many items in each of three shards.
async fn fill(node: &Node, topic: &str) {
    for shard in 1..=3 {
        let topic = topic.to_owned();
        let item = EnqueueItem { topic, payload: "p".into(), shard: Some(shard), ..Default::default() };
        let request =
            EnqueueRequest { namespace: NAMESPACE.into(), items: vec![item; ITEMS], ..Default::default() };
        let results = queue(node).enqueue(request).await.unwrap().into_inner().results;
        assert!(results.iter().all(|result| result.error.is_none()), "{results:?}");
    }
}

/// Leases all items of a topic, at whichever nodes they are. Returns the receipts.
async fn take_all(nodes: &[Node], topic: &str) -> Vec<String> {
    let (begun, mut receipts) = (Instant::now(), Vec::new());
    while receipts.len() < 3 * ITEMS {
        assert!(begun.elapsed() < END_TIMEOUT, "{} items of {topic}", receipts.len());
        for node in nodes {
            let demands =
                vec![TopicDemand { selector: Some(Selector::Topic(topic.to_owned())), max_items: 1_000 }];
            let lease_duration = Some(HOUR);
            let namespace = NAMESPACE.to_owned();
            let request = DequeueRequest { namespace, demands, lease_duration, ..Default::default() };
            // A node that has just started owns no shard yet, and says so.
            if let Ok(answer) = queue(node).dequeue(request).await {
                receipts.extend(answer.into_inner().items.into_iter().map(|item| item.receipt));
            }
        }
    }
    receipts
}

async fn start(node: &Node, kind: OperationKind, topic: &str) -> Operation {
    // All items have priority 0: each one that is changed is met again at its new place.
    let update = OperationUpdate { priority: Some(9), ttl: Some(HOUR), ..Default::default() };
    let request = StartOperationRequest {
        update: Some(update).filter(|_| kind == OperationKind::Update),
        namespace: NAMESPACE.into(),
        kind: kind.into(),
        topic: topic.into(),
        // Some seconds: time for a kill.
        rate_per_second: 240,
        ..Default::default()
    };
    admin(node).start_operation(request).await.unwrap().into_inner().operation.unwrap()
}

/// Waits until an operation is as wanted.
async fn until(node: &Node, id: &str, wanted: impl Fn(&Operation) -> bool) -> Operation {
    let begun = Instant::now();
    let mut version = 0;
    loop {
        let request = GetOperationRequest {
            namespace: NAMESPACE.into(),
            operation_id: id.into(),
            wait: Some(prost_types::Duration { seconds: 2, nanos: 0 }),
            version,
        };
        // While a shard changes its owner nobody may know the operation.
        if let Ok(answer) = admin(node).get_operation(request).await {
            let operation = answer.into_inner().operation.unwrap();
            if wanted(&operation) {
                return operation;
            }
            assert!(begun.elapsed() < END_TIMEOUT, "{operation:?}");
            version = operation.version;
        }
        assert!(begun.elapsed() < END_TIMEOUT, "no answer");
    }
}

/// The counts of an operation that has ended in all shards.
async fn exact(node: &Node, id: &str) -> [u64; 4] {
    let done = until(node, id, |it| it.state() == OperationState::Succeeded).await;
    assert!(done.shards.len() == 3 && done.shards.iter().all(|shard| shard.ended), "{done:?}");
    let figures = done.figures.unwrap();
    [figures.matched, figures.changed, figures.skipped, figures.failed]
}

/// Ready, leased and dead items of a topic, once all shards have answered.
async fn counts(nodes: &[Node], topic: &str) -> (u64, u64, u64) {
    let node = &nodes[0];
    let begun = Instant::now();
    loop {
        let request = GetTopicRequest { namespace: NAMESPACE.into(), topic: topic.into() };
        let missing = match admin(node).get_topic(request).await.map(tonic::Response::into_inner) {
            Ok(answer) if answer.incomplete_shards.is_empty() => {
                let topic = answer.topic.unwrap();
                return (topic.ready_count, topic.leased_count, topic.dead_count);
            }
            Ok(answer) => format!("{:?} could not be asked", answer.incomplete_shards),
            // A topic without items may be forgotten.
            Err(refused) if refused.code() == Code::NotFound => return (0, 0, 0),
            // A node that has just started may not know yet what there is, and says so.
            Err(refused) if refused.code() == Code::Unavailable => refused.message().to_owned(),
            Err(refused) => panic!("{refused}"),
        };
        assert!(begun.elapsed() < END_TIMEOUT, "{missing}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Begins an operation at the node that owns the most shards, and kills that once the operation is half way.
/// The other node goes on. Then the killed one starts again.
async fn killed_half_way(
    cluster: &Nodes,
    nodes: &mut Vec<Node>,
    kind: OperationKind,
    topic: &str,
) -> [u64; 4] {
    let owned = [owned_by(&nodes[0]).await.len(), owned_by(&nodes[1]).await.len()];
    let (victim, other) = if owned[0] >= owned[1] { (0, 1) } else { (1, 0) };
    let begun = start(&nodes[victim], kind, topic).await;
    let most = 3 * ITEMS as u64;
    let half = until(&nodes[other], &begun.id, |it| it.figures.unwrap().changed >= most / 5).await;
    assert!(half.figures.unwrap().changed < most, "it has ended before the kill: {half:?}");
    nodes.remove(victim).kill9().await;
    let counted = exact(&nodes[0], &begun.id).await;
    nodes.insert(victim, cluster.start(victim).await);
    cluster.all_owned(&nodes.iter().collect::<Vec<_>>()).await;
    counted
}

async fn counts_are_exact(kind: Kind) {
    let cluster = Nodes::new(kind, 2, 3).await;
    let mut nodes = cluster.start_all().await;
    let all = 3 * ITEMS as u64;

    fill(&nodes[0], "purged").await;
    let counted = killed_half_way(&cluster, &mut nodes, OperationKind::Purge, "purged").await;
    assert_eq!(counted, [all, all, 0, 0]);
    assert_eq!(counts(&nodes, "purged").await, (0, 0, 0));

    fill(&nodes[1], "back").await;
    for receipts in take_all(&nodes, "back").await.chunks(500) {
        let nack =
            |receipt: &String| Nack { receipt: receipt.clone(), dead_letter: true, ..Default::default() };
        let nacks = receipts.iter().map(nack).collect();
        let request = NackRequest { namespace: NAMESPACE.into(), nacks };
        let results = queue(&nodes[0]).nack(request).await.unwrap().into_inner().results;
        assert!(results.iter().all(|result| result.error.is_none()), "{results:?}");
    }
    assert_eq!(counts(&nodes, "back").await, (0, 0, all));
    let counted = killed_half_way(&cluster, &mut nodes, OperationKind::Redrive, "back").await;
    assert_eq!(counted, [all, all, 0, 0]);
    assert_eq!(counts(&nodes, "back").await, (all, 0, 0));

    take_all(&nodes, "back").await;
    assert_eq!(counts(&nodes, "back").await, (0, all, 0));
    let counted = killed_half_way(&cluster, &mut nodes, OperationKind::ResetLeases, "back").await;
    assert_eq!(counted, [all, all, 0, 0]);
    assert_eq!(counts(&nodes, "back").await, (all, 0, 0));

    let counted = killed_half_way(&cluster, &mut nodes, OperationKind::Update, "back").await;
    assert_eq!(counted, [all, all, 0, 0]);
    assert_eq!(counts(&nodes, "back").await, (all, 0, 0));
    assert_eq!(with_priority(&nodes, "back", 9).await, all);

    take_all(&nodes, "back").await;
    let counted = killed_half_way(&cluster, &mut nodes, OperationKind::Cancel, "back").await;
    assert_eq!(counted, [all, all, 0, 0]);
    assert_eq!(counts(&nodes, "back").await, (0, 0, 0));
}

/// Ready items of a topic that have a priority.
async fn with_priority(nodes: &[Node], topic: &str, priority: i32) -> u64 {
    let request = GetTopicRequest { namespace: NAMESPACE.into(), topic: topic.into() };
    let answer = admin(&nodes[0]).get_topic(request).await.unwrap().into_inner();
    assert_eq!(answer.incomplete_shards, [] as [u32; 0]);
    let of = answer.priorities.iter().filter(|row| row.priority == priority);
    of.map(|row| row.ready_count).sum()
}

/// A node is killed before an operation begins. Its shards begin their parts once they have another owner.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shards_that_are_not_reached_begin_later() {
    let cluster = Nodes::new(Kind::MariaDb, 2, 3).await;
    let mut nodes = cluster.start_all().await;
    fill(&nodes[0], "purged").await;
    let started = Instant::now();
    while owned_by(&nodes[1]).await.is_empty() {
        assert!(started.elapsed() < END_TIMEOUT, "the second node gets no shard that could be missing");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    nodes.remove(1).kill9().await;
    let request = StartOperationRequest {
        namespace: NAMESPACE.into(),
        kind: OperationKind::Purge.into(),
        topic: "purged".into(),
        ..Default::default()
    };
    let begun = admin(&nodes[0]).start_operation(request).await.unwrap().into_inner();
    assert!(!begun.incomplete_shards.is_empty(), "{begun:?}");
    let id = begun.operation.unwrap().id;
    let all = 3 * ITEMS as u64;
    assert_eq!(exact(&nodes[0], &id).await, [all, all, 0, 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operations_on_killed_nodes_are_counted_exactly_on_mysql() {
    counts_are_exact(Kind::MySql).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operations_on_killed_nodes_are_counted_exactly_on_mariadb() {
    counts_are_exact(Kind::MariaDb).await;
}
