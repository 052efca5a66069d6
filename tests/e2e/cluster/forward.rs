//! Clients that know one node only: it passes on what belongs to shards of others. No call is repeated here.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use forebay_proto::v1::{
    Ack, AckRequest, DequeueRequest, DequeuedItem, EnqueueItem, EnqueueRequest, EnqueueResult,
    ExtendLeaseRequest, LeaseExtension, Nack, NackRequest, TopicDemand,
    queue_service_client::QueueServiceClient, topic_demand::Selector,
};
use forebay_testkit::servers::Kind;
use tokio::time::Instant;
use tonic::transport::Channel;

use super::{
    nodes::{Nodes, owned_by},
    operate::{owns, run},
};
use crate::node::Node;

const NAMESPACE: &str = "e2e";

type Client = QueueServiceClient<Channel>;

fn client(node: &Node) -> Client {
    QueueServiceClient::new(node.channel())
}

fn item(topic: &str) -> EnqueueItem {
    EnqueueItem { topic: topic.to_owned(), payload: "p".into(), ..EnqueueItem::default() }
}

/// Every result is good.
async fn enqueue(client: &mut Client, items: Vec<EnqueueItem>, request_id: &str) -> Vec<EnqueueResult> {
    let (namespace, request_id) = (NAMESPACE.to_owned(), request_id.to_owned());
    let answer = client
        .enqueue(EnqueueRequest { namespace, items, request_id, ..EnqueueRequest::default() })
        .await
        .unwrap();
    let results = answer.into_inner().results;
    assert!(results.iter().all(|result| result.error.is_none()), "{results:?}");
    results
}

/// Waits until each shard's owner has recorded the set of shards. Until then keys are refused.
async fn keys_are_stored(client: &mut Client) {
    let key = |n| EnqueueItem { dedupe_key: format!("first{n}"), ..item("first") };
    let items: Vec<EnqueueItem> = (0..50).map(key).collect();
    let begun = Instant::now();
    loop {
        let (namespace, items) = (NAMESPACE.to_owned(), items.clone());
        let request = EnqueueRequest { namespace, items, ..EnqueueRequest::default() };
        let results = client.enqueue(request).await.unwrap().into_inner().results;
        let Some(error) = results.into_iter().find_map(|result| result.error) else { return };
        assert!(begun.elapsed() < Duration::from_secs(10), "{error:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Up to `max` items of a topic, wherever they are.
async fn dequeue(nodes: &[Node], topic: &str, max: u32) -> Vec<DequeuedItem> {
    let mut items = Vec::new();
    for node in nodes {
        let selector = Some(Selector::Topic(topic.to_owned()));
        let demands = vec![TopicDemand { selector, max_items: max }];
        // Items of another node that come too late for a poll are returned, and are there a moment later.
        let wait = Some(prost_types::Duration { seconds: 0, nanos: 500_000_000 });
        let request = DequeueRequest { namespace: NAMESPACE.to_owned(), demands, wait, ..Default::default() };
        items.extend(client(node).dequeue(request).await.unwrap().into_inner().items);
    }
    items
}

fn shard_of(id: &str) -> u32 {
    id.split_once('-').unwrap().0.parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_node_serves_calls_for_the_shards_of_others() {
    let cluster = Nodes::new(Kind::MariaDb, 3, 3).await;
    let nodes = cluster.start_all().await;
    let mut front = client(&nodes[0]);
    keys_are_stored(&mut front).await;

    // Of one call, to all shards: those that items name, those of topics, and the homes of keys.
    let to = |shard| EnqueueItem { shard: Some(shard), ..item("pinned") };
    let keyed = |n: u32| EnqueueItem { dedupe_key: format!("k{n}"), ..item("keyed") };
    let items: Vec<EnqueueItem> =
        (1..=3).map(to).chain((0..30).map(|n| item(&format!("t{n}")))).chain((0..30).map(keyed)).collect();
    let first = enqueue(&mut front, items.clone(), "").await;
    let mut per_shard: BTreeMap<u32, usize> = BTreeMap::new();
    first.iter().for_each(|result| *per_shard.entry(shard_of(&result.item_id)).or_default() += 1);
    assert!(per_shard.len() == 3 && per_shard.values().all(|count| *count > 3), "{per_shard:?}");
    let named: Vec<u32> = first[..3].iter().map(|result| shard_of(&result.item_id)).collect();
    assert_eq!(named, [1, 2, 3]);

    // A key has one home, whichever node takes the call, and so has a request.
    let again = enqueue(&mut client(&nodes[1]), items[33..].to_vec(), "").await;
    for (first, again) in first[33..].iter().zip(&again) {
        assert_eq!((&first.item_id, first.duplicate, again.duplicate), (&again.item_id, false, true));
    }
    for request in ["r1", "r2", "r3", "r4"] {
        let once = enqueue(&mut front, vec![item("whole"), item("whole")], request).await;
        assert_eq!(once, enqueue(&mut client(&nodes[2]), vec![item("whole"), item("whole")], request).await);
    }

    // Items that were delivered anywhere are settled at one node.
    let leased = dequeue(&nodes, "pinned", 3).await;
    assert_eq!(leased.len(), 3);
    settle_all(&mut front, leased).await;
    let (_, metrics) = nodes[0].fetch("/metrics").await;
    for verb in ["enqueue", "ack", "nack", "extend_lease"] {
        let answered = format!("forebay_forwarded_calls_total{{verb=\"{verb}\",outcome=\"answered\"}}");
        assert!(metrics.contains(&answered), "{metrics}");
    }
}

/// Extends, gives back, and acks deliveries of one topic at one node.
async fn settle_all(front: &mut Client, items: Vec<DequeuedItem>) {
    let namespace = || NAMESPACE.to_owned();
    let receipts: Vec<String> = items.into_iter().map(|item| item.receipt).collect();
    let lease_duration = Some(prost_types::Duration { seconds: 100, nanos: 0 });
    let extensions = receipts.iter().cloned().map(|receipt| LeaseExtension { receipt, lease_duration });
    let request = ExtendLeaseRequest { namespace: namespace(), extensions: extensions.collect() };
    let extended = front.extend_lease(request).await.unwrap().into_inner().results;
    assert!(extended.iter().all(|result| result.lease_expires_at.is_some()), "{extended:?}");

    let nacks =
        receipts.iter().cloned().map(|receipt| Nack { receipt, dead_letter: true, ..Nack::default() });
    let request = NackRequest { namespace: namespace(), nacks: nacks.collect() };
    let settled = front.nack(request).await.unwrap().into_inner().results;
    assert!(settled.iter().all(|result| result.error.is_none()), "{settled:?}");

    let acks = receipts.into_iter().map(|receipt| Ack { receipt }).collect();
    let request = AckRequest { namespace: namespace(), acks };
    let settled = front.ack(request).await.unwrap().into_inner().results;
    let lost = settled.iter().filter_map(|result| result.error.as_ref());
    let lost: Vec<&str> = lost.map(|error| error.message.as_str()).collect();
    assert_eq!(lost, ["LEASE_LOST: the delivery is over; the item is dead"; 3]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_of_one_node_sees_nothing_of_planned_moves() {
    let cluster = Nodes::new(Kind::MariaDb, 2, 2).await;
    let nodes = cluster.start_all().await;
    let config = cluster.config(0);
    let stopped = Arc::new(AtomicBool::new(false));
    let callers = [0, 1].map(|front| {
        let (mut front, stopped) = (client(&nodes[front]), stopped.clone());
        tokio::spawn(async move {
            let mut stored = 0;
            while !stopped.load(Ordering::Relaxed) {
                let pinned = [1, 2].map(|shard| EnqueueItem { shard: Some(shard), ..item("moved") });
                stored += enqueue(&mut front, pinned.into(), "").await.len();
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            stored
        })
    });
    for to in ["node1", "node0", "node1"] {
        for shard in ["1", "2"] {
            let (done, _, stderr) = run(&["shard", "move", shard, to, "--config", &config]).await;
            assert!(done, "{stderr}");
        }
        owns(&nodes[usize::from(to == "node1")], &[1, 2]).await;
    }
    // A node that owns nothing stores items too.
    assert!(owned_by(&nodes[0]).await.is_empty());
    enqueue(&mut client(&nodes[0]), vec![item("moved"); 10], "").await;
    stopped.store(true, Ordering::Relaxed);
    let mut stored = 10;
    for caller in callers {
        stored += caller.await.unwrap();
    }
    let mut delivered = 0;
    loop {
        let items = dequeue(&nodes[1..], "moved", 1_000).await;
        if items.is_empty() {
            break;
        }
        delivered += items.len();
    }
    assert_eq!(delivered, stored);
}
