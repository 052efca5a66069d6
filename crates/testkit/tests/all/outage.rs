//! A database that is away for longer than the leases: acks that wait, or come again, are committed before
//! any lease ends.

use std::time::Duration;

use forebay_engine::{DeliveredItem, Engine, EnqueueCall, NewItem, Settings};
use forebay_testkit::{
    FakeShards, NAMESPACE, dequeue,
    fake::{Db, Faults},
    item,
};
use forebay_types::{Reason, Receipt};
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
    let mut shards = FakeShards::new(1).await;
    shards.dbs[0].lock().faults = Faults { commit_ms: (2, 2), read_ms: (1, 1), ..Faults::instant() };
    (shards.start(Settings::default()).await, shards.dbs.remove(0))
}

/// Items that become dead letters with their first failure, leased.
async fn leased(engine: &Engine) -> Vec<DeliveredItem> {
    let item = NewItem { lease: LEASE, max_attempts: 1, ..item("t") };
    let call =
        EnqueueCall { namespace: NAMESPACE.into(), items: vec![item; ITEMS], ..EnqueueCall::default() };
    assert!(engine.enqueue(call).await.unwrap().iter().all(Result::is_ok));
    let items = engine.dequeue(dequeue(&["t"], ITEMS)).await.unwrap();
    assert_eq!(items.len(), ITEMS);
    items
}

/// Acks one delivery, again and again, until it has an answer other than that the shard is away.
async fn ack(engine: Engine, receipt: Receipt, from: Instant) {
    sleep_until(from).await;
    loop {
        let answer = timeout(PATIENCE, engine.ack(NAMESPACE.into(), vec![receipt], None)).await;
        match answer.map(|results| results.unwrap().remove(0)) {
            Ok(Ok(_)) => return,
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
    assert!(engine.dequeue(dequeue(&["t"], ITEMS)).await.unwrap().is_empty());
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
