//! A shard, or a whole server, whose commits take long.

use std::{fs, time::Duration};

use forebay_testkit::{
    proxy::{BATCH_COMMIT, EACH_COMMIT, Proxy, Spring},
    servers::Kind,
};

use tokio::time::{Instant, sleep};

use super::{
    nodes::{metric_becomes, metric_of_all},
    ways::Ways,
};
use crate::{
    history::{Event, Outcome},
    scenario::{kinds, outage},
};

/// So long a commit takes.
const COMMIT: Duration = Duration::from_secs(2);
/// So long a server is slow, at least.
const SLOW: Duration = Duration::from_secs(10);
/// A node is taken for dead within this time.
const SEEN_WITHIN: Duration = Duration::from_secs(20);
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
    let waiting = metric_of_all(&ways.nodes, "forebay_memory_bytes{budget=\"enqueues\"}").await;
    assert!(waiting < WAITING_AT_MOST, "{waiting} bytes wait");
    assert_eq!(ways.take_overs().await, before, "renewals go on, so no shard has changed its owner");
    ways.proxies[0].pass();
    metric_becomes(&ways.nodes, open, |open| open == 0.0).await;
    ways.end().await;
}

/// Not batches alone: renewals take as long, and so does the row that a candidate commits first. It finds
/// that the server is slow, and leaves the shard to its owner.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_at_two_seconds_a_commit_moves_no_shard() {
    for kind in kinds(Kind::MariaDb) {
        let ways = Ways::new(kind, 2, 4, 42).await;
        let before = ways.epochs().await;
        // For the nodes each way leads to a server of its own.
        ways.proxies[..2].iter().for_each(|way| way.trap_any(&EACH_COMMIT, Spring::Hold(COMMIT), u32::MAX));
        let until = Instant::now() + outage(SLOW);
        while Instant::now() < until {
            ways.progress("load while each commit takes two seconds", 50).await;
        }
        assert_eq!(ways.epochs().await, before, "a shard has changed its owner");
        for node in 0..2 {
            let log = fs::read_to_string(ways.cluster.log(node)).unwrap();
            for address in ways.proxies[..2].iter().map(Proxy::address) {
                let said = log.matches(&format!("({address}) does not answer")).count();
                assert!(said <= 1, "node{node} says {said} times that {address} does not answer");
            }
        }
        ways.end().await;
    }
}

/// Batches and renewals are late, and a candidate's row is not: it has no COMMIT of its own. So each of two
/// nodes takes the other for dead, and wants its shards.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_take_each_other_for_dead_take_few_shards() {
    let ways = Ways::new(Kind::MariaDb, 2, 2, 43).await;
    for way in &ways.proxies {
        way.trap(b"COMMIT", Spring::Hold(COMMIT), u32::MAX);
    }
    let log = |node: usize| fs::read_to_string(ways.cluster.log(node)).unwrap();
    let moves =
        || (0..2).map(|node| log(node).matches("its node is dead or has left").count()).sum::<usize>();
    let begun = Instant::now();
    while moves() < 2 {
        assert!(begun.elapsed() < SEEN_WITHIN, "no node takes the other for dead");
        sleep(Duration::from_millis(100)).await;
    }
    let (before, begun) = (moves(), Instant::now());
    sleep(SLOW).await;
    // Twice in three seconds for each of two shards.
    let most = 4 * (begun.elapsed().as_secs() as usize / 3 + 1);
    let moved = moves() - before;
    println!("{moved} moves in {:?}", begun.elapsed());
    assert!(moved <= most, "{moved} moves");
    ways.end().await;
}
