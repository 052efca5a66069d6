//! A database that is away for longer than the leases: acks that wait, or come again, are committed before
//! any lease ends.

use std::{sync::Arc, time::Duration};

use forebay_engine::{Delivered, Demand, DequeueCall, Engine, EnqueueCall, NewItem, Schedule, Settings};
use forebay_store::Shard;
use forebay_testkit::{
    fake::{Db, Dice, FakeShard, Faults, Journal, Process},
    sim::SimClock,
};
use forebay_types::{Body, DeliveryPolicy, Reason, Receipt, ShardId, Timestamp};
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// How many items are leased.
const ITEMS: usize = 300;
/// How long their leases are.
const LEASE: Duration = Duration::from_secs(30);
/// How long the database is away.
const OUTAGE: Duration = Duration::from_secs(40);
/// How long a consumer waits for the answer to an ack.
const PATIENCE: Duration = Duration::from_secs(3);

/// A node with one shard.
async fn start() -> (Engine, Db) {
    let journal = Arc::new(Journal::new(Timestamp::from_micros(1_790_000_000_000_000), false));
    let db = Db::new(ShardId(1), journal.clone(), Dice::new(1));
    db.lock().faults = Faults { commit_ms: (2, 2), read_ms: (1, 1), ..Faults::instant() };
    let shard = FakeShard::new(db.clone(), Process::new(1));
    shard.migrate().await.unwrap();
    let shards: Vec<(ShardId, Arc<dyn Shard>)> = vec![(ShardId(1), Arc::new(shard))];
    let clock = Arc::new(SimClock::new(journal, 0));
    let engine = Engine::start(Settings::default(), "here:1".into(), shards, clock, Arc::new(()), 7);
    engine.ready().await;
    (engine, db)
}

/// Items that become dead letters with their first failure, leased.
async fn leased(engine: &Engine) -> Vec<Delivered> {
    let item = NewItem {
        topic: "t".into(),
        priority: 0,
        body: Body::default(),
        schedule: Schedule::Now,
        lease: LEASE,
        ttl: None,
        policy: DeliveryPolicy::AtLeastOnce,
        max_attempts: 1,
        dedupe_key: None,
        shard: None,
    };
    let call = EnqueueCall { namespace: "ns".into(), items: vec![item; ITEMS], request_id: None };
    assert!(engine.enqueue(call).await.unwrap().iter().all(Result::is_ok));
    let items = engine.dequeue(poll()).await.unwrap();
    assert_eq!(items.len(), ITEMS);
    items
}

fn poll() -> DequeueCall {
    DequeueCall {
        namespace: "ns".into(),
        demands: vec![Demand { topic: "t".into(), max_items: ITEMS }],
        wait: Duration::ZERO,
        lease: None,
        consumer: String::new(),
        max_bytes: 1 << 20,
    }
}

/// Acks one delivery, again and again, until it has an answer other than that the shard is away.
async fn ack(engine: Engine, receipt: Receipt, from: Instant) {
    sleep_until(from).await;
    loop {
        let answer = timeout(PATIENCE, engine.ack("ns".into(), vec![receipt])).await;
        match answer.map(|results| results.unwrap().remove(0)) {
            Ok(Ok(())) => return,
            Ok(Err(refusal)) if refusal.reason != Reason::LeaseLost => sleep(PATIENCE / 10).await,
            Ok(Err(refusal)) => panic!("{receipt:?}: {refusal:?}"),
            Err(_) => {}
        }
    }
}

#[tokio::test(start_paused = true)]
async fn acks_that_wait_for_a_database_come_before_the_ends_of_their_leases() {
    let (engine, db) = start().await;
    let items = leased(&engine).await;
    let began = Instant::now();
    db.lock().faults.down = true;
    // Each comes first while its lease lasts.
    let step = (LEASE - PATIENCE) / ITEMS as u32;
    let acks: Vec<_> = (0..)
        .zip(&items)
        .map(|(n, item)| tokio::spawn(ack(engine.clone(), item.receipt.unwrap(), began + step * n)))
        .collect();
    sleep_until(began + OUTAGE).await;
    db.lock().faults.down = false;
    for ack in acks {
        ack.await.unwrap();
    }
    // The leases would have ended by now, also after the longest grace.
    sleep(Duration::from_secs(10)).await;
    let status = engine.status().await.unwrap();
    assert_eq!((status.shards[0].dead, status.shards[0].ready), (0, 0));
    assert!(engine.dequeue(poll()).await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn after_an_outage_acks_on_their_way_come_before_the_ends_of_their_leases() {
    let (engine, db) = start().await;
    let items = leased(&engine).await;
    let (late, early) = (items[0].receipt.unwrap(), items[1].receipt.unwrap());
    let began = Instant::now();
    db.lock().faults.down = true;
    let early = tokio::spawn(ack(engine.clone(), early, began));
    sleep_until(began + OUTAGE).await;
    db.lock().faults.down = false;
    early.await.unwrap();
    // Its consumer could not reach the node either.
    ack(engine.clone(), late, Instant::now() + Duration::from_secs(2)).await;
    sleep(Duration::from_secs(10)).await;
    let status = engine.status().await.unwrap();
    assert_eq!(status.shards[0].dead, ITEMS as u64 - 2, "the grace is over");
}
