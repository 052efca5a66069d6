//! Items of all shards at any node.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use forebay_client::{Client as RustClient, ClientConfig, Consumer, ConsumerConfig, Delivery, Outcome};
use forebay_proto::{
    NODE_HEADER,
    v1::{
        Ack, AckRequest, DeliveryPolicy, DequeueRequest, DequeuedItem, EnqueueItem, EnqueueRequest,
        ListNodesRequest, ListTopicsRequest, TopicDemand, admin_service_client::AdminServiceClient,
        queue_service_client::QueueServiceClient, topic_demand::Selector,
    },
};
use forebay_testkit::servers::Kind;
use tokio::time::Instant;
use tonic::transport::Channel;

use super::nodes::{Nodes, metric, metric_becomes, owned_by, owners};
use crate::{node::Node, scenario::until};

pub(super) const NAMESPACE: &str = "e2e";

/// Items for which a poll waits, at the owner of the shard and elsewhere.
const WAKES: usize = 60;

type Client = QueueServiceClient<Channel>;

fn client(node: &Node) -> Client {
    QueueServiceClient::new(node.channel())
}

pub(super) fn item(topic: &str, priority: i32, payload: &str) -> EnqueueItem {
    EnqueueItem {
        topic: topic.to_owned(),
        priority,
        payload: payload.to_owned().into(),
        ..EnqueueItem::default()
    }
}

/// Stores items. `shard`: this one takes them.
pub(super) async fn store(node: &Node, items: Vec<EnqueueItem>, shard: Option<u32>) {
    let request = EnqueueRequest { namespace: NAMESPACE.into(), items, shard, ..EnqueueRequest::default() };
    let answer = client(node).enqueue(request).await.unwrap().into_inner();
    assert!(answer.results.iter().all(|result| result.error.is_none()), "{answer:?}");
}

/// Takes items of a topic, or of all that begin with what comes before a `*`.
pub(super) async fn take(node: &Node, topic: &str, max_items: u32, wait: Duration) -> Vec<DequeuedItem> {
    take_from(node, topic, max_items, wait).await.0
}

/// Takes items. Returns which node the answer names, too.
async fn take_from(
    node: &Node,
    topic: &str,
    max_items: u32,
    wait: Duration,
) -> (Vec<DequeuedItem>, Option<String>) {
    let selector = match topic.strip_suffix('*') {
        Some(prefix) => Selector::TopicPrefix(prefix.to_owned()),
        None => Selector::Topic(topic.to_owned()),
    };
    let selector = Some(selector);
    let request = DequeueRequest {
        namespace: NAMESPACE.into(),
        demands: vec![TopicDemand { selector, max_items }],
        wait: Some(wait.try_into().unwrap()),
        ..DequeueRequest::default()
    };
    let answer = client(node).dequeue(request).await.unwrap();
    let source = answer.metadata().get(NODE_HEADER).map(|name| name.to_str().unwrap().to_owned());
    (answer.into_inner().items, source)
}

pub(super) async fn ack(node: &Node, items: &[DequeuedItem]) {
    let acks = items.iter().map(|item| Ack { receipt: item.receipt.clone() }).collect();
    let request = AckRequest { namespace: NAMESPACE.into(), acks };
    let answer = client(node).ack(request).await.unwrap().into_inner();
    assert!(answer.results.iter().all(|result| result.error.is_none()), "{answer:?}");
}

/// Waits until each node hands out what others store.
pub(super) async fn linked(nodes: &[Node]) {
    for (at, node) in nodes.iter().enumerate() {
        for (other, storing) in nodes.iter().enumerate() {
            let topic = format!("linked-{at}-{other}");
            store(storing, vec![item(&topic, 0, "p")], None).await;
            let comes = async || !take(node, &topic, 1, Duration::from_millis(200)).await.is_empty();
            until("items of other nodes are handed out", Duration::from_secs(20), comes).await;
        }
    }
}

/// How often nodes have not waited for a shard or for another node.
pub(super) async fn late(nodes: &[Node]) -> f64 {
    let mut late = 0.0;
    for node in nodes {
        for name in [
            "forebay_fetches_total{outcome=\"late\"}",
            "forebay_fetches_total{outcome=\"failed\"}",
            "forebay_late_shares_total",
            "forebay_heads_left_out_total",
        ] {
            late += metric(node, name).await;
        }
    }
    late
}

/// Stores items in all shards, in five priorities, through all nodes. A consumer at one node gets each of
/// them once. Returns their priorities, in the order in which they came.
async fn drained(nodes: &[Node], topic: &str) -> Vec<i32> {
    let mut stored = BTreeSet::new();
    for number in 0..120u32 {
        let payload = format!("{number:03}");
        let (node, shard) = (&nodes[number as usize % 3], 1 + number % 6);
        store(node, vec![item(topic, (number % 5) as i32, &payload)], Some(shard)).await;
        stored.insert(payload);
    }
    let (mut taken, mut priorities) = (BTreeSet::new(), Vec::new());
    while taken.len() < stored.len() {
        let items = take(&nodes[1], topic, 7, Duration::from_secs(5)).await;
        assert!(!items.is_empty(), "{} items came", taken.len());
        for item in &items {
            priorities.push(item.priority);
            assert!(taken.insert(String::from_utf8(item.payload.to_vec()).unwrap()), "twice: {item:?}");
        }
        ack(&nodes[1], &items).await;
    }
    assert_eq!(taken, stored);
    priorities
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_hands_out_the_items_of_all_in_order() {
    let cluster = Nodes::new(Kind::MariaDb, 3, 6).await;
    let nodes = cluster.start_all().await;
    cluster.evenly_owned(&nodes).await;
    linked(&nodes).await;

    // Whoever answers late is left out. That is no fault of the order.
    for round in 0.. {
        let before = late(&nodes).await;
        let priorities = drained(&nodes, &format!("order-{round}")).await;
        let late = late(&nodes).await - before;
        if late == 0.0 {
            assert!(priorities.is_sorted(), "{priorities:?}");
            break;
        }
        println!("{late} were late; in order: {}", priorities.is_sorted());
        assert!(round < 5, "somebody answers late in each round");
    }

    // Items that are to be delivered at most once need no ack, and come once.
    let once = |number| EnqueueItem {
        delivery_policy: DeliveryPolicy::AtMostOnce.into(),
        ..item("once", 0, &format!("{number}"))
    };
    for shard in 1..=6 {
        store(&nodes[0], (0..5).map(|number| once(10 * shard + number)).collect(), Some(shard)).await;
    }
    let mut taken = BTreeSet::new();
    while taken.len() < 30 {
        let items = take(&nodes[2], "once", 10, Duration::from_secs(5)).await;
        assert!(!items.is_empty(), "{} items came", taken.len());
        for item in items {
            assert!(item.receipt.is_empty() && item.lease_expires_at.is_none());
            assert!(taken.insert(item.payload), "one came twice");
        }
    }
    for node in &nodes {
        assert!(take(node, "once", 10, Duration::from_millis(300)).await.is_empty());
    }
    for node in nodes {
        node.terminate().await;
    }
}

/// Stores an item for which a poll waits. Returns how long after the begin of the enqueue it came.
async fn wake(consumer: &Node, producer: &Node, topic: &str) -> Duration {
    let poll = async {
        let items = take(consumer, topic, 1, Duration::from_secs(10)).await;
        (items, Instant::now())
    };
    let store = async {
        tokio::time::sleep(Duration::from_millis(40)).await;
        let begun = Instant::now();
        store(producer, vec![item(topic, 0, "p")], None).await;
        begun
    };
    let ((items, came), begun) = tokio::join!(poll, store);
    assert_eq!(items.len(), 1);
    ack(consumer, &items).await;
    came.saturating_duration_since(begun)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_poll_that_waits_gets_what_another_node_stores() {
    let cluster = Nodes::new(Kind::MariaDb, 3, 1).await;
    let nodes = cluster.start_all().await;
    cluster.all_owned(&nodes.iter().collect::<Vec<_>>()).await;
    // One shard: two of the nodes have none, and serve polls all the same.
    linked(&nodes).await;

    let owner = owners(&nodes).await[&1];
    let (mut near, mut far) = (Vec::new(), Vec::new());
    for number in 0..WAKES {
        near.push(wake(&nodes[owner], &nodes[owner], &format!("near-{}", number % 2)).await);
        let consumer = &nodes[(owner + 1 + number % 2) % 3];
        far.push(wake(consumer, &nodes[number % 3], &format!("far-{}", number % 2)).await);
    }
    let [near, far] = [near, far].map(|mut waits| {
        waits.sort_unstable();
        [waits.len() / 2, waits.len() * 99 / 100, waits.len() - 1].map(|index| waits[index])
    });
    println!("half, 99 % and all of {WAKES} came within: at the owner {near:?}, elsewhere {far:?}");
    assert!(far[0] < Duration::from_millis(500) && far[2] < Duration::from_secs(3));
    for node in nodes {
        node.terminate().await;
    }
}

/// Calls that wait for a topic, as a node lists it. `None`: it does not.
async fn listed_waiting(node: &Node, topic: &str) -> Option<u64> {
    let request = ListTopicsRequest { namespace: NAMESPACE.into(), ..ListTopicsRequest::default() };
    let listed = AdminServiceClient::new(node.channel()).list_topics(request).await.unwrap().into_inner();
    listed.topics.into_iter().find(|it| it.topic == topic).map(|it| it.waiting_calls)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_poll_is_counted_wherever_it_waits() {
    let cluster = Nodes::new(Kind::MariaDb, 3, 1).await;
    let nodes = cluster.start_all().await;
    cluster.all_owned(&nodes.iter().collect::<Vec<_>>()).await;
    // No node has a row of the topic, and two of them have no shard.
    let wait = Duration::from_secs(30);
    let polls = async {
        let [first, second, third] = [0, 1, 2].map(|node| take(&nodes[node], "nothing", 1, wait));
        tokio::join!(first, second, third)
    };
    let watch = async {
        for node in &nodes {
            let all = async || listed_waiting(node, "nothing").await == Some(3);
            until("all three are counted", Duration::from_secs(10), all).await;
        }
        store(&nodes[1], (0..3).map(|_| item("nothing", 0, "p")).collect(), None).await;
    };
    let (taken, ()) = tokio::join!(polls, watch);
    assert_eq!((taken.0.len(), taken.1.len(), taken.2.len()), (1, 1, 1));
    until("none waits", Duration::from_secs(10), async || {
        listed_waiting(&nodes[2], "nothing").await == Some(0)
    })
    .await;
    for node in nodes {
        node.terminate().await;
    }
}

/// Whether all nodes list each of them as one that has shards and delivers all items.
async fn all_deliver_all(nodes: &[Node]) -> bool {
    for node in nodes {
        let listed = AdminServiceClient::new(node.channel()).list_nodes(ListNodesRequest::default()).await;
        let listed = listed.unwrap().into_inner().nodes;
        if listed.len() != nodes.len() || !listed.iter().all(|it| it.delivers_all && it.shards > 0) {
            return false;
        }
    }
    true
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_consumer_asks_one_node_and_gets_the_items_of_all() {
    let cluster = Nodes::new(Kind::MariaDb, 3, 6).await;
    let mut nodes = cluster.start_all().await;
    cluster.evenly_owned(&nodes).await;
    until("all deliver all", Duration::from_secs(20), async || all_deliver_all(&nodes).await).await;

    let taken = Arc::new(Mutex::new(Vec::<String>::new()));
    let handler = {
        let taken = taken.clone();
        move |delivery: Delivery| {
            let payload = String::from_utf8(delivery.item.payload.to_vec()).unwrap();
            taken.lock().unwrap().push(payload);
            async { Outcome::Ack }
        }
    };
    let config = ClientConfig::new(&nodes[0].grpc).namespace(NAMESPACE);
    let client = RustClient::connect(config).unwrap();
    // While a node is not linked all are asked, and each poll ends by itself.
    let config = ConsumerConfig { wait: Duration::from_secs(2), ..ConsumerConfig::new(["mail"]) };
    let consumer = Consumer::start(client, config.concurrency(8), handler);
    // The polls of the beginning, at all nodes, are over once one waits for long.
    let calls = "forebay_calls_total{service=\"forebay.v1.QueueService\",method=\"Dequeue\"";
    let asked = async || {
        let mut calls_of = Vec::new();
        for node in &nodes {
            calls_of.push(metric(node, calls).await);
        }
        calls_of
    };
    metric_becomes(&nodes, calls, |polls| polls >= 1.0).await;
    metric_becomes(&nodes, "forebay_polls_waiting", |polls| polls == 1.0).await;
    let before = asked().await;
    for number in 0..120u32 {
        let (node, shard) = (&nodes[number as usize % 3], 1 + number % 6);
        store(node, vec![item("mail", 0, &number.to_string())], Some(shard)).await;
    }
    let all = async || taken.lock().unwrap().len() == 120;
    until("all items are handled", Duration::from_secs(20), all).await;
    assert_eq!(taken.lock().unwrap().iter().collect::<BTreeSet<_>>().len(), 120, "an item came twice");
    println!("polls before {before:?}, afterwards {:?}", asked().await);

    // Items of one node alone draw the consumer there, one answer after the other.
    let near = asked().await.iter().zip(&before).position(|(now, before)| now == before).unwrap_or(0);
    let shard = *owned_by(&nodes[near]).await.first().unwrap() as u32;
    let (items, source) = {
        store(&nodes[near], vec![item("other", 0, "p")], Some(shard)).await;
        take_from(&nodes[(near + 1) % 3], "other", 1, Duration::from_secs(5)).await
    };
    assert_eq!((items.len(), source), (1, Some(format!("node{near}"))));
    let moved = async || {
        let done = taken.lock().unwrap().len();
        store(&nodes[near], vec![item("mail", 0, &format!("more {done}"))], Some(shard)).await;
        until("it is handled", Duration::from_secs(20), async || taken.lock().unwrap().len() > done).await;
        metric(&nodes[near], "forebay_polls_waiting").await == 1.0
    };
    until("the consumer asks the node of the items", Duration::from_secs(20), moved).await;
    metric_becomes(&nodes, "forebay_polls_waiting", |polls| polls == 1.0).await;

    // Without its node it goes elsewhere, and gets what the others own.
    nodes.remove(near).kill9().await;
    cluster.all_owned(&nodes.iter().collect::<Vec<_>>()).await;
    store(&nodes[0], vec![item("mail", 0, "last")], None).await;
    let last = async || taken.lock().unwrap().iter().any(|payload| payload == "last");
    until("the last item is handled", Duration::from_secs(20), last).await;
    metric_becomes(&nodes, "forebay_polls_waiting", |polls| polls == 1.0).await;
    consumer.stop().await.unwrap();
    for node in nodes {
        node.terminate().await;
    }
}
