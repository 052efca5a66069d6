//! One measurement of a node among others: it follows topics of theirs, and they follow topics of its own.

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;
use forebay_engine::{
    Duty, Engine, ListedShard, NodeWatch, PeerLink, PeerNews, Reach, ReadyState, Settings, ShardLoad,
    Subscription, TopicHead,
};
use forebay_store::Shard;
use forebay_types::{ShardId, TopicName};
use tokio::{
    sync::mpsc::{Receiver, channel},
    task::JoinSet,
};

use super::{
    clock::CpuClock,
    load::{enqueue, own_topic, park_apart},
    store::NullShard,
    turns::Turns,
};

/// Shards of the node.
const SHARDS: u32 = 64;
/// Topics of one message between nodes.
const MESSAGE_MAX: usize = 512;
/// Messages on the way to a node.
const MESSAGES_MAX: usize = 16;
/// Items that are enqueued while other nodes follow their topics.
const ENQUEUES: u32 = 2_000;

/// A node and the others.
#[derive(Debug, Clone, Copy)]
pub struct NodesSetup {
    /// The other nodes.
    pub nodes: usize,
    /// Shards of all other nodes together.
    pub shards: u32,
    /// Topics of the node, over all of its shards.
    pub topics: u32,
    /// Topics of the node that each other node follows.
    pub followed: u32,
    /// Polls that wait, each for a topic of its own.
    pub polls: usize,
}

/// The steps of a measurement: other nodes are linked, and tell the load of their shards; polls come, whose
/// topics are followed there; the other nodes tell of all these topics; they follow topics of this node, and
/// are told of them; items of these topics are enqueued; all links to and from the node end.
pub const NODES_STEPS: [&str; 6] = ["link", "ask", "heads", "follow", "enqueue", "end"];

/// The longest turn of each step.
pub type NodesMeasurements = [Duration; NODES_STEPS.len()];

/// Measures one node.
pub async fn measure(setup: NodesSetup) -> anyhow::Result<NodesMeasurements> {
    let addresses: Vec<String> = (1..=setup.nodes).map(|number| format!("node{number}:1")).collect();
    let mut turns = Turns::of(start(setup, &addresses));
    turns.rest(|status| status.topic_count >= setup.topics as usize).await.context("start")?;
    turns.step();

    let mut links = JoinSet::new();
    turns.engine.take_in(PeerNews::Nodes(addresses.clone()));
    for (number, address) in addresses.iter().enumerate() {
        let (subscriptions, told) = channel(MESSAGES_MAX);
        let link = PeerLink { number: 1, subscriptions };
        turns.engine.take_in(PeerNews::Linked { node: address.clone(), link });
        turns.engine.take_in(PeerNews::Loads { node: address.clone(), loads: loads(setup, number) });
        links.spawn(take_all(told));
    }
    turns.rest(|_| true).await.context("link")?;
    let link = turns.step();

    let polls = turns.during(|engine| async move { park_apart(&engine, setup.polls).await }).await?;
    turns.rest(|_| true).await.context("ask")?;
    let ask = turns.step();

    for address in &addresses {
        for first in (0..setup.polls).step_by(MESSAGE_MAX) {
            let topics = first..setup.polls.min(first + MESSAGE_MAX);
            let head =
                |number| TopicHead { name: own_topic(number), state: ReadyState::default(), offered: 0 };
            let heads = topics.map(head).collect();
            turns.engine.take_in(PeerNews::Heads { node: address.clone(), heads });
        }
    }
    turns.rest(|_| true).await.context("heads")?;
    let heads = turns.step();

    for _ in 0..setup.nodes {
        links.spawn(follow(turns.engine.watch(), setup.followed));
    }
    turns.rest(|_| true).await.context("follow")?;
    let followed = turns.step();

    for number in 0..ENQUEUES.min(setup.followed) {
        let (shard, name) = followed_topic(number);
        let item = |engine: Engine| async move { enqueue(&engine, name, Some(shard)).await };
        turns.during(item).await?;
    }
    turns.rest(|_| true).await.context("enqueue")?;
    let enqueued = turns.step();

    links.shutdown().await;
    turns.engine.take_in(PeerNews::Nodes(Vec::new()));
    turns.rest(|_| true).await.context("end")?;
    let end = turns.step();

    turns.engine.stop().await;
    for poll in polls {
        poll.await?;
    }
    Ok([link, ask, heads, followed, enqueued, end])
}

/// A node that has to do with the shards of all nodes, and owns its own.
fn start(setup: NodesSetup, addresses: &[String]) -> Engine {
    let shard = |number: u32| {
        let own = setup.topics / SHARDS + u32::from(number <= setup.topics % SHARDS);
        let shard: Arc<dyn Shard> = Arc::new(NullShard {
            id: ShardId(number),
            topics: if number <= SHARDS { own } else { 0 },
            leases: 0,
            commit: Duration::ZERO,
            lost: Arc::default(),
            taken_over: Arc::default(),
        });
        ListedShard::open(ShardId(number), shard)
    };
    let engine = Engine::start_with(forebay_engine::Setup {
        settings: Settings::default(),
        address: "bench:1".to_owned(),
        shards: (1..=SHARDS + setup.shards).map(shard).collect(),
        duty: Duty::Leave { successor: String::new() },
        reach: Reach::All,
        clock: Arc::new(CpuClock),
        peers: Arc::new(()),
        tasks: Arc::new(()),
        seed: 1,
    });
    let own = (1..=SHARDS).map(|number| (ShardId(number), Duty::Own));
    let others = (0..setup.shards).map(|number| {
        let successor = addresses[number as usize % addresses.len()].clone();
        (ShardId(SHARDS + 1 + number), Duty::Leave { successor })
    });
    engine.set_duties(own.chain(others).collect());
    engine
}

/// Nothing waits in the shards of a node.
fn loads(setup: NodesSetup, node: usize) -> Vec<ShardLoad> {
    let numbers = (0..setup.shards).skip(node).step_by(setup.nodes);
    let load = |number| {
        let shard = ShardId(SHARDS + 1 + number);
        ShardLoad { shard, rows: 0, bytes: 0, takes_items: true }
    };
    numbers.map(load).collect()
}

/// One of the topics of the node that others follow, and its shard.
fn followed_topic(number: u32) -> (ShardId, TopicName) {
    let (shard, number) = (number % SHARDS + 1, number / SHARDS + 1);
    (ShardId(shard), NullShard::topic_name(ShardId(shard), number))
}

/// Another node, which follows topics of the measured one, and takes what it is told.
async fn follow(mut watch: NodeWatch, followed: u32) {
    let names: Vec<TopicName> = (0..followed).map(|number| followed_topic(number).1).collect();
    for names in names.chunks(MESSAGE_MAX) {
        let subscription =
            |name: &TopicName| Subscription { name: name.clone(), wanted: Some(0), payer: None };
        watch.subscribe(names.iter().map(subscription).collect());
    }
    while watch.next().await.is_some() {}
}

/// Another node, whose topics the measured one follows.
async fn take_all(mut told: Receiver<Vec<Subscription>>) {
    while told.recv().await.is_some() {}
}
