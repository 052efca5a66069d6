//! A consumer where each node hands out the items of all shards: which node it asks, and when another one.

use std::collections::BTreeSet;

use tokio::time::{Instant, sleep};

use super::*;
use crate::{
    ClientConfig,
    testing::{Fake, HeldItems, Network, Stock, config},
};

const ADDRESSES: [&str; 3] = ["a:1", "b:1", "c:1"];
/// Longer than a poll.
const LONG: Duration = Duration::from_secs(25);

/// Three nodes that each hand out all items.
struct Cluster {
    network: Network,
    fakes: [Arc<Fake>; 3],
}

impl Cluster {
    fn new() -> Self {
        let network = Network::default();
        let cluster = Self { fakes: ADDRESSES.map(|address| network.fake(address)), network };
        cluster.deliver_all(&ADDRESSES);
        cluster
    }

    /// Only these hand out all items.
    fn deliver_all(&self, nodes: &[&str]) {
        let fakes: Vec<_> = ADDRESSES.into_iter().zip(&self.fakes).collect();
        self.network.cluster_with(&fakes, nodes);
    }

    fn start(&self, seed: u64) -> Consumer {
        let client = self.network.configured(ClientConfig { seed: Some(seed), ..config(&["a:1"]) });
        let config = ConsumerConfig::new(["a"]).concurrency(6);
        Consumer::start(client, config, |_: Delivery| async { Outcome::Ack })
    }

    fn polls(&self) -> [usize; 3] {
        [0, 1, 2].map(|node: usize| self.fakes[node].dequeue.calls().len())
    }

    /// The nodes that are asked from now on, for longer than a poll lasts.
    async fn asked(&self) -> Vec<usize> {
        let before = self.polls();
        sleep(LONG).await;
        let after = self.polls();
        (0..3).filter(|node| after[*node] > before[*node]).collect()
    }

    /// The only node that is asked.
    async fn only(&self) -> usize {
        let asked = self.asked().await;
        assert_eq!(asked.len(), 1, "{asked:?}");
        asked[0]
    }

    /// Gives a node items, each of which makes an answer, and waits until all are acked.
    async fn handle(&self, node: usize, items: usize) {
        let fake = &self.fakes[node];
        for _ in 0..items {
            let acked = fake.ack.calls().len();
            *fake.stock.lock().unwrap() = Some(Stock { numbers: 0..1, held: HeldItems::default() });
            fake.ack.seen(acked + 1).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn one_node_is_asked_with_all_slots_and_the_whole_wait() {
    let cluster = Cluster::new();
    let consumer = cluster.start(1);
    sleep(LONG).await;
    let node = cluster.only().await;
    let last = cluster.fakes[node].dequeue.calls().pop().unwrap();
    assert_eq!((last.demands[0].max_items, last.wait.map(|wait| wait.seconds)), (6, Some(20)));
    assert!(cluster.polls().iter().sum::<usize>() < 10, "{:?}", cluster.polls());
    consumer.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn consumers_that_start_together_ask_different_nodes() {
    let mut chosen = BTreeSet::new();
    for seed in 1..=12 {
        let cluster = Cluster::new();
        let consumer = cluster.start(seed);
        sleep(LONG).await;
        chosen.insert(cluster.only().await);
        consumer.stop().await.unwrap();
    }
    assert_eq!(chosen.len(), 3, "{chosen:?}");
}

#[tokio::test(start_paused = true)]
async fn all_nodes_are_asked_while_one_hands_out_its_own_items_alone() {
    let cluster = Cluster::new();
    cluster.deliver_all(&["a:1", "c:1"]);
    let consumer = cluster.start(1);
    assert_eq!(cluster.asked().await, [0, 1, 2]);
    cluster.deliver_all(&ADDRESSES);
    sleep(LONG * 2).await;
    cluster.only().await;
    // A node of an earlier release joins. The poll with all slots ends first.
    cluster.deliver_all(&["b:1", "c:1"]);
    sleep(LONG * 2).await;
    assert_eq!(cluster.asked().await, [0, 1, 2]);
    consumer.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn three_answers_in_a_row_move_it_to_where_the_items_come_from() {
    let cluster = Cluster::new();
    let consumer = cluster.start(1);
    sleep(LONG).await;
    let first = cluster.only().await;
    let (near, far) = (ADDRESSES[first], ADDRESSES[(first + 1) % 3]);
    let name = |node| *cluster.fakes[first].source.lock().unwrap() = Some(node);
    for (node, items) in [(far, 2), (near, 1), (far, 2), ("unknown", 1), (far, 2)] {
        name(node);
        cluster.handle(first, items).await;
        assert_eq!(cluster.only().await, first, "after {items} from {node}");
    }
    // Answers without items, as there were, do not count.
    name(far);
    cluster.handle(first, 1).await;
    assert_eq!(cluster.only().await, (first + 1) % 3);
    consumer.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn it_goes_elsewhere_from_a_node_that_fails_leaves_or_refuses() {
    let cluster = Cluster::new();
    let consumer = cluster.start(1);
    sleep(LONG).await;
    let first = cluster.only().await;
    cluster.network.cut(ADDRESSES[first], true);
    let begun = Instant::now();
    let second = cluster.only().await;
    assert_ne!(first, second);
    cluster.handle(second, 1).await;
    cluster.network.cut(ADDRESSES[first], false);
    assert_eq!(cluster.only().await, second, "it stays");
    assert!(begun.elapsed() < LONG * 3, "{:?}", begun.elapsed());

    cluster.fakes[second].dequeue.fail(Code::Unavailable, Some("SHARD_UNAVAILABLE"), 1);
    sleep(LONG).await;
    let third = cluster.only().await;
    assert_ne!(second, third);

    let others = || ADDRESSES.into_iter().zip(&cluster.fakes).filter(move |(at, _)| *at != ADDRESSES[third]);
    let left: Vec<_> = others().collect();
    cluster.network.cluster_with(&left, &ADDRESSES);
    sleep(LONG * 2).await;
    assert_ne!(cluster.only().await, third);
    consumer.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn where_all_refuse_the_pauses_grow() {
    let cluster = Cluster::new();
    let consumer = cluster.start(1);
    sleep(LONG).await;
    for fake in &cluster.fakes {
        fake.dequeue.fail(Code::Unavailable, Some("SHARD_UNAVAILABLE"), 1_000);
    }
    sleep(LONG).await;
    let before: usize = cluster.polls().iter().sum();
    sleep(LONG).await;
    let after: usize = cluster.polls().iter().sum();
    // Three nodes, each about every second.
    assert!((10..200).contains(&(after - before)), "{} polls", after - before);
    consumer.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn it_ends_once_the_one_node_has_nothing() {
    let cluster = Cluster::new();
    for fake in &cluster.fakes {
        *fake.stock.lock().unwrap() = Some(Stock { numbers: 0..10, held: HeldItems::default() });
    }
    let client = cluster.network.client(&["a:1"]);
    let span = Duration::from_secs(5);
    let config = ConsumerConfig { idle_exit: Some(span), ..ConsumerConfig::new(["a"]) };
    let begun = Instant::now();
    let report = Consumer::start(client, config, |_: Delivery| async { Outcome::Ack }).ended().await.unwrap();
    assert!(report.acked >= 10 && report.acked % 10 == 0, "{report:?}");
    assert!((span..span * 4).contains(&begun.elapsed()), "{:?}", begun.elapsed());
}
