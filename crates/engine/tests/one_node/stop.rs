//! An orderly stop.

use forebay_engine::EnqueueCall;
use forebay_types::Reason;

use crate::queue::{Queue, item};

#[tokio::test]
async fn a_node_that_stops_takes_nothing_new() {
    let queue = Queue::start(2).await;
    queue.engine.stop().await;
    let call = EnqueueCall { namespace: "ns".into(), items: vec![item(0, "late")], ..EnqueueCall::default() };
    assert_eq!(queue.engine.enqueue(call).await.unwrap_err().reason, Reason::NodeDraining);
}

#[tokio::test]
async fn a_poll_that_waits_is_answered_when_the_node_stops() {
    let queue = Queue::start(1).await;
    let (items, ()) = tokio::join!(queue.get(1, 60_000), async {
        tokio::task::yield_now().await;
        queue.engine.stop().await;
    });
    assert!(items.is_empty());
}
