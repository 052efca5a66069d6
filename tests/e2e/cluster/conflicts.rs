//! Another program holds rows that batches need, and may need rows that batches hold.

use std::time::Duration;

use forebay_testkit::servers::{Foreign, Kind};
use tokio::task::JoinHandle;

use super::{
    nodes::{metric_becomes, metric_of_all},
    ways::Ways,
};
use crate::rpc::{Rpc, WorstOutcome};

/// Where a batch has to wait. All batches below store items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Statement {
    /// INSERT of the items.
    First,
    /// INSERT of what the batch changes of the counts.
    Middle,
    /// UPDATE of the fence.
    Last,
}

impl Statement {
    /// Locks what it needs.
    fn lock(self) -> &'static str {
        match self {
            Self::First => ITEMS_TO_COME,
            Self::Middle => "SELECT COUNT(*) FROM count_delta WHERE batch > 9000000000000000000 FOR UPDATE",
            Self::Last => "SELECT COUNT(*) FROM fence WHERE id = 1 FOR UPDATE",
        }
    }
}

/// Locks the end of the items, and those that were just stored.
const ITEMS_TO_COME: &str = "SELECT COUNT(*) FROM item WHERE seq > 9000000000000000000 FOR UPDATE";
/// Locks the items that a batch has just stored.
const ITEMS_STORED: &str = "SELECT COUNT(*) FROM item FOR UPDATE";
/// Batches wait for a row lock for 3 s, and are sent again. A call may wait for all of that.
const PATIENCE: Duration = Duration::from_secs(30);
/// A transaction that changes more rows is not the one that a deadlock undoes.
const WEIGHT: &str = "CREATE TABLE weight (id INT PRIMARY KEY) ENGINE=InnoDB";

/// The other program holds what a statement needs.
async fn hold(ways: &Ways, shard: u32, statement: Statement) -> Foreign {
    let mut foreign = ways.foreign(shard).await;
    foreign.run("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ; BEGIN").await;
    foreign.run(statement.lock()).await;
    foreign
}

/// The metric that counts how often batches of a shard were sent again.
fn replays(shard: u32) -> String {
    format!("forebay_replays_total{{shard=\"{shard}\"}}")
}

/// Stores items in each shard. All of them must be stored, however often their batches are undone.
fn store(ways: &Ways) -> Vec<JoinHandle<WorstOutcome>> {
    let call = |shard| {
        let (items, history) = (ways.items(shard, 20), ways.history.clone());
        let channel = ways.nodes[0].channel();
        tokio::spawn(async move { Rpc::within(channel, &history, PATIENCE).enqueue(&items, "").await })
    };
    (1..=ways.proxies.len() as u32).map(call).collect()
}

async fn stored(ways: &Ways, calls: Vec<JoinHandle<WorstOutcome>>) {
    for call in calls {
        assert_eq!(call.await.unwrap(), WorstOutcome::Done, "{}", ways.history.failure_reasons());
    }
}

/// Batches of each shard wait in vain for a lock (1205).
async fn lock_waits_end(ways: &Ways, statements: &[(u32, Statement)]) {
    let (mut held, mut before) = (Vec::new(), Vec::new());
    for (shard, statement) in statements {
        before.push(metric_of_all(&ways.nodes, &replays(*shard)).await);
        held.push(hold(ways, *shard, *statement).await);
    }
    let calls = store(ways);
    for ((shard, _), before) in statements.iter().zip(before) {
        metric_becomes(&ways.nodes, &replays(*shard), |now| now > before).await;
    }
    for mut foreign in held {
        foreign.run("ROLLBACK").await;
    }
    stored(ways, calls).await;
}

/// A batch waits for the other program, which then needs what the batch has stored (1213).
async fn deadlock(ways: &Ways, shard: u32, statement: Statement) {
    let mut foreign = ways.foreign(shard).await;
    foreign.run(WEIGHT).await;
    let before = metric_of_all(&ways.nodes, &replays(shard)).await;
    let mut foreign = hold(ways, shard, statement).await;
    let rows: Vec<String> = (0..5_000).map(|id| format!("({id})")).collect();
    foreign.run(&format!("INSERT INTO weight VALUES {}", rows.join(", "))).await;
    let calls = store(ways);
    ways.foreign(shard).await.wait_for_transaction("trx_state = 'LOCK WAIT'").await;
    foreign.run(ITEMS_STORED).await;
    metric_becomes(&ways.nodes, &replays(shard), |now| now > before).await;
    foreign.run("ROLLBACK").await;
    stored(ways, calls).await;
}

async fn conflicts(kind: Kind, seed: u64) {
    let ways = Ways::new(kind, 2, 3, seed).await;
    let take_overs = ways.take_overs().await;
    let statements = [(1, Statement::First), (2, Statement::Middle), (3, Statement::Last)];
    lock_waits_end(&ways, &statements).await;
    // At its first statement a batch holds nothing that others could need.
    for (shard, statement) in &statements[1..] {
        deadlock(&ways, *shard, *statement).await;
    }
    assert_eq!(ways.take_overs().await, take_overs, "no shard has changed its owner");
    ways.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_17_batches_are_replayed_whole_after_conflicts_on_mariadb() {
    conflicts(Kind::MariaDb, 95).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_17_batches_are_replayed_whole_after_conflicts_on_mysql() {
    conflicts(Kind::MySql, 96).await;
}
