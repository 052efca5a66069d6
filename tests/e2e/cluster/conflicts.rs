//! Another program holds rows that batches need, and may need rows that batches hold.

use std::time::Duration;

use forebay_testkit::servers::{Foreign, Kind};
use tokio::{task::JoinHandle, time::Instant};

use super::{
    nodes::{metric_becomes, metric_of_all},
    ways::Ways,
};
use crate::{
    rpc::{Rpc, WorstOutcome},
    scenario::kinds,
};

/// Rows that batches need which store items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rows {
    /// Their first statement inserts the items.
    Items,
    /// One in the middle inserts what the batch changes of the counts.
    Counts,
    /// The last one updates the fence.
    Fence,
}

impl Rows {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Items, Self::Counts, Self::Fence];

    /// The other program holds them until it rolls back.
    pub async fn hold(self, foreign: &mut Foreign) {
        let lock = match self {
            Self::Items => "SELECT COUNT(*) FROM item WHERE seq > 9000000000000000000 FOR UPDATE",
            Self::Counts => "SELECT COUNT(*) FROM count_delta WHERE batch > 9000000000000000000 FOR UPDATE",
            Self::Fence => "SELECT COUNT(*) FROM fence WHERE id = 1 FOR UPDATE",
        };
        // At this isolation, the ends of tables are held too.
        foreign.run("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ; BEGIN").await;
        foreign.run(lock).await;
    }
}

/// Locks the items that a batch has just stored.
const ITEMS_STORED: &str = "SELECT COUNT(*) FROM item FOR UPDATE";
/// Batches wait for a row lock for 3 s, and are sent again. A call may wait for all of that.
const PATIENCE: Duration = Duration::from_secs(30);
/// A transaction that changes more rows is not the one that a deadlock undoes.
const WEIGHT: &str = "CREATE TABLE weight (id INT PRIMARY KEY) ENGINE=InnoDB";

/// The metric that counts how often batches of a shard were sent again.
fn replays(shard: u32) -> String {
    format!("forebay_replays_total{{shard=\"{shard}\"}}")
}

/// Stores items in each shard.
fn store(ways: &Ways) -> Vec<JoinHandle<WorstOutcome>> {
    let call = |shard| {
        let (items, history) = (ways.items(shard, 20), ways.history.clone());
        let channel = ways.nodes[0].channel();
        tokio::spawn(async move { Rpc::within(channel, &history, PATIENCE).enqueue(&items, "").await })
    };
    (1..=ways.proxies.len() as u32).map(call).collect()
}

/// After two seconds callers hear that the outcome is unknown, and those behind them that the shard is not
/// available. Once nothing holds the batches up any more, each shard takes items again.
async fn stored(ways: &Ways, calls: Vec<JoinHandle<WorstOutcome>>) {
    for call in calls {
        call.await.unwrap();
    }
    let begun = Instant::now();
    loop {
        let mut all_done = true;
        for call in store(ways) {
            all_done &= call.await.unwrap() == WorstOutcome::Done;
        }
        if all_done {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{}", ways.history.failure_reasons());
    }
}

/// Batches of each shard wait in vain for a lock (1205).
async fn lock_waits_end(ways: &Ways) {
    let (mut held, mut before) = (Vec::new(), Vec::new());
    for (shard, rows) in (1..).zip(Rows::ALL) {
        before.push(metric_of_all(&ways.nodes, &replays(shard)).await);
        let mut foreign = ways.foreign(shard).await;
        rows.hold(&mut foreign).await;
        held.push(foreign);
    }
    let calls = store(ways);
    for (shard, before) in (1..).zip(before) {
        metric_becomes(&ways.nodes, &replays(shard), |now| now > before).await;
    }
    for mut foreign in held {
        foreign.run("ROLLBACK").await;
    }
    stored(ways, calls).await;
}

/// A batch waits for the other program, which then needs what the batch has stored (1213).
async fn deadlock(ways: &Ways, shard: u32, rows: Rows) {
    // The waits before may have opened breakers.
    metric_becomes(&ways.nodes, "forebay_shard_breaker_open{", |open| open == 0.0).await;
    let mut foreign = ways.foreign(shard).await;
    foreign.run(WEIGHT).await;
    let before = metric_of_all(&ways.nodes, &replays(shard)).await;
    rows.hold(&mut foreign).await;
    let heavy: Vec<String> = (0..5_000).map(|id| format!("({id})")).collect();
    foreign.run(&format!("INSERT INTO weight VALUES {}", heavy.join(", "))).await;
    let calls = store(ways);
    ways.foreign(shard).await.wait_for_row_lock().await;
    foreign.run(ITEMS_STORED).await;
    metric_becomes(&ways.nodes, &replays(shard), |now| now > before).await;
    foreign.run("ROLLBACK").await;
    stored(ways, calls).await;
}

async fn conflicts(kind: Kind, seed: u64) {
    let ways = Ways::new(kind, 2, 3, seed).await;
    let take_overs = ways.take_overs().await;
    lock_waits_end(&ways).await;
    // At its first statement a batch holds nothing that others could need.
    deadlock(&ways, 2, Rows::Counts).await;
    deadlock(&ways, 3, Rows::Fence).await;
    assert_eq!(ways.take_overs().await, take_overs, "no shard has changed its owner");
    ways.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_17_batches_are_replayed_whole_after_conflicts() {
    for kind in kinds(Kind::MySql) {
        conflicts(kind, 95).await;
    }
}
