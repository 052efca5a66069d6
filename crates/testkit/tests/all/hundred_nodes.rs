//! A hundred nodes, of which two own the items of a topic, and all others have a consumer: how many messages
//! an item takes, between nodes that all know each other.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use async_trait::async_trait;
use forebay_engine::{
    DequeueCall, Duty, Engine, EnqueueCall, FetchCall, FetchError, FetchedItems, KeyQuestion, ListedShard,
    OwnerAnswer, OwnerQuestion, PeerLink, PeerNews, Peers, Reach, RememberedKey, Settings, Setup,
};
use forebay_store::Shard;
use forebay_testkit::{
    FakeShards, NAMESPACE, dequeue,
    fake::{FakeShard, Process},
    item,
};
use forebay_types::{Namespace, Receipt};
use tokio::{
    sync::mpsc::channel,
    task::JoinSet,
    time::{Instant, sleep, sleep_until, timeout},
};

const NODES: usize = 100;
/// The nodes that own a shard each. The others own none.
const OWNERS: usize = 2;
/// How long a message is on its way.
const WAY: Duration = Duration::from_millis(1);

/// The network: all engines, by address, and the messages between them.
#[derive(Default)]
struct Network {
    engines: Mutex<BTreeMap<String, Engine>>,
    /// Calls to lease items, and their answers.
    fetches: AtomicU64,
    /// Subscriptions, and numbers of items that are wanted.
    wants: AtomicU64,
    /// Offers, and news of first items.
    heads: AtomicU64,
}

impl Network {
    fn at(&self, address: &str) -> Engine {
        self.engines.lock().unwrap()[address].clone()
    }

    fn messages(&self) -> u64 {
        let fetches = 2 * self.fetches.load(Relaxed);
        fetches + self.wants.load(Relaxed) + self.heads.load(Relaxed)
    }

    /// A node listens to another one, and follows topics there.
    async fn link(self: Arc<Self>, front: String, owner: String) {
        let (front, other) = (self.at(&front), self.at(&owner));
        let mut watch = other.watch();
        let (sender, mut subscriptions) = channel(16);
        let link = PeerLink { number: watch.link(), subscriptions: sender };
        front.take_in(PeerNews::Linked { node: owner.clone(), link });
        loop {
            tokio::select! {
                changes = subscriptions.recv() => {
                    let Some(changes) = changes else { return };
                    self.wants.fetch_add(1, Relaxed);
                    sleep(WAY).await;
                    watch.subscribe(changes);
                }
                heads = watch.next() => {
                    let Some(heads) = heads else { return };
                    self.heads.fetch_add(1, Relaxed);
                    sleep(WAY).await;
                    front.take_in(PeerNews::Heads { node: owner.clone(), heads });
                }
            }
        }
    }
}

struct Way(Arc<Network>);

#[async_trait]
impl Peers for Way {
    async fn ask(&self, address: &str, question: OwnerQuestion) -> OwnerAnswer {
        sleep(WAY).await;
        self.0.at(address).owns(question).await
    }

    async fn find_keys(&self, _address: &str, _question: KeyQuestion) -> Option<Vec<RememberedKey>> {
        panic!("no item has a key")
    }

    async fn lease_items(&self, address: &str, call: FetchCall) -> Result<FetchedItems, FetchError> {
        self.0.fetches.fetch_add(1, Relaxed);
        sleep(WAY).await;
        let answer = self.0.at(address).lease_items(call).await.map_err(FetchError::Refused);
        sleep(WAY).await;
        answer
    }

    async fn return_items(&self, _address: &str, _namespace: Namespace, _receipts: Vec<Receipt>) {
        panic!("every item is taken")
    }
}

fn address(number: usize) -> String {
    format!("node{number}:1")
}

/// Starts all nodes, and links each of them to all others.
async fn begin() -> (Arc<Network>, JoinSet<()>) {
    let (shards, network) = (FakeShards::new(OWNERS as u32).await, Arc::new(Network::default()));
    for number in 0..NODES {
        let process = Process::new(number + 1);
        let of = |index: usize| {
            let shard: Arc<dyn Shard> = Arc::new(FakeShard::new(shards.dbs[index].clone(), process.clone()));
            ListedShard::open(shards.dbs[index].id, shard)
        };
        let (owned, duty) = match number < OWNERS {
            true => (vec![of(number)], Duty::Own),
            false => ((0..OWNERS).map(of).collect(), Duty::Leave { successor: String::new() }),
        };
        let engine = Engine::start_with(Setup {
            settings: Settings::default(),
            address: address(number),
            shards: owned,
            duty,
            reach: Reach::All,
            clock: Arc::new(shards.clock(Duration::ZERO)),
            peers: Arc::new(Way(network.clone())),
            tasks: Arc::new(()),
            seed: number as u64,
        });
        if number < OWNERS {
            engine.ready().await;
        }
        network.engines.lock().unwrap().insert(address(number), engine);
    }
    let mut links = JoinSet::new();
    for front in 0..NODES {
        let others: Vec<String> = (0..NODES).filter(|other| *other != front).map(address).collect();
        network.at(&address(front)).take_in(PeerNews::Nodes(others.clone()));
        for other in others {
            links.spawn(network.clone().link(address(front), other));
        }
    }
    (network, links)
}

/// A consumer at one node: it takes an item, works on it, and acks it at its owner.
async fn consume(network: Arc<Network>, node: usize, work: Duration, done: Arc<AtomicU64>) {
    let engine = network.at(&address(node));
    loop {
        let call = DequeueCall { wait: Duration::from_secs(20), ..dequeue(&["t"], 1) };
        for item in engine.dequeue(call).await.expect("a node without shards serves polls") {
            sleep(work).await;
            let receipt = item.receipt.expect("is leased");
            let owner = network.at(&address(receipt.item.shard.0 as usize - 1));
            owner.ack(NAMESPACE.into(), vec![receipt], None).await.expect("is taken");
            done.fetch_add(1, Relaxed);
        }
    }
}

/// Stores so many items, one each so often, at the owners in turn, while each other node has a consumer that
/// works on each for so long. Returns how many messages an item took, and how long the last one took beyond
/// that.
async fn messages_per_item(items: u64, every: Duration, work: Duration) -> (f64, Duration) {
    let (network, _links) = begin().await;
    let (done, mut consumers) = (Arc::new(AtomicU64::new(0)), JoinSet::new());
    // A consumer at an owner would have the items without a message.
    for node in OWNERS..NODES {
        consumers.spawn(consume(network.clone(), node, work, done.clone()));
    }
    // All polls wait by then, and all nodes have subscribed.
    sleep(Duration::from_secs(2)).await;
    let (before, begun) = (network.messages(), Instant::now());
    for number in 0..items {
        let owner = network.at(&address(number as usize % OWNERS));
        let call =
            EnqueueCall { namespace: NAMESPACE.into(), items: vec![item("t")], ..EnqueueCall::default() };
        assert!(owner.enqueue(call).await.expect("is taken")[0].is_ok());
        sleep_until(begun + every * (number as u32 + 1)).await;
    }
    let end = Instant::now();
    let all = async {
        while done.load(Relaxed) < items {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(Duration::from_secs(60), all).await.expect("all are delivered");
    let [fetches, wants, heads] =
        [&network.fetches, &network.wants, &network.heads].map(|count| count.load(Relaxed));
    println!("since the start {fetches} fetches, {wants} wants, {heads} heads");
    ((network.messages() - before) as f64 / items as f64, end.elapsed().saturating_sub(work))
}

#[tokio::test(start_paused = true)]
async fn an_item_takes_few_messages_while_consumers_wait() {
    let (messages, late) = messages_per_item(2_000, Duration::from_millis(5), Duration::ZERO).await;
    println!("{messages} messages an item; the last one took {late:?}");
    assert!(messages <= 4.0 && late < Duration::from_millis(50), "{messages} messages, {late:?}");
}

#[tokio::test(start_paused = true)]
async fn an_item_takes_not_many_messages_while_most_consumers_work() {
    // Of 98 consumers 95 work at a time.
    let (messages, late) =
        messages_per_item(4_000, Duration::from_millis(2), Duration::from_millis(190)).await;
    println!("{messages} messages an item; the last one took {late:?}");
    assert!(messages <= 10.0 && late < Duration::from_secs(3), "{messages} messages, {late:?}");
}
