//! Items of all topics that begin alike, over nodes.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use forebay_client::{Client, ClientConfig, Consumer, ConsumerConfig, Delivery, Outcome};
use forebay_testkit::servers::Kind;
use tokio::sync::Mutex;

use super::{
    anywhere::{NAMESPACE, ack, item, linked, store, take},
    nodes::Nodes,
};
use crate::{node::Node, scenario::until};

/// Topics with a few items each.
const TOPICS: usize = 60;
/// Items of each of them.
const ITEMS: usize = 3;
/// Items of one more topic.
const MANY: usize = 300;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn topics_of_a_prefix_take_turns_over_nodes() {
    let cluster = Nodes::new(Kind::MariaDb, 3, 6).await;
    let nodes = cluster.start_all().await;
    cluster.evenly_owned(&nodes).await;
    linked(&nodes).await;

    // The topic with most items was there first, and goes by itself to all shards.
    for shard in 1..=6u32 {
        let many = (0..MANY / 6).map(|_| item("calls/many", 1, "m")).collect();
        store(&nodes[0], many, Some(shard)).await;
    }
    for topic in 0..TOPICS {
        let items = (0..ITEMS).map(|_| item(&format!("calls/{topic}"), 1, "p")).collect();
        store(&nodes[topic % 3], items, None).await;
    }
    store(&nodes[2], vec![item("calls/urgent", 0, "u"), item("other", 0, "o")], None).await;
    let all = MANY + TOPICS * ITEMS + 1;
    let mut order = Vec::new();
    while order.len() < all {
        let items = take(&nodes[1], "calls/*", 7, Duration::from_secs(5)).await;
        assert!(!items.is_empty(), "{} items came", order.len());
        ack(&nodes[1], &items).await;
        order.extend(items.into_iter().map(|item| item.topic));
    }
    let mut counts = BTreeMap::<&str, usize>::new();
    order.iter().for_each(|topic| *counts.entry(topic).or_default() += 1);
    assert_eq!((counts["calls/many"], counts["calls/urgent"], counts.len()), (MANY, 1, TOPICS + 2));
    assert!(counts.iter().all(|(topic, count)| *count == ITEMS || topic.len() > 8), "{counts:?}");
    // In turn, the last one is through after some 190 items; in the order of the enqueues it would be the
    // last.
    let last = order.iter().rposition(|topic| *topic != "calls/many").unwrap();
    let urgent = order.iter().position(|topic| topic == "calls/urgent").unwrap();
    println!("the last item of the small topics came as number {last}, the urgent one as {urgent}");
    assert!(last < 340 && urgent < 14, "{last}, {urgent}");
    assert!(take(&nodes[0], "calls/*", 7, Duration::from_millis(300)).await.is_empty());
    assert_eq!(take(&nodes[0], "oth*", 7, Duration::from_secs(5)).await.len(), 1);
    wakes(&nodes).await;
    is_consumed(&nodes).await;
    for node in nodes {
        node.terminate().await;
    }
}

/// A poll that waits gets what another node stores, of a topic that is new.
async fn wakes(nodes: &[Node]) {
    for number in 0..12 {
        let topic = format!("wakes/{number}");
        let (consumer, producer) = (&nodes[number % 3], &nodes[(number + 1) % 3]);
        let poll = take(consumer, "wakes/*", 1, Duration::from_secs(10));
        let store = async {
            tokio::time::sleep(Duration::from_millis(40)).await;
            store(producer, vec![item(&topic, 0, "p")], None).await;
        };
        let (items, ()) = tokio::join!(poll, store);
        assert_eq!(items.iter().map(|item| &item.topic).collect::<Vec<_>>(), [&topic]);
        ack(consumer, &items).await;
    }
}

/// So does a consumer.
async fn is_consumed(nodes: &[Node]) {
    let taken = Arc::new(Mutex::new(0));
    let handler = {
        let taken = taken.clone();
        move |delivery: Delivery| {
            let taken = taken.clone();
            async move {
                *taken.lock().await += usize::from(delivery.item.topic.starts_with("mail/"));
                Outcome::Ack
            }
        }
    };
    let client = Client::connect(ClientConfig::new(&nodes[0].grpc).namespace(NAMESPACE)).unwrap();
    let consumer = Consumer::start(client, ConsumerConfig::new(["mail/*"]).concurrency(8), handler);
    for number in 0..40 {
        store(&nodes[number % 3], vec![item(&format!("mail/{number}"), 0, "p")], None).await;
    }
    until("all items are handled", Duration::from_secs(20), async || *taken.lock().await == 40).await;
    consumer.stop().await.unwrap();
}
