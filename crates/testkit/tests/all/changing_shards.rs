//! The shards of a running engine change.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use forebay_engine::{
    Duty, Engine, EnqueueCall, EnqueueOutcome, Intake, KeyQuestion, ListedShard, NewItem, OwnerAnswer,
    OwnerQuestion, Peers, Reach, RememberedKey, Settings, Setup, ShardState,
};
use forebay_testkit::{
    FakeShards, NAMESPACE, dequeue,
    fake::{FakeShard, Process},
    item,
};
use forebay_types::{Reason, Refusal, ShardId};

const OPEN: Intake = Intake::Open;
const CLOSED: Intake = Intake::Closed;

/// The engines of a test, by address.
#[derive(Clone, Default)]
struct Others(Arc<Mutex<Vec<(String, Engine)>>>);

impl Others {
    fn at(&self, address: &str) -> Option<Engine> {
        let others = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        others.iter().find(|(at, _)| at == address).map(|(_, engine)| engine.clone())
    }
}

#[async_trait]
impl Peers for Others {
    async fn ask(&self, address: &str, question: OwnerQuestion) -> OwnerAnswer {
        match self.at(address) {
            Some(engine) => engine.owns(question).await,
            None => OwnerAnswer::Silent,
        }
    }

    async fn find_keys(&self, address: &str, question: KeyQuestion) -> Option<Vec<RememberedKey>> {
        self.at(address)?.find_keys(question).await
    }
}

/// An engine over some of the shards.
struct Queue<'a> {
    shards: &'a FakeShards,
    process: Process,
    engine: Engine,
}

impl<'a> Queue<'a> {
    async fn start(shards: &'a FakeShards, listed: &[(u32, Intake)]) -> Self {
        let queue = Self::start_as(shards, 1, listed, &Others::default());
        queue.engine.ready().await;
        queue
    }

    fn start_as(shards: &'a FakeShards, number: usize, listed: &[(u32, Intake)], others: &Others) -> Self {
        let process = Process::new(number);
        let address = format!("node{number}:1");
        let engine = Engine::start_with(Setup {
            settings: Settings::default(),
            address: address.clone(),
            shards: reach(shards, &process, listed),
            duty: Duty::Own,
            reach: Reach::Own,
            clock: Arc::new(shards.clock(Duration::ZERO)),
            peers: Arc::new(others.clone()),
            tasks: Arc::new(()),
            seed: 7,
        });
        others.0.lock().unwrap_or_else(PoisonError::into_inner).push((address, engine.clone()));
        Self { shards, process, engine }
    }

    fn set(&self, listed: &[(u32, Intake)]) {
        self.engine.set_shards(reach(self.shards, &self.process, listed));
    }

    /// Waits until it owns so many shards.
    async fn owns(&self, shards: usize) {
        self.engine.served().wait_for(|served| served.owned == shards).await.unwrap();
    }

    async fn put(&self, item: NewItem) -> Result<EnqueueOutcome, Refusal> {
        self.engine.enqueue(call_of(item)).await?.remove(0)
    }

    /// Enqueues an item with a key, again and again while it is refused.
    async fn put_key(&self, key: usize) -> EnqueueOutcome {
        for _ in 0..100 {
            match self.put(keyed(key)).await {
                Ok(done) => return done,
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
        panic!("key {key} was refused for 10 s");
    }

    async fn take_all(&self) -> usize {
        let mut count = 0;
        loop {
            let items = self.engine.dequeue(dequeue(&["t"], 100)).await.unwrap();
            if items.is_empty() {
                return count;
            }
            count += items.len();
            let receipts = items.iter().filter_map(|item| item.receipt).collect();
            let acked = self.engine.ack(NAMESPACE.into(), receipts, None).await.unwrap();
            assert!(acked.iter().all(Result::is_ok), "{acked:?}");
        }
    }

    /// The shards of the status, and whether each is owned.
    async fn owned(&self) -> Vec<(u32, bool)> {
        let status = self.engine.status().await.unwrap();
        status.shards.iter().map(|shard| (shard.id, shard.state == ShardState::Owned)).collect()
    }
}

fn reach(shards: &FakeShards, process: &Process, listed: &[(u32, Intake)]) -> Vec<ListedShard> {
    let of = |(id, intake): &(u32, Intake)| {
        let db = shards.dbs.iter().find(|db| db.id.0 == *id).expect("a shard of the test");
        let shard = Arc::new(FakeShard::new(db.clone(), process.clone()));
        ListedShard { id: ShardId(*id), shard, intake: *intake }
    };
    listed.iter().map(of).collect()
}

fn call_of(item: NewItem) -> EnqueueCall {
    let (namespace, items) = (NAMESPACE.into(), vec![item]);
    EnqueueCall { namespace, items, ..EnqueueCall::default() }
}

fn pinned(shard: u32) -> NewItem {
    NewItem { shard: Some(ShardId(shard)), ..item("t") }
}

fn keyed(key: usize) -> NewItem {
    NewItem { dedupe_key: Some(format!("key-{key}")), ..item("t") }
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_is_added_is_taken_over_and_takes_items() {
    let shards = FakeShards::new(2).await;
    let queue = Queue::start(&shards, &[(1, OPEN)]).await;
    assert_eq!(queue.put(pinned(2)).await.unwrap_err().reason, Reason::InvalidField);
    queue.set(&[(1, OPEN), (2, OPEN)]);
    queue.owns(2).await;
    assert_eq!(queue.owned().await, [(1, true), (2, true)]);
    assert_eq!(queue.put(pinned(2)).await.unwrap().id.shard, ShardId(2));
    assert_eq!(queue.take_all().await, 1);
    queue.engine.stop().await;
    assert!(shards.dbs.iter().all(|db| db.lock().tables.address.is_empty()), "both are released");
}

#[tokio::test(start_paused = true)]
async fn a_drained_shard_takes_nothing_new_and_delivers_what_it_has() {
    let shards = FakeShards::new(2).await;
    let queue = Queue::start(&shards, &[(1, OPEN), (2, OPEN)]).await;
    queue.put(pinned(2)).await.unwrap();
    queue.set(&[(1, OPEN), (2, CLOSED)]);
    assert_eq!(queue.put(pinned(2)).await.unwrap_err().reason, Reason::ShardDraining);
    for _ in 0..20 {
        assert_eq!(queue.put(item("t")).await.unwrap().id.shard, ShardId(1));
    }
    assert_eq!(queue.take_all().await, 21);
    queue.set(&[(1, OPEN), (2, OPEN)]);
    assert_eq!(queue.put(pinned(2)).await.unwrap().id.shard, ShardId(2));
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_is_removed_is_released_and_may_come_back() {
    let shards = FakeShards::new(2).await;
    let queue = Queue::start(&shards, &[(1, OPEN), (2, OPEN)]).await;
    queue.put(pinned(2)).await.unwrap();
    queue.set(&[(1, OPEN)]);
    assert_eq!(queue.owned().await, [(1, true)]);
    assert_eq!(queue.take_all().await, 0);
    // Its task gives it up.
    while !shards.dbs[1].lock().tables.address.is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    queue.set(&[(1, OPEN), (2, OPEN)]);
    queue.owns(2).await;
    assert_eq!(queue.take_all().await, 1);
    queue.engine.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_shard_whose_server_is_gone_can_be_removed() {
    let shards = FakeShards::new(2).await;
    let queue = Queue::start(&shards, &[(1, OPEN), (2, OPEN)]).await;
    shards.dbs[1].lock().faults.down = true;
    let waits = {
        let engine = queue.engine.clone();
        tokio::spawn(async move { engine.enqueue(call_of(pinned(2))).await })
    };
    tokio::time::sleep(Duration::from_millis(300)).await;
    queue.set(&[(1, OPEN)]);
    let answer = waits.await.unwrap().unwrap().remove(0).unwrap_err();
    assert!(matches!(answer.reason, Reason::OutcomeUnknown | Reason::ShardUnavailable), "{answer}");
    assert_eq!(queue.owned().await, [(1, true)]);
    queue.engine.stop().await;
}

#[tokio::test(start_paused = true)]
async fn keys_are_known_however_their_homes_move() {
    let shards = FakeShards::new(3).await;
    let queue = Queue::start(&shards, &[(1, OPEN), (2, OPEN)]).await;
    let mut first = Vec::new();
    for key in 0..40 {
        first.push(queue.put_key(key).await);
    }
    for listed in [
        &[(1, OPEN), (2, OPEN), (3, OPEN)][..],
        &[(1, CLOSED), (2, OPEN), (3, OPEN)],
        &[(1, CLOSED), (2, CLOSED), (3, OPEN)],
        &[(1, OPEN), (2, OPEN), (3, OPEN)],
    ] {
        queue.set(listed);
        for (key, stored) in first.iter().enumerate() {
            let again = queue.put_key(key).await;
            assert!(again.duplicate && again.id == stored.id, "key {key} under {listed:?}: {again:?}");
        }
    }
    assert_eq!(queue.take_all().await, 40);
}

#[tokio::test(start_paused = true)]
async fn an_earlier_home_at_another_node_is_asked() {
    let shards = FakeShards::new(2).await;
    let others = Others::default();
    let one = Queue::start_as(&shards, 1, &[(1, OPEN)], &others);
    one.engine.ready().await;
    let mut first = Vec::new();
    for key in 0..40 {
        first.push(one.put_key(key).await);
    }
    // The other node owns the new shard. The first one hears of it later.
    let listed = [(1, OPEN), (2, OPEN)];
    let other = Queue::start_as(&shards, 2, &listed, &others);
    other.owns(1).await;
    let refused = other.put(keyed(0)).await.unwrap_err();
    assert!(matches!(refused.reason, Reason::ShardUnavailable | Reason::NotOwner), "{refused}");
    one.set(&listed);
    let mut asked = 0;
    for (key, stored) in first.iter().enumerate() {
        // Whichever node owns the key's home.
        let again = loop {
            if let Ok(done) = one.put(keyed(key)).await {
                break done;
            }
            if let Ok(done) = other.put(keyed(key)).await {
                asked += 1;
                break done;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        };
        assert!(again.duplicate && again.id == stored.id, "key {key}: {again:?}");
    }
    assert!(asked > 5, "{asked} keys have moved to the other node");
}

#[tokio::test(start_paused = true)]
async fn only_an_owner_that_knows_the_same_homes_says_what_it_has() {
    let shards = FakeShards::new(2).await;
    let queue = Queue::start(&shards, &[(1, OPEN)]).await;
    queue.put_key(1).await;
    let ask = async |shard: u32, homes: &[u32], keys: usize| {
        let homes = homes.iter().copied().map(ShardId).collect();
        queue.engine.find_keys(KeyQuestion { shard: ShardId(shard), homes, keys: vec![[0; 16]; keys] }).await
    };
    assert_eq!(ask(1, &[1], 1).await, Some(Vec::new()));
    assert_eq!(ask(1, &[1, 2], 1).await, None, "it knows other homes");
    assert_eq!(ask(2, &[1], 1).await, None, "it does not own shard 2");
    assert_eq!(ask(1, &[1], 100_000).await, None, "too many keys");
}
