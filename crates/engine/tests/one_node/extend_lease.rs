//! Leases that end, and those that are extended.

use std::time::Duration;

use forebay_engine::*;
use forebay_types::Fate;

use crate::queue::{Queue, item};

#[tokio::test]
async fn leases_end_and_extensions_hold_them() {
    let queue = Queue::start(1).await;
    let mut short = item(0, "x");
    short.lease = Duration::from_secs(1);
    queue.put(vec![short.clone(), short]).await;
    let got = queue.get(2, 0).await;
    let extensions =
        vec![ExtendOf { receipt: got[0].receipt.unwrap(), lease: Some(Duration::from_secs(60)) }];
    queue.engine.extend_lease("ns".into(), extensions, None).await.unwrap()[0].clone().unwrap();
    let again = queue.get(2, 5_000).await;
    assert_eq!((again.len(), again[0].id, again[0].attempt), (1, got[1].id, 2));
    let acks = queue.ack(&got).await;
    assert!(acks[0].is_ok());
    assert_eq!(acks[1].as_ref().unwrap_err().fate, Some(Fate::Leased));
    queue.engine.stop().await;
}
