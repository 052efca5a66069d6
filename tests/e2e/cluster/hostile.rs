//! A tenant that does its worst at one node, beside another one that works over all nodes.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use forebay_proto::v1::{
    DequeueRequest, EnqueueItem, EnqueueRequest, queue_service_client::QueueServiceClient,
    topic_demand::Selector,
};
use forebay_testkit::servers::Kind;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use tokio::{
    runtime::{Builder, Runtime},
    task::JoinSet,
    time::sleep,
};
use tonic::transport::{Channel, Endpoint};

use super::{
    anywhere::{item, linked},
    friendly::{self, asked},
    nodes::{Nodes, metric},
};
use crate::{
    node::Node,
    rpc::span,
    wire::{
        hostile::{HOSTILE, deaf, empty_receipts, repeated},
        http2,
    },
};

type Client = QueueServiceClient<Channel>;

/// Tasks of the hostile tenant that poll random names, and polls that each of them has waiting.
const POLLERS: (u64, usize) = (4, 250);
/// How long these wait: so there are a thousand new ones a second.
const PARKED: Duration = Duration::from_secs(1);
/// Topics of each: enough for new names beyond the limit on a slow machine, too.
const RANDOM_TOPICS: usize = 8;
/// Prefixes that it opens: more than a namespace may have.
const PREFIXES: u64 = 80;
/// Its connections that read no answers.
const DEAF: u64 = 6;
/// Items that it stores for them.
const UNREAD_ITEMS: usize = 200;
/// A call of the friendly tenant takes at most this many times as long beside the hostile one: with a debug
/// build 3.5 times, and 6.2 where three other programs run all the time. Where woken topics had no turns by
/// tenant, it took 33 times, and where calls had none, 60 times.
const RATIO_MAX: f64 = 8.0;

/// A client whose connection belongs to the threads that use it.
fn hostile(address: &str) -> Client {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
    QueueServiceClient::new(endpoint.connect_lazy())
}

/// Polls of the hostile tenant wait, for names that nobody has used yet.
async fn random_names(address: String, seed: u64, polls: Arc<AtomicU64>) {
    let (client, mut random) = (hostile(&address), StdRng::seed_from_u64(seed));
    let mut waiting = JoinSet::new();
    loop {
        let name = |_| Selector::Topic(format!("random/{:x}", random.random::<u64>()));
        let names = (0..RANDOM_TOPICS).map(name).collect();
        // They do not come all at once.
        let request = asked(HOSTILE, names, 1, PARKED.mul_f64(random.random_range(0.5..1.5)));
        let (mut client, polls) = (client.clone(), polls.clone());
        waiting.spawn(async move {
            let done = client.dequeue(request).await.is_ok();
            polls.fetch_add(u64::from(done), Ordering::Relaxed);
            // Refused calls are not made in a row without end.
            sleep(if done { Duration::ZERO } else { PARKED / 2 }).await;
        });
        while waiting.len() >= POLLERS.1 {
            waiting.join_next().await;
        }
    }
}

/// Opens prefixes.
async fn prefixes(address: String) {
    let (client, mut waiting) = (hostile(&address), JoinSet::new());
    for number in (0..PREFIXES).cycle() {
        let mut client = client.clone();
        let begin = Selector::TopicPrefix(format!("random/{number:x}"));
        waiting.spawn(async move {
            let done = client.dequeue(asked(HOSTILE, vec![begin], 1, PARKED)).await.is_ok();
            sleep(if done { Duration::ZERO } else { PARKED / 2 }).await;
        });
        while waiting.len() >= PREFIXES as usize {
            waiting.join_next().await;
        }
    }
}

/// Stores what the hostile tenant does not read.
async fn store_unread(node: &Node) {
    let payload = vec![1; 16 << 10];
    let unread = EnqueueItem { payload: payload.into(), max_attempts: 1_000, ..item("unread", 0, "") };
    for _ in 0..UNREAD_ITEMS / 50 {
        let (namespace, items) = (HOSTILE.to_owned(), vec![unread.clone(); 50]);
        let request = EnqueueRequest { namespace, items, ..EnqueueRequest::default() };
        QueueServiceClient::new(node.channel()).enqueue(request).await.unwrap();
    }
}

/// Begins all attacks at a node. They have threads of their own: what they cost here does not count.
fn attack(node: &Node, polls: &Arc<AtomicU64>) -> Runtime {
    let attacks = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let address = &node.grpc;
    for seed in 0..POLLERS.0 {
        attacks.spawn(random_names(address.clone(), seed, polls.clone()));
    }
    attacks.spawn(prefixes(address.clone()));
    let lease = Some(span(Duration::from_secs(1)));
    let items = asked(HOSTILE, vec![Selector::Topic("unread".into())], 100, Duration::ZERO);
    let items = http2::framed(&DequeueRequest { lease_duration: lease, ..items });
    let acks = empty_receipts();
    for number in 0..DEAF {
        let (message, method) =
            if number % 2 == 0 { (items.clone(), "Dequeue") } else { (acks.clone(), "Ack") };
        let address = address.as_str().into();
        attacks.spawn(repeated(address, async move |address| deaf(address, method, &message).await));
    }
    attacks
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hostile_tenant_at_one_node_slows_down_another_one_little() {
    let cluster = Nodes::new(Kind::MariaDb, 3, 6).await;
    let nodes = cluster.start_all().await;
    linked(&nodes).await;
    let other = Nodes::new(Kind::MariaDb, 1, 1).await;
    let apart = other.start_all().await;

    store_unread(&nodes[1]).await;
    store_unread(&apart[0]).await;
    let polls = Arc::default();
    let elsewhere = || attack(&apart[0], &Arc::default());
    let ratio = friendly::compare(&nodes, elsewhere, || attack(&nodes[0], &polls)).await;
    let polls = polls.load(Ordering::Relaxed);
    // It was an attack: its limits were met.
    for limit in ["newly followed topics", "prefixes"] {
        let refusals = metric(&nodes[0], &format!("forebay_limit_refusals_total{{limit=\"{limit}\"}}")).await;
        println!("{refusals} refusals for {limit}, {polls} polls of {RANDOM_TOPICS} random names each");
        assert!(refusals > 0.0, "{limit}");
    }
    assert!(polls > 1_000, "{polls} polls");
    assert!(ratio <= RATIO_MAX, "{ratio:.2} times");
    for node in nodes.into_iter().chain(apart) {
        node.terminate().await;
    }
}
