//! A delivery that nobody received is ended at once, and the item keeps its place: the next consumer has it
//! long before the lease would end.

use std::time::Duration;

use forebay_engine::{DequeueCall, EnqueueCall, Settings};
use forebay_testkit::{FakeShards, NAMESPACE, dequeue, fake::Faults, item};
use tokio::time::{sleep, timeout};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn an_item_leased_for_a_caller_that_went_away_is_ready_at_once() {
    let shards = FakeShards::new(1).await;
    let engine = shards.start(Settings::default()).await;
    let call = EnqueueCall { namespace: NAMESPACE.into(), items: vec![item("t")], ..EnqueueCall::default() };
    let id = engine.enqueue(call).await.unwrap().pop().unwrap().unwrap().id;
    shards.dbs[0].lock().faults = Faults { commit_ms: (500, 500), ..Faults::instant() };
    let gone = timeout(SECOND / 10, engine.dequeue(dequeue(&["t"], 1))).await;
    assert!(gone.is_err(), "the lease is being committed");
    shards.dbs[0].lock().faults = Faults::instant();
    sleep(SECOND).await;
    let taken = timeout(5 * SECOND, engine.dequeue(DequeueCall { wait: 4 * SECOND, ..dequeue(&["t"], 1) }));
    let taken = taken.await.unwrap().unwrap();
    assert_eq!(taken.iter().map(|item| item.id).collect::<Vec<_>>(), [id]);
}
