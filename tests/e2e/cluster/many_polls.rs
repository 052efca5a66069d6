//! Ten thousand polls that wait at one node for items of the others.

use std::{collections::BTreeSet, time::Duration};

use forebay_proto::v1::{
    DequeueRequest, DequeuedItem, TopicDemand, queue_service_client::QueueServiceClient,
    topic_demand::Selector,
};
use forebay_testkit::servers::Kind;
use futures_util::future::join_all;
use tokio::{
    task::JoinSet,
    time::{Instant, timeout},
};

use super::{
    anywhere::{NAMESPACE, ack, item, linked, store},
    nodes::{Nodes, metric, metric_becomes, owners},
};
use crate::{node::Node, rpc::span};

/// Polls that wait, and items that are stored for them.
const POLLS: usize = 10_000;
/// Polls of one connection. A node lets 768 wait.
const POLLS_PER_CONNECTION: usize = 500;
/// Items of one enqueue.
const BATCH: usize = 500;
/// Polls wait for so long: a node allows no more.
const WAIT: Duration = Duration::from_secs(29);
/// Leases last longer than the test, also on a slow machine.
const LEASE: Duration = Duration::from_secs(120);
/// The last item is there so long after the last enqueue. In a release build on a machine that does nothing
/// else that takes less than two seconds.
const DELIVERED_WITHIN: Duration = Duration::from_secs(15);
/// A fetch brings an item: that takes one for each. The others found nothing, were late or were refused.
const FETCHES_PER_ITEM: f64 = 1.2;
/// Growth of the node with its polls, their connections and their answers: some 6 KiB a poll. In a debug
/// build futures are larger.
const GROWN_BYTES: u64 = if cfg!(debug_assertions) { 80 << 20 } else { 64 << 20 };

/// An item, and when it came.
type Arrival = (DequeuedItem, Instant);

/// Sends a poll for one item.
async fn poll(mut client: QueueServiceClient<tonic::transport::Channel>, topic: String) -> Arrival {
    let request = DequeueRequest {
        namespace: NAMESPACE.into(),
        demands: vec![TopicDemand { selector: Some(Selector::Topic(topic)), max_items: 1 }],
        wait: Some(span(WAIT)),
        lease_duration: Some(span(LEASE)),
        ..DequeueRequest::default()
    };
    let answer = client.dequeue(request).await;
    let mut items =
        answer.unwrap_or_else(|status| panic!("a poll is refused: {status:?}")).into_inner().items;
    assert_eq!(items.len(), 1, "a poll gets an item");
    (items.remove(0), Instant::now())
}

/// Lets all polls wait at a node, in turn for so many topics.
async fn park(node: &Node, name: &str, topics: usize) -> JoinSet<Arrival> {
    let mut polls = JoinSet::new();
    for first in (0..POLLS).step_by(POLLS_PER_CONNECTION) {
        let client = QueueServiceClient::new(node.channel());
        for number in first..first + POLLS_PER_CONNECTION {
            polls.spawn(poll(client.clone(), format!("{name}-{}", number % topics)));
        }
    }
    let waiting = |waiting: f64| waiting == POLLS as f64;
    metric_becomes(std::slice::from_ref(node), "forebay_polls_waiting", waiting).await;
    polls
}

/// Stores an item for each poll, in the shards of all nodes but one, at their owners. Returns the payloads.
async fn store_elsewhere(nodes: &[Node], front: usize, name: &str, topics: usize) -> BTreeSet<String> {
    let mut shards = owners(nodes).await;
    shards.retain(|_, owner| *owner != front);
    assert_eq!(shards.len(), 4, "the others own {shards:?}");
    let payloads: Vec<String> = (0..POLLS).map(|number| format!("{number:05}")).collect();
    let calls = payloads.chunks(BATCH).zip(shards.iter().cycle()).map(|(chunk, (shard, owner))| {
        let of = |payload: &String| {
            let topic = payload.parse::<usize>().unwrap() % topics;
            item(&format!("{name}-{topic}"), 0, payload)
        };
        store(&nodes[*owner], chunk.iter().map(of).collect(), Some(*shard))
    });
    join_all(calls).await;
    payloads.into_iter().collect()
}

/// Fetches of a node, by their outcomes.
async fn fetches(node: &Node) -> [(&'static str, f64); 5] {
    let mut fetches = ["items", "empty", "late", "refused", "failed"].map(|outcome| (outcome, 0.0));
    for (outcome, count) in &mut fetches {
        *count = metric(node, &format!("forebay_fetches_total{{outcome=\"{outcome}\"}}")).await;
    }
    fetches
}

/// Polls wait at the second node, items are stored at the others. Returns what came.
async fn delivered(nodes: &[Node], name: &str, topics: usize) -> Vec<DequeuedItem> {
    let front = &nodes[1];
    let (small, before) = (front.resident_bytes(), fetches(front).await);
    front.forget_peak();
    let mut polls = park(front, name, topics).await;
    let parked = front.resident_bytes();
    let begun = Instant::now();
    let payloads = store_elsewhere(nodes, 1, name, topics).await;
    let stored = Instant::now();
    let mut arrivals: Vec<Arrival> = Vec::new();
    let all = async {
        while let Some(arrival) = polls.join_next().await {
            arrivals.push(arrival.unwrap());
        }
    };
    let ended = timeout(DELIVERED_WITHIN, all).await;
    let after = fetches(front).await;
    let counts: Vec<_> =
        after.iter().zip(before).map(|((name, now), (_, then))| (name, now - then)).collect();
    assert!(
        ended.is_ok(),
        "{} of {POLLS} items came within {DELIVERED_WITHIN:?}: {counts:?}",
        arrivals.len()
    );
    let last = arrivals.iter().map(|(_, at)| *at).max().unwrap();
    let grown = front.peak_bytes().saturating_sub(small);
    let per_item = counts.iter().map(|(_, count)| count).sum::<f64>() / POLLS as f64;
    println!(
        "{topics} topics: stored within {:?}; the last item came {:?} later; {per_item:.3} fetches an item, \
         {counts:?}; {} KiB more with the polls, {} KiB at most",
        stored - begun,
        last.saturating_duration_since(stored),
        parked.saturating_sub(small) >> 10,
        grown >> 10,
    );
    assert!(per_item <= FETCHES_PER_ITEM, "{per_item} fetches an item: {counts:?}");
    assert!(grown <= GROWN_BYTES, "{grown} bytes for {POLLS} polls");
    let items: Vec<DequeuedItem> = arrivals.into_iter().map(|(item, _)| item).collect();
    let came: BTreeSet<String> =
        items.iter().map(|item| String::from_utf8(item.payload.to_vec()).unwrap()).collect();
    assert_eq!(came.len(), items.len(), "an item came twice");
    assert_eq!(came, payloads);
    // An item that comes late goes back, and is delivered again.
    let again = items.iter().filter(|item| item.attempt > 1).count();
    let late = counts.iter().filter(|it| *it.0 == "late").map(|(_, count)| count).sum::<f64>();
    assert!(again as f64 <= late, "{again} items were leased before, and {late} fetches were late");
    items
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_polls_at_one_node_get_an_item_each_from_the_others() {
    let cluster = Nodes::new(Kind::MariaDb, 3, 6).await;
    cluster.configure(&format!("\n[limits]\nwait_max_ms = {}\n", WAIT.as_millis()));
    let nodes = cluster.start_all().await;
    linked(&nodes).await;
    assert!(nodes.iter().all(|node| !node.has_huge_pages()), "what they take is what is measured");

    for (name, topics) in [("one", 1), ("few", 8)] {
        let items = delivered(&nodes, name, topics).await;
        for items in items.chunks(BATCH) {
            ack(&nodes[1], items).await;
        }
    }
    for node in nodes {
        node.terminate().await;
    }
}
