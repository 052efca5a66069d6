//! Consumers and history, over nodes that each know their part.

use std::time::Duration;

use forebay_proto::v1::{
    Ack, AckRequest, Consumer, DequeueRequest, EnqueueItem, EnqueueRequest, GetHistoryRequest,
    GetHistoryResponse, HistorySeries, ListConsumersRequest, ListConsumersResponse, ListTopicsRequest, Topic,
    TopicDemand, admin_service_client::AdminServiceClient, queue_service_client::QueueServiceClient,
    topic_demand::Selector,
};
use forebay_testkit::servers::Kind;
use forebay_types::{Clock as _, SystemClock};
use tokio::time::{Instant, sleep};
use tonic::{Code, Status};

use super::nodes::Nodes;
use crate::node::Node;

const NAMESPACE: &str = "e2e";
/// How long figures of all nodes may take.
const TIMEOUT: Duration = Duration::from_secs(30);

async fn fill(node: &Node, topic: &str) {
    for shard in 1..=4 {
        let item = EnqueueItem { topic: topic.to_owned(), shard: Some(shard), ..Default::default() };
        let request =
            EnqueueRequest { namespace: NAMESPACE.into(), items: vec![item; 5], ..Default::default() };
        let results = QueueServiceClient::new(node.channel()).enqueue(request).await.unwrap().into_inner();
        assert!(results.results.iter().all(|result| result.error.is_none()), "{results:?}");
    }
}

/// Leases items at a node. Returns the receipts.
async fn take(node: &Node, consumer: &str, topic: &str, max_items: u32) -> Vec<String> {
    let selector = Some(Selector::Topic(topic.to_owned()));
    let request = DequeueRequest {
        namespace: NAMESPACE.into(),
        demands: vec![TopicDemand { selector, max_items }],
        consumer: consumer.to_owned(),
        lease_duration: Some(prost_types::Duration { seconds: 3_600, nanos: 0 }),
        ..Default::default()
    };
    let answer = QueueServiceClient::new(node.channel()).dequeue(request).await.unwrap().into_inner();
    answer.items.into_iter().map(|item| item.receipt).collect()
}

async fn consumers(node: &Node, namespace: &str) -> ListConsumersResponse {
    let request = ListConsumersRequest { namespace: namespace.to_owned(), ..Default::default() };
    AdminServiceClient::new(node.channel()).list_consumers(request).await.unwrap().into_inner()
}

fn named<'a>(found: &'a ListConsumersResponse, name: &str) -> &'a Consumer {
    found.consumers.iter().find(|consumer| consumer.name == name).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_consumer_of_two_nodes_is_one_whichever_node_is_asked() {
    let cluster = Nodes::new(Kind::MariaDb, 2, 4).await;
    let mut nodes = cluster.start_all().await;
    fill(&nodes[0], "mail").await;
    fill(&nodes[1], "jobs").await;
    let receipts = [take(&nodes[0], "w1", "mail", 4).await, take(&nodes[1], "w1", "jobs", 3).await].concat();
    assert_eq!(receipts.len(), 7);
    assert_eq!(take(&nodes[1], "w2", "mail", 2).await.len(), 2);
    // Acks go to whichever node is asked; those of other shards are passed on.
    let acks = receipts[..2].iter().map(|receipt| Ack { receipt: receipt.clone() }).collect();
    let request = AckRequest { namespace: NAMESPACE.into(), acks };
    QueueServiceClient::new(nodes[1].channel()).ack(request).await.unwrap();
    for node in &nodes {
        let found = consumers(node, NAMESPACE).await;
        assert!(found.incomplete_shards.is_empty() && !found.consumers_cut, "{found:?}");
        let names: Vec<&str> = found.consumers.iter().map(|it| &*it.name).collect();
        assert_eq!(names, ["w1", "w2"]);
        let (one, two) = (named(&found, "w1"), named(&found, "w2"));
        assert_eq!((one.topics.clone(), one.leased_count), (vec!["jobs".to_owned(), "mail".to_owned()], 5));
        assert_eq!((two.topics.clone(), two.leased_count), (vec!["mail".to_owned()], 2));
        assert!(one.oldest_lease_at.is_some() && one.last_seen_at.is_some() && one.acks_per_second > 0.0);
        assert!(one.peer.starts_with("127.0.0.1:") && one.client.contains("tonic"), "{one:?}");
        assert_eq!((one.failure_ratio, two.acks_per_second), (0.0, 0.0));
        assert!(consumers(node, "other").await.consumers.is_empty(), "of another tenant");
        let all = consumers(node, "-").await;
        assert_eq!(all.consumers.len(), 2);
        assert!(all.consumers.iter().all(|it| it.namespace == NAMESPACE) && all.next_page_token.is_empty());
        let page = |page_token| ListConsumersRequest { namespace: "-".into(), page_size: 1, page_token };
        let mut admin = AdminServiceClient::new(node.channel());
        let first = admin.list_consumers(page(String::new())).await.unwrap().into_inner();
        let second = admin.list_consumers(page(first.next_page_token.clone())).await.unwrap().into_inner();
        let pages = [&first.consumers[0], &second.consumers[0]];
        assert_eq!(pages.map(|it| (it.name.as_str(), it.leased_count)), [("w1", 5), ("w2", 2)]);
        assert!(!first.next_page_token.is_empty() && second.next_page_token.is_empty());
    }
    // Leases are known by the lease log, so also by the next owner.
    nodes.remove(0).kill9().await;
    let begun = Instant::now();
    loop {
        let found = consumers(&nodes[0], NAMESPACE).await;
        let leased: u64 = found.consumers.iter().map(|it| it.leased_count).sum();
        if found.incomplete_shards.is_empty() {
            assert_eq!((leased, named(&found, "w1").leased_count), (7, 5), "{found:?}");
            break;
        }
        assert!(begun.elapsed() < TIMEOUT, "{found:?}");
        sleep(Duration::from_millis(100)).await;
    }
}

async fn history(node: &Node, namespace: &str, topic: &str) -> GetHistoryResponse {
    let request = GetHistoryRequest {
        namespace: namespace.to_owned(),
        topic: topic.to_owned(),
        range: Some(prost_types::Duration { seconds: 300, nanos: 0 }),
        ..Default::default()
    };
    AdminServiceClient::new(node.channel()).get_history(request).await.unwrap().into_inner()
}

fn line(found: &GetHistoryResponse, series: HistorySeries) -> Vec<f64> {
    let line = found.lines.iter().find(|line| line.series() == series);
    line.map(|line| line.points.clone()).unwrap_or_default()
}

/// Asks for the history of a shard until there is some.
async fn of_shard(node: &Node, shard: u32) -> GetHistoryResponse {
    let begun = Instant::now();
    loop {
        let range = Some(prost_types::Duration { seconds: 600, nanos: 0 });
        let request =
            GetHistoryRequest { namespace: "-".into(), shard: Some(shard), range, ..Default::default() };
        let found = AdminServiceClient::new(node.channel()).get_history(request).await.unwrap().into_inner();
        if found.incomplete_shards.is_empty() && !found.lines.is_empty() {
            return found;
        }
        assert!(begun.elapsed() < TIMEOUT, "{found:?}");
        sleep(Duration::from_millis(200)).await;
    }
}

/// Asks until the last point of a series is as wanted.
async fn until(
    node: &Node,
    namespace: &str,
    topic: &str,
    series: HistorySeries,
    wanted: f64,
) -> GetHistoryResponse {
    let begun = Instant::now();
    loop {
        let found = history(node, namespace, topic).await;
        if found.incomplete_shards.is_empty() && line(&found, series).last() == Some(&wanted) {
            return found;
        }
        assert!(begun.elapsed() < TIMEOUT, "{series:?} of {namespace} {topic}: {found:?}");
        sleep(Duration::from_millis(200)).await;
    }
}

/// The topics of the namespace, with how many items were ready lately.
async fn recent(node: &Node, page_size: u32) -> Result<Vec<Topic>, Status> {
    let namespace = NAMESPACE.to_owned();
    let request = ListTopicsRequest { namespace, page_size, recent: true, ..Default::default() };
    let listed = AdminServiceClient::new(node.channel()).list_topics(request).await?;
    Ok(listed.into_inner().topics)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn history_is_that_of_all_nodes_and_begins_anew_with_them() {
    let cluster = Nodes::new(Kind::MariaDb, 2, 4).await;
    let nodes = cluster.start_all().await;
    fill(&nodes[0], "mail").await;
    assert_eq!(take(&nodes[1], "w", "mail", 5).await.len(), 5);
    for node in &nodes {
        let found = until(node, NAMESPACE, "", HistorySeries::Ready, 15.0).await;
        assert_eq!(found.step.unwrap().seconds, 1);
        assert_eq!(found.lines.len(), 16);
        assert!(found.lines.iter().all(|line| line.points.len() == found.lines[0].points.len()));
        assert_eq!(line(&found, HistorySeries::Leased).last(), Some(&5.0));
        // Twenty items in the last seconds, some of which the window may have left by now.
        let most = line(&found, HistorySeries::Enqueued).into_iter().fold(0.0, f64::max);
        assert!((0.5..=2.5).contains(&most), "{most}");
        let ages = line(&found, HistorySeries::OldestReadyAge);
        assert!(ages.last().is_some_and(|age| (0.0..TIMEOUT.as_secs_f64()).contains(age)), "{ages:?}");
        until(node, "-", "", HistorySeries::Ready, 15.0).await;
        let of_topic = until(node, NAMESPACE, "mail", HistorySeries::Ready, 15.0).await;
        assert_eq!((of_topic.step.unwrap().seconds, of_topic.lines.len()), (10, 10));
        let listed = recent(node, 100).await.unwrap();
        assert_eq!((listed.len(), listed[0].recent_ready.last()), (1, Some(&15.0)), "{listed:?}");
        let refused = recent(node, 101).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
        let waited = line(&found, HistorySeries::WaitP99);
        assert!(waited.last().is_some_and(|wait| *wait > 0.0), "five were delivered: {waited:?}");
        assert_eq!(line(&found, HistorySeries::HandlingP99).last(), Some(&0.0), "none was acked");
        assert!(history(node, "other", "").await.lines.is_empty(), "of another tenant");
        assert_eq!((found.looked_every.unwrap().seconds, found.topics_cut), (1, false));
        // Figures of each shard, whichever node owns it. The steps have ten seconds, and show once they are
        // over.
        let (mut enqueued, mut held) = (0.0, 0.0);
        for shard in 1..=4 {
            let found = of_shard(node, shard).await;
            assert_eq!((found.step.unwrap().seconds, found.lines.len()), (10, 10), "{found:?}");
            let most = |series| line(&found, series).into_iter().fold(0.0, f64::max);
            held += most(HistorySeries::Ready) + most(HistorySeries::Leased);
            enqueued += most(HistorySeries::Enqueued);
        }
        // The points are means over looks of which some saw less.
        assert!(held > 0.0 && enqueued > 0.0, "{held} {enqueued}");
    }
    for node in nodes {
        node.kill9().await;
    }
    let clock = SystemClock::default();
    let restarted = clock.wall();
    let nodes = cluster.start_all().await;
    let again = until(&nodes[0], NAMESPACE, "", HistorySeries::Ready, 15.0).await;
    let points = line(&again, HistorySeries::Ready);
    // A point is that of a whole second, and none is from before the nodes began.
    let begins_at = again.begins_at.unwrap().seconds;
    let [restarted, now] = [restarted, clock.wall()].map(|at| at.as_micros() / 1_000_000);
    assert!(begins_at >= restarted, "{begins_at} is before {restarted}: {again:?}");
    let most = usize::try_from(now - begins_at + 1).unwrap();
    assert!((1..=most).contains(&points.len()), "{} points in {most} s: {again:?}", points.len());
}
