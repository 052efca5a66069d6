//! The state that another node finds in the shards of one that stopped.

use crate::queue::{Queue, item};

#[tokio::test]
async fn a_restart_keeps_items_leases_and_order() {
    let queue = Queue::start(2).await;
    queue.put((0..500).map(|n| item(n % 5, &n.to_string())).collect()).await;
    let leased = queue.get(100, 0).await;
    assert_eq!(leased.len(), 100);
    let queue = queue.restart().await;
    let mut rest = Vec::new();
    while rest.len() < 400 {
        let items = queue.get(1_000, 1_000).await;
        assert!(!items.is_empty(), "{} of 400", rest.len());
        rest.extend(items);
    }
    let order: Vec<(i32, i64)> =
        rest.iter().map(|item| (item.priority, item.enqueued_at.as_micros())).collect();
    assert!(order.is_sorted_by_key(|(priority, _)| *priority));
    assert!(queue.ack(&leased).await.iter().all(Result::is_ok), "leases survive their node");
    assert!(queue.ack(&rest).await.iter().all(Result::is_ok));
    queue.engine.stop().await;
}
