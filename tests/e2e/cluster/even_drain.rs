//! Ten thousand items in five priorities in the shards of three nodes, and a consumer at one of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use forebay_proto::{time::from_timestamp, v1::DequeuedItem};
use forebay_testkit::servers::Kind;
use futures_util::future::join_all;
use tokio::time::interval;

use super::{
    anywhere::{ack, item, late, linked, store, take},
    nodes::{Nodes, owners},
};
use crate::node::Node;

/// Shards of the cluster, two of each node.
const SHARDS: usize = 6;
/// Priorities of the items.
const PRIORITIES: i32 = 5;
/// Calls by which the items of one priority come into one shard.
const ROUNDS: usize = 16;
/// A round begins so long after the one before. Items of one priority that were stored within 500 ms count as
/// equally old, and of these the front hands out its own first: so they have to be from a longer time.
const ROUND_EVERY: Duration = Duration::from_millis(500);
/// Items of one enqueue.
const BATCH: usize = 21;
/// Items of one dequeue.
const TAKEN_AT_ONCE: u32 = 50;
/// The node that the consumer asks.
const FRONT: usize = 1;
/// Of two items of one priority the older one comes first, or at most so long after the other was stored.
const OLDER_FIRST_WITHIN: Duration = Duration::from_millis(750);
/// At each quarter of a priority, what nodes have handed out of their items of it differs by so much at most:
/// a second of the 7.5 s in which they were stored, and a call. A node may be 500 ms ahead of the oldest
/// item, and the fetch from it goes 500 ms beyond the next best one.
const UNEVEN_MAX: f64 = 0.16;

/// An item that came: its priority, and the node that had it.
struct Arrival {
    node: usize,
    item: DequeuedItem,
}

/// Stores the items, each priority in all shards at a time.
async fn store_all(nodes: &[Node], owners: &BTreeMap<u32, usize>, topic: &str) {
    let mut rounds = interval(ROUND_EVERY);
    for round in 0..ROUNDS {
        rounds.tick().await;
        for priority in 0..PRIORITIES {
            let calls = owners.iter().map(|(shard, owner)| {
                let payload = |number| format!("{owner}-{priority}-{shard}-{round}-{number}");
                let items = (0..BATCH).map(|number| item(topic, priority, &payload(number))).collect();
                store(&nodes[*owner], items, Some(*shard))
            });
            join_all(calls).await;
        }
    }
}

/// Takes all items at one node, one call after the other.
async fn drain(nodes: &[Node], topic: &str) -> Vec<Arrival> {
    let (mut arrivals, mut payloads) = (Vec::new(), BTreeSet::new());
    while arrivals.len() < SHARDS * PRIORITIES as usize * ROUNDS * BATCH {
        let items = take(&nodes[FRONT], topic, TAKEN_AT_ONCE, Duration::from_secs(10)).await;
        assert!(!items.is_empty(), "{} items came", arrivals.len());
        ack(&nodes[FRONT], &items).await;
        for item in items {
            let payload = String::from_utf8(item.payload.to_vec()).unwrap();
            let node = payload.split('-').next().unwrap().parse().unwrap();
            assert!(payloads.insert(payload), "twice: {item:?}");
            arrivals.push(Arrival { node, item });
        }
    }
    arrivals
}

/// The longest time by which an item was stored before one of its priority that came earlier.
fn longest_inversion(arrivals: &[Arrival]) -> Duration {
    let mut newest = BTreeMap::new();
    let inversions = arrivals.iter().map(|Arrival { item, .. }| {
        let stored = from_timestamp(item.enqueued_at.unwrap());
        let newest = newest.entry(item.priority).or_insert(stored);
        *newest = stored.max(*newest);
        newest.since(stored)
    });
    inversions.max().unwrap_or_default()
}

/// By how much nodes differ in what they have handed out of their items of a priority, at its quarters.
fn unevenness(arrivals: &[Arrival], nodes: usize) -> f64 {
    let mut most: f64 = 0.0;
    for priority in 0..PRIORITIES {
        let of_priority: Vec<_> = arrivals.iter().filter(|it| it.item.priority == priority).collect();
        for quarter in 1..4 {
            let part = &of_priority[..of_priority.len() * quarter / 4];
            let share = |items: &[&Arrival], node| items.iter().filter(|it| it.node == node).count() as f64;
            let shares = (0..nodes).map(|node| share(part, node) / share(&of_priority, node));
            let (least, greatest) =
                shares.fold((1.0, 0.0), |(least, most): (f64, f64), it| (least.min(it), most.max(it)));
            most = most.max(greatest - least);
        }
    }
    most
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn equal_priorities_of_all_nodes_drain_alike_and_better_ones_before() {
    let cluster = Nodes::new(Kind::MariaDb, 3, SHARDS).await;
    let nodes = cluster.start_all().await;
    linked(&nodes).await;
    let owners = owners(&nodes).await;
    // Whoever answers late is left out. That is no fault of the order.
    for round in 0.. {
        let (before, topic) = (late(&nodes).await, format!("even-{round}"));
        store_all(&nodes, &owners, &topic).await;
        let arrivals = drain(&nodes, &topic).await;
        let late = late(&nodes).await - before;
        let is_sorted = arrivals.is_sorted_by_key(|it| it.item.priority);
        let (inversion, uneven) = (longest_inversion(&arrivals), unevenness(&arrivals, nodes.len()));
        println!(
            "{} items, {late} late: by priority: {is_sorted}; an older one came after one that was stored \
             {inversion:?} later; nodes differ by {uneven:.3}",
            arrivals.len()
        );
        if late == 0.0 {
            assert!(is_sorted && inversion <= OLDER_FIRST_WITHIN && uneven <= UNEVEN_MAX);
            break;
        }
        assert!(round < 5, "somebody answers late in each round");
    }
    for node in nodes {
        node.terminate().await;
    }
}
