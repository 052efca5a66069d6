//! Tallies of items are exact, though the node is killed under load.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use forebay_proto::v1::{
    Ack, AckRequest, DequeueRequest, EnqueueItem, EnqueueRequest, GetNamespaceRequest, GetTopicRequest, Nack,
    NackRequest, Topic, TopicDemand, admin_service_client::AdminServiceClient,
    queue_service_client::QueueServiceClient, topic_demand::Selector,
};
use forebay_testkit::servers::Kind;
use tokio::time::{Instant, sleep, timeout};
use tonic::transport::Channel;

use crate::backend::{Backend, Cluster};

const NAMESPACE: &str = "e2e";
const TOPIC: &str = "counted";
/// Items of one call.
const ITEMS: usize = 5;
/// Calls of each producer.
const CALLS: usize = 150;
/// Clients of each kind.
const CLIENTS: usize = 3;
/// How often the node is killed.
const KILLS: usize = 4;
/// How long all of it may take.
const TIMEOUT: Duration = Duration::from_secs(120);
/// All items.
const ALL: u64 = (CLIENTS * CALLS * ITEMS) as u64;

/// Stores items once each: calls with a request id are repeated until they are answered.
async fn produce(channel: Channel, producer: usize) {
    for call in 0..CALLS {
        let item = EnqueueItem {
            topic: TOPIC.into(),
            payload: "p".into(),
            max_attempts: 1_000,
            ..Default::default()
        };
        let request = EnqueueRequest {
            namespace: NAMESPACE.into(),
            items: vec![item; ITEMS],
            request_id: format!("{producer}-{call}"),
            ..EnqueueRequest::default()
        };
        loop {
            let mut client = QueueServiceClient::new(channel.clone());
            match client.enqueue(request.clone()).await {
                Ok(answer) if answer.get_ref().results.iter().all(|result| result.error.is_none()) => break,
                _ => sleep(Duration::from_millis(50)).await,
            }
        }
    }
}

/// Nacks every seventh delivery and acks the others, until it is told that nothing is left.
async fn consume(channel: Channel, is_done: Arc<AtomicBool>) {
    let mut deliveries = 0_u64;
    while !is_done.load(Relaxed) {
        let mut client = QueueServiceClient::new(channel.clone());
        let selector = Some(Selector::Topic(TOPIC.into()));
        let request = DequeueRequest {
            namespace: NAMESPACE.into(),
            demands: vec![TopicDemand { selector, max_items: 20 }],
            // Items that a killed node had delivered come again soon.
            lease_duration: Some(prost_types::Duration { seconds: 2, nanos: 0 }),
            ..Default::default()
        };
        let items = client.dequeue(request).await.map(|answer| answer.into_inner().items).unwrap_or_default();
        if items.is_empty() {
            sleep(Duration::from_millis(50)).await;
            continue;
        }
        let (mut acks, mut nacks) = (Vec::new(), Vec::new());
        for item in items {
            deliveries += 1;
            match deliveries % 7 {
                0 => nacks.push(Nack { receipt: item.receipt, ..Default::default() }),
                _ => acks.push(Ack { receipt: item.receipt }),
            }
        }
        let namespace = NAMESPACE.to_owned();
        let _ = client.ack(AckRequest { namespace: namespace.clone(), acks }).await;
        let _ = client.nack(NackRequest { namespace, nacks }).await;
    }
}

/// The topic, with its counts.
async fn topic(channel: Channel) -> Topic {
    let begun = Instant::now();
    loop {
        let request = GetTopicRequest { namespace: NAMESPACE.into(), topic: TOPIC.into() };
        let answer = AdminServiceClient::new(channel.clone()).get_topic(request).await;
        if let Ok(answer) = answer.map(tonic::Response::into_inner)
            && answer.incomplete_shards.is_empty()
            // A new owner reads them after it serves.
            && answer.topic.as_ref().is_some_and(|topic| topic.counts.is_some())
        {
            return answer.topic.unwrap();
        }
        assert!(begun.elapsed() < TIMEOUT, "nobody knows the topic");
        sleep(Duration::from_millis(100)).await;
    }
}

async fn counts_are_exact(backend: Backend) {
    let cluster = Cluster::new(backend, 1).await;
    let mut node = cluster.start(0).await;
    let channel = node.channel();
    let is_done = Arc::new(AtomicBool::new(false));
    let producers: Vec<_> = (0..CLIENTS).map(|it| tokio::spawn(produce(channel.clone(), it))).collect();
    let consumers: Vec<_> =
        (0..CLIENTS).map(|_| tokio::spawn(consume(channel.clone(), is_done.clone()))).collect();
    let mut acked = 0;
    for kill in 1..=KILLS {
        // Kills hit a node that works: each comes after more has been done.
        let begun = Instant::now();
        loop {
            let counts = topic(node.channel()).await.counts.unwrap_or_default();
            if counts.acked > acked + 40 {
                acked = counts.acked;
                break;
            }
            assert!(begun.elapsed() < TIMEOUT, "kill {kill}: {counts:?}");
            sleep(Duration::from_millis(20)).await;
        }
        node.kill9().await;
        node = cluster.start(0).await;
        let after = topic(node.channel()).await.counts.unwrap_or_default();
        assert!(after.acked >= acked, "a restart lost counts: {after:?}, {acked} before");
    }
    for task in producers {
        timeout(TIMEOUT, task).await.expect("ends").unwrap();
    }
    let rest =
        |topic: &Topic| topic.ready_count + topic.leased_count + topic.scheduled_count + topic.dead_count;
    let begun = Instant::now();
    loop {
        let topic = topic(node.channel()).await;
        if rest(&topic) == 0 {
            break;
        }
        assert!(begun.elapsed() < TIMEOUT, "items are left: {topic:?}");
        sleep(Duration::from_millis(100)).await;
    }
    is_done.store(true, Relaxed);
    for task in consumers {
        timeout(TIMEOUT, task).await.expect("ends").unwrap();
    }
    let topic = topic(node.channel()).await;
    let rest = rest(&topic);
    let counts = topic.counts.unwrap();
    assert_eq!((counts.enqueued, rest), (ALL, 0), "{counts:?}");
    // An item leaves the queue with its one ack.
    assert_eq!((counts.acked, counts.dead_lettered), (ALL, 0), "{counts:?}");
    assert!(counts.failed > ALL / 10 && counts.delivered >= counts.acked + counts.failed, "{counts:?}");
    assert!(counts.since.is_some());

    let request = GetNamespaceRequest { namespace: NAMESPACE.into() };
    let answer = AdminServiceClient::new(node.channel()).get_namespace(request).await.unwrap().into_inner();
    assert_eq!(answer.namespace.unwrap().counts, Some(counts));
    node.kill9().await;
    let node = cluster.start(0).await;
    assert_eq!(self::topic(node.channel()).await.counts, Some(counts), "after the last kill");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_became_of_items_is_exact_on_sqlite() {
    counts_are_exact(Backend::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_became_of_items_is_exact_on_mariadb() {
    counts_are_exact(Backend::Server(Kind::MariaDb)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_became_of_items_is_exact_on_mysql() {
    counts_are_exact(Backend::Server(Kind::MySql)).await;
}
