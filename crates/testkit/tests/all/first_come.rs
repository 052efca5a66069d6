//! Polls of one topic are served in the order in which they came, whenever an item becomes ready.

use std::time::Duration;

use forebay_engine::{DeliveredItem, DequeueCall, Engine, EnqueueCall, NackAction, NackOf, Settings};
use forebay_testkit::{FakeShards, NAMESPACE, dequeue, fake::Faults, item};
use tokio::time::sleep;

const MILLISECOND: Duration = Duration::from_millis(1);

async fn poll(engine: Engine, wait: Duration) -> Vec<DeliveredItem> {
    engine.dequeue(DequeueCall { wait, ..dequeue(&["t"], 1) }).await.unwrap()
}

/// The item becomes ready with a commit of 5 ms. A second poll comes before, with and after that.
#[tokio::test(start_paused = true)]
async fn a_poll_that_comes_as_an_item_becomes_ready_is_behind_those_that_wait() {
    let shards = FakeShards::new(1).await;
    let engine = shards.start(Settings::default()).await;
    let call = EnqueueCall { namespace: NAMESPACE.into(), items: vec![item("t")], ..EnqueueCall::default() };
    assert!(engine.enqueue(call).await.unwrap()[0].is_ok());
    let mut held = poll(engine.clone(), Duration::ZERO).await;
    shards.dbs[0].lock().faults = Faults { commit_ms: (5, 5), ..Faults::instant() };
    for later in 0..12 {
        let first = tokio::spawn(poll(engine.clone(), 1_000 * MILLISECOND));
        sleep(20 * MILLISECOND).await;
        let nack = NackOf {
            receipt: held[0].receipt.unwrap(),
            action: NackAction::Release(Duration::ZERO),
            metadata: None,
            reason: String::new(),
        };
        let second = async {
            sleep(later * MILLISECOND).await;
            poll(engine.clone(), 100 * MILLISECOND).await
        };
        let (second, nacked) = tokio::join!(second, engine.nack(NAMESPACE.into(), vec![nack], None));
        assert!(nacked.unwrap()[0].is_ok());
        assert!(second.is_empty(), "a poll that came {later} ms after the nack was served first");
        held = first.await.unwrap();
        assert_eq!(held.len(), 1);
    }
}
