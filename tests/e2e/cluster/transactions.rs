//! An owner loses a shard while a transaction of its writer is open at the server.

use std::{collections::BTreeSet, time::Duration};

use forebay_proto::v1::EnqueueItem;
use forebay_testkit::{
    proxy::{BATCH_COMMIT, RENEWAL, Spring},
    servers::{Foreign, Kind},
};
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};

use super::ways::{Ways, epoch};
use crate::{
    history::Event,
    rpc::{Rpc, WorstOutcome, payload},
    scenario::kinds,
};

/// Items of one call: more bytes than the store sends as text, so their INSERT is a round trip of its own.
const ITEMS: usize = 120;
/// The silent owner's shard is taken over within this time, which is less than any time-out of a session.
const TAKEN_WITHIN: Duration = Duration::from_secs(10);
/// A batch is sent within this time.
const SPRUNG_WITHIN: Duration = Duration::from_secs(20);
/// A call may wait for all of that.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often a shard's epoch is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Items, with their numbers.
type Items = Vec<(u64, EnqueueItem)>;

/// Sends these items in one call, through this node.
fn send(ways: &Ways, node: usize, items: &Items) -> JoinHandle<WorstOutcome> {
    let (channel, history, items) = (ways.nodes[node].channel(), ways.history.clone(), items.clone());
    tokio::spawn(async move { Rpc::within(channel, &history, PATIENCE).enqueue(&items, "").await })
}

/// Waits until a shard has another epoch.
async fn taken_over(foreign: &mut Foreign, before: i64) {
    let begun = Instant::now();
    while epoch(foreign).await == before {
        assert!(begun.elapsed() < TAKEN_WITHIN, "nobody has taken the shard over");
        sleep(LOOK_EVERY).await;
    }
    println!("taken over after {:?}", begun.elapsed());
}

/// Heals, drains and checks. Returns which of the items were delivered.
async fn delivered(ways: Ways, items: &Items) -> BTreeSet<u64> {
    let (history, numbers) = (ways.history.clone(), BTreeSet::from_iter(items.iter().map(|(item, _)| *item)));
    ways.end().await;
    history.inspect(|events| {
        let delivered = events.iter().filter_map(|event| match event {
            Event::Delivery { item, .. } => *item,
            _ => None,
        });
        delivered.filter(|item| numbers.contains(item)).collect()
    })
}

/// Stops the owner where its batch has stored its items and has not been committed. The server would wait for
/// it for longer than other nodes do.
async fn stopped_with_an_open_transaction(kind: Kind, seed: u64) {
    let ways = Ways::new(kind, 3, 3, seed).await;
    let (mut shard, owner) = (ways.foreign(1).await, ways.owner(1).await);
    let (items, before) = (ways.items(1, ITEMS), epoch(&mut shard).await);
    // If they come in two batches, this one is in the larger part. All statements before COMMIT are done.
    let one = payload(items[ITEMS / 2].0);
    ways.proxies[0].trap_after(&one, BATCH_COMMIT, Spring::SilentBefore);
    let call = send(&ways, owner, &items);
    timeout(SPRUNG_WITHIN, ways.proxies[0].wait_sprung(1)).await.expect("the items are stored");
    shard.wait_for_changes().await;
    ways.nodes[owner].freeze();
    taken_over(&mut shard, before).await;
    let hex: String = one.iter().map(|byte| format!("{byte:02X}")).collect();
    let stored = shard.number(&format!("SELECT COUNT(*) FROM item WHERE payload = X'{hex}'")).await;
    assert_eq!(stored, 0, "the old transaction was rolled back");
    assert!(!call.is_finished(), "the owner stands still");
    ways.nodes[owner].thaw();
    // The end of its connection at the server did not get through to it.
    ways.proxies[0].reset();
    // Its COMMIT was never sent, so it may have the new owner store the items, all of them.
    let worst = call.await.unwrap();
    let delivered = delivered(ways, &items).await.len();
    assert!(worst != WorstOutcome::Done || delivered == ITEMS, "{delivered} of {ITEMS} are there");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_06_an_owner_stopped_with_an_open_transaction_is_replaced() {
    for kind in kinds(Kind::MySql) {
        stopped_with_an_open_transaction(kind, 91).await;
    }
}

/// A batch that stores a certain item waits between its fence statement and COMMIT, which are one round trip.
struct Gate {
    /// Holds the lock that the batch waits for.
    keeper: Foreign,
}

impl Gate {
    /// A batch with one of these items will wait.
    async fn closed(mut keeper: Foreign, items: &Items) -> Self {
        let number = format!("{:016X}", items[0].0);
        keeper.run(&format!("DO GET_LOCK('gate {number}', 0)")).await;
        // A take-over is not held up. The wait also ends when the client is gone: then the batch fails.
        let trigger = format!(
            "CREATE TRIGGER gate AFTER UPDATE ON fence FOR EACH ROW \
             IF NEW.epoch = OLD.epoch \
             AND EXISTS (SELECT 1 FROM item WHERE LEFT(payload, 8) = X'{number}') THEN \
             IF GET_LOCK('gate {number}', 60) THEN DO RELEASE_LOCK('gate {number}'); \
             ELSE SIGNAL SQLSTATE '45000'; END IF; END IF"
        );
        keeper.run(&trigger).await;
        Self { keeper }
    }

    /// The batch goes on.
    async fn open(mut self) {
        self.keeper.run("DO RELEASE_ALL_LOCKS(); DROP TRIGGER gate").await;
    }
}

/// Two owners lose their way to renew while a batch has passed the fence. One batch goes on in time, and the
/// other one waits until another node takes the shard.
async fn taken_over_before_commit(kind: Kind, seed: u64) {
    let ways = Ways::new(kind, 3, 2, seed).await;
    let [mut lost, mut kept] = [ways.foreign(1).await, ways.foreign(2).await];
    let [lost_items, kept_items] = [ways.items(1, 20), ways.items(2, 20)];
    let shut = Gate::closed(ways.foreign(1).await, &lost_items).await;
    let soon = Gate::closed(ways.foreign(2).await, &kept_items).await;
    let before = epoch(&mut lost).await;
    let lost_call = send(&ways, ways.owner(1).await, &lost_items);
    let kept_call = send(&ways, ways.owner(2).await, &kept_items);
    lost.wait_for_named_lock().await;
    kept.wait_for_named_lock().await;
    ways.proxies.iter().for_each(|proxy| proxy.trap(RENEWAL, Spring::SilentBefore, 1));
    soon.open().await;
    taken_over(&mut lost, before).await;
    shut.open().await;
    let (lost_call, kept_call) = (lost_call.await.unwrap(), kept_call.await.unwrap());
    assert_eq!(lost_call, WorstOutcome::Unknown, "the outcome of a COMMIT that was sent: {lost_call:?}");
    let delivered = delivered(ways, &[lost_items.clone(), kept_items.clone()].concat()).await;
    let part = |items: &Items| items.iter().filter(|(item, _)| delivered.contains(item)).count();
    assert_eq!(part(&lost_items), 0, "a part of the batch that was undone is there");
    assert_eq!(part(&kept_items), kept_items.len(), "{kept_call:?}: a part of the other batch is missing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_07_a_take_over_between_fence_and_commit_undoes_the_whole_batch() {
    for kind in kinds(Kind::MariaDb) {
        taken_over_before_commit(kind, 92).await;
    }
}
