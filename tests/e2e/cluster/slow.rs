//! A shard whose commits take long.

use std::time::Duration;

use forebay_testkit::{
    proxy::{BATCH_COMMIT, Spring},
    servers::Kind,
};

use super::{
    nodes::{metric_becomes, metric_of_all},
    ways::Ways,
};
use crate::history::{Event, Outcome};

/// So long a commit takes.
const COMMIT: Duration = Duration::from_secs(2);
/// All enqueues of a node that wait take no more than this. The load has 60 items of 300 bytes on their way.
const WAITING_AT_MOST: f64 = (1 << 20) as f64;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_13_a_shard_with_slow_commits_leaves_new_items_to_others() {
    let ways = Ways::new(Kind::MariaDb, 2, 3, 41).await;
    let before = ways.take_overs().await;
    let open = "forebay_shard_breaker_open{shard=\"1\"}";
    // Renewals and looks are other transactions: they are not held.
    ways.proxies[0].trap(BATCH_COMMIT, Spring::Hold(COMMIT), u32::MAX);
    metric_becomes(&ways.nodes, open, |open| open > 0.0).await;
    let from = ways.history.now();
    ways.progress("load while a shard is slow", 600).await;
    let (slow, others) = ways.history.inspect(|events| {
        let stored = events.iter().filter_map(|event| match event {
            Event::Enqueue { call, outcome: Outcome::Ok(id), .. } if call.began > from => Some(id),
            _ => None,
        });
        let (slow, others): (Vec<_>, Vec<_>) = stored.partition(|id| id.starts_with("1-"));
        (slow.len(), others.len())
    });
    println!("while shard 1 was slow it stored {slow} items, and the others {others}");
    assert!(others > 10 * slow, "the slow shard stored {slow} items, the others {others}");
    let waiting = metric_of_all(&ways.nodes, "forebay_admitted_bytes").await;
    assert!(waiting < WAITING_AT_MOST, "{waiting} bytes wait");
    assert_eq!(ways.take_overs().await, before, "renewals go on, so no shard has changed its owner");
    ways.proxies[0].pass();
    metric_becomes(&ways.nodes, open, |open| open == 0.0).await;
    ways.end().await;
}
