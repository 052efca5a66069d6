//! A node whose batches get no answer, although the database server answers everything else.

use std::time::Duration;

use forebay_testkit::{
    proxy::{BATCH_COMMIT, Spring},
    servers::Kind,
};
use tokio::time::{Instant, sleep};

use super::{
    nodes::{metric_becomes, owned_by},
    ways::Ways,
};

/// A shard that was given up has another owner within this time.
const TAKEN_WITHIN: Duration = Duration::from_secs(5);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shard_of_which_nothing_is_committed_gets_another_owner() {
    let ways = Ways::new(Kind::MariaDb, 2, 3, 43).await;
    let owner = usize::from(!owned_by(&ways.nodes[0]).await.contains(&1));
    // Renewals and looks are other transactions: they pass.
    ways.proxies[0].trap(BATCH_COMMIT, Spring::SilentBefore, u32::MAX);
    metric_becomes(&ways.nodes, "forebay_shards_given_up_total", |count| count > 0.0).await;
    let given_up = Instant::now();
    ways.proxies[0].pass();
    while !owned_by(&ways.nodes[1 - owner]).await.contains(&1) {
        assert!(given_up.elapsed() < TAKEN_WITHIN, "nobody has taken the shard");
        sleep(Duration::from_millis(20)).await;
    }
    println!("taken {:.1?} after it was given up", given_up.elapsed());
    ways.end().await;
}
