//! Wall clocks that jump: those of servers, and those of nodes.

use std::time::Duration;

use forebay_testkit::servers::{self, Kind, Place, Private, WallClock};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::{
    nodes::{metric, metric_becomes},
    ways::Ways,
};
use crate::{load::LEASE, node::Node, scenario::kinds};

/// So far a clock jumps, in seconds.
const HOUR: i64 = 3_600;
/// Shards of the server whose clock jumps.
const SHARDS: usize = 4;
/// How far the clock of a server is ahead, as a node sees it.
const OFFSET: &str = "forebay_clock_offset_seconds{";
/// A jump is seen within this time.
const SEEN_WITHIN: Duration = Duration::from_secs(20);
/// A clock that is off by less is none that has jumped, in seconds.
const NEAR: f64 = 60.0;

/// A place whose clock a test sets.
fn behind(clock: &WallClock) -> Place {
    Place { before: clock.before(), ..Place::default() }
}

/// Clients go on for longer than leases of items and of shards last.
async fn go_on(ways: &Ways, what: &str) {
    let until = Instant::now() + LEASE + LEASE / 2;
    while Instant::now() < until {
        ways.progress(what, 20).await;
    }
}

/// Each node has several shards of the server, whose clock is a vote for each of them here.
async fn clock_of_the_server(kind: Kind, seed: u64) {
    let clock = WallClock::new().unwrap();
    let server = Private::start_at(kind, &[], behind(&clock)).await;
    let mut urls = Vec::new();
    for _ in 0..SHARDS {
        urls.push(server.fresh_url().await);
    }
    let catalog = server.fresh_url().await;
    let mut ways = Ways::at(vec![Place::default(); 2], &server.url(), &catalog, &urls, seed).await;
    // Each shard has a way to it that counts as a server of its own. The shard's owner sees the clock.
    let is_seen = |sum: f64, off: i64| (sum / SHARDS as f64 - off as f64).abs() < NEAR;
    clock.set(HOUR).unwrap();
    metric_becomes(&ways.nodes, OFFSET, |sum| is_seen(sum, HOUR)).await;
    metric_becomes(&ways.nodes, OFFSET, |sum| is_seen(sum, 0)).await;
    go_on(&ways, "load after the nodes have followed the server's clock").await;
    clock.set(-HOUR).unwrap();
    metric_becomes(&ways.nodes, OFFSET, |sum| is_seen(sum, -2 * HOUR)).await;
    go_on(&ways, "load while the server's clock is behind").await;
    // A node without the time of the one before it takes the shards, with their leases.
    ways.nodes.remove(0).kill9().await;
    ways.cluster.all_owned(&[&ways.nodes[0]]).await;
    clock.set(0).unwrap();
    ways.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_20_a_server_whose_clock_jumps_while_leases_are_out_loses_nothing() {
    for kind in kinds(Kind::MariaDb) {
        clock_of_the_server(kind, 97).await;
    }
}

/// Waits until a node says that it was started so long ago, by its own clock.
async fn uptime_becomes(node: &Node, wanted: impl Fn(i64) -> bool) {
    let begun = Instant::now();
    loop {
        let (_, body) = node.fetch("/status.json").await;
        let status: Value = serde_json::from_str(&body).unwrap();
        let uptime = status["uptime_seconds"].as_i64().expect("an uptime");
        if wanted(uptime) {
            return;
        }
        assert!(begun.elapsed() < SEEN_WITHIN, "the node has been up for {uptime} s");
        sleep(Duration::from_millis(50)).await;
    }
}

/// Each node has a shard of one server. Beside that one its own clock has no say, ahead or behind.
async fn clocks_of_nodes(kind: Kind, seed: u64) {
    let clocks = [WallClock::new().unwrap(), WallClock::new().unwrap()];
    let places = clocks.iter().map(behind).collect();
    let server = servers::shared(kind).await;
    let mut urls = Vec::new();
    for _ in 0..2 {
        urls.push(server.fresh_url().await);
    }
    let ways = Ways::at(places, server.url(), &server.fresh_url().await, &urls, seed).await;
    let before = ways.epochs().await;
    for (number, ahead) in [HOUR, -HOUR].into_iter().enumerate() {
        clocks[number].set(ahead).unwrap();
        uptime_becomes(&ways.nodes[number], |up| if ahead > 0 { up > HOUR / 2 } else { up == 0 }).await;
    }
    go_on(&ways, "load while clocks of nodes are off").await;
    for node in &ways.nodes {
        assert_eq!(metric(node, "forebay_database_up{").await, 2.0, "it tells of each shard's way");
        let offset = metric(node, OFFSET).await;
        assert!(offset.abs() < 0.1, "the time of a node is off by {offset} s");
    }
    assert_eq!(ways.epochs().await, before, "a shard has changed its owner");
    ways.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_21_nodes_whose_clocks_jump_keep_their_shards() {
    for kind in kinds(Kind::MariaDb) {
        clocks_of_nodes(kind, 98).await;
    }
}
