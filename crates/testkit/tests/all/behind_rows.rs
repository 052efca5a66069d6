//! An owner meets rows with numbers that it wanted to give out: those of another owner that has replaced it,
//! or its own, behind a fence that somebody restored. No caller is told that its item is wrong.

use std::{sync::Arc, time::Duration};

use forebay_engine::{Engine, EnqueueCall, EnqueueOutcome, NewItem, Settings};
use forebay_testkit::{
    FakeShards, NAMESPACE, dequeue,
    fake::{Life, Process},
    item,
};
use forebay_types::{Reason, Refusal, Seq, ShardId};
use tokio::time::{Instant, sleep};

const SECOND: Duration = Duration::from_secs(1);

async fn put(engine: &Engine) -> Result<EnqueueOutcome, Refusal> {
    let items = vec![NewItem { shard: Some(ShardId(1)), ..item("t") }];
    let call = EnqueueCall { namespace: NAMESPACE.into(), items, ..EnqueueCall::default() };
    engine.enqueue(call).await.unwrap().remove(0)
}

/// Takes all that is there, and acks it.
async fn drain(engine: &Engine) -> usize {
    let items = engine.dequeue(dequeue(&["t"], 100)).await.unwrap();
    let acks = items.iter().map(|item| item.receipt.unwrap()).collect();
    let acked = engine.ack(NAMESPACE.into(), acks, None).await.unwrap();
    assert!(acked.iter().all(Result::is_ok), "{acked:?}");
    items.len()
}

async fn wait_until_owned(engine: &Engine) {
    let began = Instant::now();
    while !engine.sights().await.unwrap()[0].owned {
        assert!(began.elapsed() < 20 * SECOND, "nobody owns the shard");
        sleep(SECOND / 50).await;
    }
}

/// The first node stands still while the second takes its shard over and stores items. It wakes with a call
/// in hand, and connects again before it asks the fence.
#[tokio::test(start_paused = true)]
async fn a_node_that_stood_still_refuses_no_item_for_its_number() {
    let shards = FakeShards::new(1).await;
    let start = |number, address| {
        let process = Process::new(number);
        let clock = Arc::new(shards.clock(Duration::ZERO));
        let engine = shards.start_as(&process, address, Settings::default(), clock);
        (process, Arc::new(engine))
    };
    let mut nodes = [start(1, "a:1"), start(2, "b:1")];
    let db = &shards.dbs[0];
    wait_until_owned(&nodes[0].1).await;
    for _ in 0..12 {
        let [(process, owner), (_, other)] = &nodes;
        put(owner).await.unwrap();
        process.set(Life::CutOff);
        wait_until_owned(other).await;
        for _ in 0..3 {
            put(other).await.unwrap();
        }
        let late = tokio::spawn({
            let owner = owner.clone();
            async move { put(&owner).await }
        });
        sleep(SECOND / 10).await;
        process.set(Life::Running);
        let told = late.await.unwrap().unwrap_err();
        let allowed = [Reason::NotOwner, Reason::ShardUnavailable, Reason::OutcomeUnknown];
        assert!(allowed.contains(&told.reason), "{told:?}");
        nodes.reverse();
    }
    assert!(db.lock().coverage.met_rows > 0, "no batch met a row of the other owner");
    let state = db.lock();
    assert!(state.violations.is_empty(), "{:?}", state.violations);
}

/// Somebody restores the one row of the fence from a dump of a second before.
#[tokio::test(start_paused = true)]
async fn a_fence_that_was_restored_gives_no_number_out_twice() {
    let shards = FakeShards::new(1).await;
    let engine = shards.start(Settings::default()).await;
    put(&engine).await.unwrap();
    let dump = shards.dbs[0].lock().tables.fence;
    for _ in 0..20 {
        put(&engine).await.unwrap();
    }
    shards.dbs[0].lock().tables.fence = dump;
    let mut stored = 0;
    for _ in 0..20 {
        match put(&engine).await {
            Ok(_) => stored += 1,
            Err(told) => {
                let allowed = [Reason::ShardUnavailable, Reason::NotOwner];
                assert!(allowed.contains(&told.reason), "{told:?}");
                sleep(SECOND / 4).await;
            }
        }
    }
    assert!(stored > 10, "{stored} of 20");
    assert_eq!(drain(&engine).await, 21 + stored);
    let status = engine.status().await.unwrap();
    let said = &status.shards[0].losses;
    assert!(said.iter().any(|loss| loss.contains("fence was behind its rows")), "{said:?}");
    let state = shards.dbs[0].lock();
    assert!(state.violations.is_empty(), "{:?}", state.violations);
}

/// Somebody inserts a row by hand, with the number that comes next.
#[tokio::test(start_paused = true)]
async fn a_row_by_hand_costs_no_caller_its_item() {
    let shards = FakeShards::new(1).await;
    let engine = shards.start(Settings::default()).await;
    let first = put(&engine).await.unwrap();
    let next = Seq(first.id.seq.0 + 1);
    {
        let state = &mut *shards.dbs[0].lock();
        let mut row = state.tables.items[&first.id.seq].clone();
        row.key.seq = next;
        state.tables.items.insert(next, row);
    }
    let told = put(&engine).await.unwrap_err();
    assert_eq!(told.reason, Reason::ShardUnavailable, "{told:?}");
    wait_until_owned(&engine).await;
    let stored = put(&engine).await.unwrap();
    assert!(stored.id.seq > next, "{stored:?}");
}

/// A replica that lacks the last commits takes the place of its primary.
#[tokio::test(start_paused = true)]
async fn commits_that_a_fail_over_lost_are_told() {
    let shards = FakeShards::new(1).await;
    let engine = shards.start(Settings::default()).await;
    put(&engine).await.unwrap();
    let replica = shards.dbs[0].lock().tables.clone();
    for _ in 0..5 {
        put(&engine).await.unwrap();
    }
    let committed = shards.dbs[0].lock().tables.fence.batch;
    {
        let state = &mut *shards.dbs[0].lock();
        state.tables = replica;
        state.tables.strict = false;
    }
    let lost = shards.dbs[0].lock().tables.fence.batch;
    let began = Instant::now();
    loop {
        let _ = put(&engine).await;
        let status = engine.status().await.unwrap();
        let said = status.shards[0].losses.join("; ");
        if said.contains(&format!("{committed} of epoch 1")) && said.contains(&format!("{lost} of epoch 1")) {
            break;
        }
        assert!(began.elapsed() < 20 * SECOND, "{said:?}");
        sleep(SECOND / 4).await;
    }
}
