//! A tenant that works over all nodes of a cluster beside a hostile one, and how much longer its calls take.
//!
//! The machine's work for the hostile tenant counts for nothing: it does the same while it works at a node of
//! another cluster, and both are compared.

use std::time::Duration;

use forebay_proto::v1::{
    Ack, AckRequest, DequeueRequest, EnqueueRequest, TopicDemand, queue_service_client::QueueServiceClient,
    topic_demand::Selector,
};
use tokio::{
    runtime::Runtime,
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval},
};
use tonic::transport::Channel;

use super::{
    anywhere::item,
    nodes::{channels, metric},
};
use crate::{node::Node, rpc::span};

type Client = QueueServiceClient<Channel>;

const FRIENDLY: &str = "friendly";
/// Its lifecycles begin so often.
const EVERY: Duration = Duration::from_millis(10);
/// How long it is measured at a time.
const MEASURED: Duration = Duration::from_millis(2_500);
/// How often each is measured. The middle counts: a machine that does much else has its own slow moments.
const ROUNDS: usize = 3;
/// Its topics.
const TOPICS: u64 = 16;

/// A call for an item of each of these topics, or of all that begin so.
pub fn asked(namespace: &str, selectors: Vec<Selector>, max_items: u32, wait: Duration) -> DequeueRequest {
    let demand = |selector| TopicDemand { selector: Some(selector), max_items };
    DequeueRequest {
        namespace: namespace.into(),
        demands: selectors.into_iter().map(demand).collect(),
        wait: Some(span(wait)),
        lease_duration: Some(span(Duration::from_secs(30))),
        ..DequeueRequest::default()
    }
}

/// Stores an item at a node, and takes and acks one at another. Returns how long each call took.
async fn lifecycle(mut producer: Client, mut consumer: Client, number: u64) -> [Duration; 3] {
    let topic = format!("t{}", number % TOPICS);
    let (namespace, items) = (FRIENDLY.to_owned(), vec![item(&topic, 0, "p")]);
    let begun = Instant::now();
    let request = EnqueueRequest { namespace: namespace.clone(), items, ..EnqueueRequest::default() };
    let results = producer.enqueue(request).await.unwrap().into_inner().results;
    assert_eq!(results[0].error, None);
    let stored = Instant::now();
    let request = asked(FRIENDLY, vec![Selector::Topic(topic)], 1, Duration::from_secs(20));
    let items = consumer.dequeue(request).await.unwrap().into_inner().items;
    assert_eq!(items.len(), 1, "as many polls as items");
    let taken = Instant::now();
    let acks = vec![Ack { receipt: items[0].receipt.clone() }];
    let results = consumer.ack(AckRequest { namespace, acks }).await.unwrap().into_inner().results;
    assert_eq!(results[0].error, None);
    [stored - begun, taken - stored, taken.elapsed()]
}

/// Lets the tenant work for a while. Returns how long its calls took, the shortest first.
async fn measured(nodes: &[Node]) -> Vec<Duration> {
    let clients: Vec<Client> = channels(nodes).into_iter().map(QueueServiceClient::new).collect();
    let (mut lifecycles, mut ticks) = (JoinSet::new(), interval(EVERY));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    for number in 0..(MEASURED.as_millis() / EVERY.as_millis()) as u64 {
        ticks.tick().await;
        let (producer, consumer) = ((number % 3) as usize, ((number + 1) % 3) as usize);
        lifecycles.spawn(lifecycle(clients[producer].clone(), clients[consumer].clone(), number));
    }
    let took = lifecycles.join_all().await;
    let of_verb = |verb: usize| {
        let mut took: Vec<Duration> = took.iter().map(|took| took[verb]).collect();
        took.sort_unstable();
        slowest(&took).0
    };
    println!("p99 of enqueue {:?}, dequeue {:?}, ack {:?}", of_verb(0), of_verb(1), of_verb(2));
    let mut took: Vec<Duration> = took.into_iter().flatten().collect();
    took.sort_unstable();
    took
}

/// The time that all but one call of a hundred took, and what half of them did.
fn slowest(took: &[Duration]) -> (Duration, Duration) {
    (took[took.len() * 99 / 100], took[took.len() / 2])
}

/// The longest turn of each node's event loop since it was asked last, in seconds.
async fn longest_turns(nodes: &[Node]) -> Vec<f64> {
    let mut turns = Vec::new();
    for node in nodes {
        turns.push(metric(node, "forebay_loop_longest_turn_seconds").await);
    }
    turns
}

/// The middle one of the slowest.
fn middle(mut slowest: Vec<(Duration, Duration)>) -> f64 {
    slowest.sort_unstable();
    slowest[slowest.len() / 2].0.as_secs_f64()
}

/// Lets the tenant work at three nodes: alone, beside an attack elsewhere, and beside the same one at one of
/// them. Attacks have threads of their own: what they cost here does not count. Returns how many times as
/// long the slowest calls of a hundred took beside the attack at its node.
pub async fn compare(nodes: &[Node], elsewhere: impl Fn() -> Runtime, beside: impl Fn() -> Runtime) -> f64 {
    // The first calls open connections.
    measured(nodes).await;
    let (mut alone, mut apart, mut at_a_node, mut turns) = (vec![], vec![], vec![], vec![]);
    for _ in 0..ROUNDS {
        alone.push(slowest(&measured(nodes).await));
        let attacks = elsewhere();
        apart.push(slowest(&measured(nodes).await));
        attacks.shutdown_background();
        longest_turns(nodes).await;
        let attacks = beside();
        at_a_node.push(slowest(&measured(nodes).await));
        turns.push(longest_turns(nodes).await);
        attacks.shutdown_background();
    }
    println!("p99 and half of calls: alone {alone:?}");
    println!("with the hostile tenant elsewhere {apart:?}");
    println!("beside it {at_a_node:?}; meanwhile the longest turns of the nodes took {turns:?} seconds");
    let [alone, apart, at_a_node] = [alone, apart, at_a_node].map(middle);
    let (ratio, to_alone) = (at_a_node / apart, at_a_node / alone);
    println!("beside it {ratio:.2} times as long as with it elsewhere, and {to_alone:.2} times as alone");
    ratio
}
