//! Ack: the item is gone.

use forebay_types::Fate;

use crate::queue::{Queue, item};

#[tokio::test]
async fn an_acked_item_is_gone_also_after_a_restart() {
    for shards in [1, 2, 16] {
        let queue = Queue::start(shards).await;
        queue.put((0..5).map(|n| item(n, "x")).collect()).await;
        let items = queue.get(10, 0).await;
        assert_eq!(items.len(), 5);
        assert!(queue.ack(&items).await.iter().all(Result::is_ok));
        let again = queue.ack(&items).await;
        assert!(again.iter().all(|result| result.as_ref().unwrap_err().fate == Some(Fate::Gone)));
        let queue = queue.restart().await;
        assert!(queue.get(10, 0).await.is_empty());
        queue.engine.stop().await;
    }
}
