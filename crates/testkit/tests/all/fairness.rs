//! A tenant that does the worst it can raises another's p99 by at most three times, for each kind of call.
//!
//! Time is the runtime's paused time, of which the engine takes none. So what is measured is how long a call
//! waits for others. A commit takes 20 ms, 20 µs a row, and 150 µs more for each item that returns and each
//! new topic. Calls come ten a second. That is ten times as slow as on a server, because the runtime's clock
//! counts whole milliseconds.

use std::time::Duration;

use forebay_engine::{
    ActiveTopicsCall, DeliveredItem, DequeueCall, Engine, EnqueueCall, ExtendOf, NackAction, NackOf, NewItem,
    Settings,
};
use forebay_testkit::{
    FakeShards, dequeue,
    fake::{Dice, Faults},
    item,
};
use forebay_types::{ItemId, Receipt, Seq, ShardId};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

/// Calls of each kind that the friendly tenant makes.
const CALLS: usize = 100;
/// The most milliseconds between two of them: on average half as many.
const GAP_MS: u64 = 200;
/// Members of a hostile call.
const MEMBERS: usize = 1_000;
/// A call that takes longer is given up, and counts as so long.
const PATIENCE: Duration = Duration::from_secs(5);
/// A shorter time is no wait.
const FLOOR: Duration = Duration::from_millis(10);

/// A kind of call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Enqueue,
    Dequeue,
    /// An enqueue, until the item has arrived at a long poll.
    HandOff,
    Ack,
    Nack,
    Extend,
    ActiveTopics,
}

/// A tenant's access to the queue.
#[derive(Clone)]
struct Tenant {
    engine: Engine,
    name: &'static str,
}

impl Tenant {
    async fn put(&self, topic: &str, items: usize, request_id: Option<String>) -> bool {
        let item = NewItem { lease: Duration::from_secs(600), max_attempts: 1_000, ..item(topic) };
        self.enqueue(vec![item; items], request_id).await
    }

    /// Stores items, each in a topic of its own.
    async fn put_everywhere(&self, topic: &str, items: usize) -> bool {
        self.enqueue((0..items).map(|number| item(&format!("{topic} {number}"))).collect(), None).await
    }

    async fn enqueue(&self, items: Vec<NewItem>, request_id: Option<String>) -> bool {
        let call = EnqueueCall { namespace: self.name.into(), items, request_id, ..EnqueueCall::default() };
        self.engine.enqueue(call).await.is_ok_and(|results| results.iter().all(Result::is_ok))
    }

    async fn get(&self, topics: &[&str], max_items: usize, wait: Duration) -> Vec<DeliveredItem> {
        let call = DequeueCall { namespace: self.name.into(), wait, ..dequeue(topics, max_items) };
        self.engine.dequeue(call).await.unwrap_or_default()
    }

    /// Stores items and leases them.
    async fn lease(&self, topic: &str, items: usize) -> Vec<Receipt> {
        assert!(self.put(topic, items, None).await);
        let items = self.get(&[topic], items, Duration::ZERO).await;
        items.iter().map(|item| item.receipt.unwrap()).collect()
    }

    async fn ack(&self, receipts: Vec<Receipt>) -> bool {
        self.engine
            .ack(self.name.into(), receipts, None)
            .await
            .is_ok_and(|results| results.iter().all(Result::is_ok))
    }

    async fn nack(&self, receipts: Vec<Receipt>) -> bool {
        let release = |receipt| NackOf {
            receipt,
            action: NackAction::Release(Duration::ZERO),
            metadata: Some(vec![0; 1_000]),
            reason: "r".repeat(1_000),
        };
        let nacks = receipts.into_iter().map(release).collect();
        self.engine
            .nack(self.name.into(), nacks, None)
            .await
            .is_ok_and(|results| results.iter().all(Result::is_ok))
    }

    async fn extend(&self, receipts: &[Receipt]) -> bool {
        let extensions = receipts.iter().map(|receipt| ExtendOf { receipt: *receipt, lease: None }).collect();
        let answer = self.engine.extend_lease(self.name.into(), extensions, None).await;
        answer.is_ok_and(|results| results.iter().all(Result::is_ok))
    }

    async fn active(&self) -> bool {
        let namespace = self.name.into();
        let call =
            ActiveTopicsCall { namespace, limit: 100, after: None, prefix: String::new(), named: Vec::new() };
        self.engine.active_topics(call).await.is_ok()
    }
}

/// A node with one shard.
async fn start() -> Engine {
    let shards = FakeShards::new(1).await;
    // Little memory, so that the checks of a debug build have little to look at.
    let settings = Settings { index_bytes: 1 << 20, ..Settings::default() };
    let engine = shards.start(settings).await;
    let mut state = shards.dbs[0].lock();
    state.tables.strict = false;
    state.faults =
        Faults { commit_ms: (20, 20), row_us: 20, dear_row_us: 150, read_ms: (10, 10), ..Faults::instant() };
    drop(state);
    engine
}

/// One call of the friendly tenant. Returns how long it took.
async fn call(tenant: Tenant, kind: Kind, receipt: Option<Receipt>) -> Duration {
    let receipts: Vec<Receipt> = receipt.into_iter().collect();
    let began = Instant::now();
    let answer = async {
        match kind {
            Kind::Enqueue => tenant.put("new", 1, None).await,
            Kind::Dequeue => tenant.get(&["ready"], 1, Duration::ZERO).await.len() == 1,
            Kind::HandOff => {
                let (stored, items) = tokio::join!(
                    tenant.put("direct", 1, None),
                    tenant.get(&["direct"], 1, Duration::from_secs(9))
                );
                stored && items.len() == 1
            }
            Kind::Ack => tenant.ack(receipts).await,
            Kind::Nack => tenant.nack(receipts).await,
            Kind::Extend => tenant.extend(&receipts).await,
            Kind::ActiveTopics => tenant.active().await,
        }
    };
    let done = timeout(PATIENCE, answer).await.unwrap_or(true);
    assert!(done, "{kind:?}");
    began.elapsed()
}

/// The friendly tenant's p99 of one kind of call.
async fn p99(engine: &Engine, kind: Kind, hostile: bool) -> Duration {
    let tenant = Tenant { engine: engine.clone(), name: "friend" };
    let mut receipts = match kind {
        Kind::Ack | Kind::Nack | Kind::Extend => tenant.lease("leased", CALLS).await,
        _ => Vec::new(),
    };
    if kind == Kind::Dequeue {
        assert!(tenant.put("ready", CALLS, None).await);
    }
    let mut hostiles = JoinSet::new();
    if hostile {
        be_hostile(engine, &mut hostiles).await;
        sleep(Duration::from_millis(500)).await;
    }
    let mut dice = Dice::new(3);
    let mut calls = JoinSet::new();
    for _ in 0..CALLS {
        sleep(Duration::from_millis(dice.within(1, GAP_MS))).await;
        calls.spawn(call(tenant.clone(), kind, receipts.pop()));
    }
    let mut took: Vec<Duration> = calls.join_all().await;
    took.sort_unstable();
    took[CALLS - 1 - CALLS / 100]
}

/// Everything that one tenant can do to the others.
async fn be_hostile(engine: &Engine, tasks: &mut JoinSet<()>) {
    let tenant = Tenant { engine: engine.clone(), name: "foe" };
    // A call that is refused is tried again soon, and not in an endless loop without time.
    let pause = || sleep(Duration::from_millis(1));
    let mut held = Vec::new();
    for number in 0..4 {
        held.push(tenant.lease(&format!("held {number}"), MEMBERS).await);
    }
    for leased in held {
        let foe = tenant.clone();
        tasks.spawn(async move {
            loop {
                foe.extend(&leased).await;
                pause().await;
            }
        });
    }
    for number in 0..4 {
        let foe = tenant.clone();
        tasks.spawn(async move {
            loop {
                foe.put(&format!("many {number}"), MEMBERS, None).await;
                pause().await;
            }
        });
    }
    for number in 0..2 {
        let foe = tenant.clone();
        tasks.spawn(async move {
            for call in 0.. {
                foe.put_everywhere(&format!("new {number} {call}"), MEMBERS).await;
                pause().await;
            }
        });
    }
    for number in 0..2 {
        let foe = tenant.clone();
        tasks.spawn(async move {
            for call in 0.. {
                foe.put("whole", MEMBERS, Some(format!("{number} {call}"))).await;
                pause().await;
            }
        });
    }
    for number in 0..2 {
        let foe = tenant.clone();
        let topic = format!("many {number}");
        tasks.spawn(async move {
            loop {
                let items = foe.get(&[&topic], MEMBERS, Duration::from_secs(1)).await;
                foe.nack(items.iter().map(|item| item.receipt.unwrap()).collect()).await;
                pause().await;
            }
        });
    }
    be_idle(&tenant, tasks);
}

/// It asks again and again for what is not there.
fn be_idle(tenant: &Tenant, tasks: &mut JoinSet<()>) {
    let foe = tenant.clone();
    tasks.spawn(async move {
        let item = |seq| ItemId { shard: ShardId(1), seq: Seq(1_000_000_000 + seq) };
        let stale: Vec<Receipt> =
            (0..MEMBERS as u64).map(|seq| Receipt { item: item(seq), delivery: 1, nonce: seq }).collect();
        loop {
            foe.ack(stale.clone()).await;
            sleep(Duration::from_millis(1)).await;
        }
    });
    for number in 0..50 {
        let foe = tenant.clone();
        tasks.spawn(async move {
            let topics: Vec<String> = (0..100).map(|topic| format!("none {number} {topic}")).collect();
            let topics: Vec<&str> = topics.iter().map(String::as_str).collect();
            loop {
                foe.get(&topics, 10, Duration::from_secs(20)).await;
                foe.active().await;
            }
        });
    }
}

async fn compare(kind: Kind) {
    let alone = p99(&start().await, kind, false).await;
    let beside = p99(&start().await, kind, true).await;
    println!("{kind:?}: p99 {alone:?} alone, {beside:?} beside a hostile tenant");
    assert!(beside <= 3 * alone.max(FLOOR), "{kind:?}: {alone:?} alone, {beside:?} beside");
}

#[tokio::test(start_paused = true)]
async fn enqueues_are_not_held_up() {
    compare(Kind::Enqueue).await;
}

#[tokio::test(start_paused = true)]
async fn dequeues_are_not_held_up() {
    compare(Kind::Dequeue).await;
}

#[tokio::test(start_paused = true)]
async fn hand_offs_are_not_held_up() {
    compare(Kind::HandOff).await;
}

#[tokio::test(start_paused = true)]
async fn acks_are_not_held_up() {
    compare(Kind::Ack).await;
}

#[tokio::test(start_paused = true)]
async fn nacks_are_not_held_up() {
    compare(Kind::Nack).await;
}

#[tokio::test(start_paused = true)]
async fn extensions_are_not_held_up() {
    compare(Kind::Extend).await;
}

#[tokio::test(start_paused = true)]
async fn lists_of_active_topics_are_not_held_up() {
    compare(Kind::ActiveTopics).await;
}
