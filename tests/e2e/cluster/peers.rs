//! Nodes that do not reach each other, while all of them reach the shards.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bytes::Bytes;
use forebay_testkit::{
    proxy::{Proxy, Ways as Directions},
    servers::Kind,
};
use tokio::time::Instant;

use super::{
    nodes::{Nodes, channels, metric_of_all, owned_by},
    ways::pinned,
};
use crate::{
    history::{Event, History, Outcome},
    load::Load,
    node::Node,
    rpc::{Rpc, WorstOutcome},
    scenario::progress,
    wire::http2,
};

/// So long nodes are cut off from each other in each way.
const CUT_OFF: Duration = Duration::from_secs(4);
/// A node is reached again within this time.
const REACHED_WITHIN: Duration = Duration::from_secs(20);

/// Which node owns each shard. No two of them say that they own one.
async fn owners(nodes: &[Node]) -> BTreeMap<u64, usize> {
    let mut owners = BTreeMap::new();
    for (number, node) in nodes.iter().enumerate() {
        for shard in owned_by(node).await {
            let other = owners.insert(shard, number);
            assert_eq!(other, None, "two nodes own shard {shard}");
        }
    }
    owners
}

/// Calls each node for each shard of another one. Says how many of the calls were done.
async fn passed_on(nodes: &[Node], history: &History, first: u64) -> u64 {
    let (mut number, mut done) = (first, 0);
    for (shard, owner) in owners(nodes).await {
        for (_, node) in nodes.iter().enumerate().filter(|(number, _)| *number != owner) {
            let item = [pinned(number, u32::try_from(shard).unwrap())];
            let worst = Rpc::new(node.channel(), history).enqueue(&item, "").await;
            done += u64::from(worst == WorstOutcome::Done);
            number += 1;
        }
    }
    done
}

/// Every answer to these items says that the shard is unavailable or that the outcome is unknown.
fn refused_rightly(history: &History, items: std::ops::Range<u64>) {
    history.inspect(|events| {
        for event in events {
            let Event::Enqueue { item, outcome, .. } = event else { continue };
            match outcome {
                _ if !items.contains(item) => {}
                Outcome::Failed(why) => assert!(why.starts_with("Unavailable"), "{why}"),
                Outcome::Unknown(why) => {
                    let known = why.contains("OUTCOME_UNKNOWN") || why.starts_with("DeadlineExceeded");
                    assert!(known || why.starts_with("Cancelled : Timeout"), "{why}");
                }
                Outcome::Ok(id) => panic!("item {item} was stored as {id}"),
            }
        }
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_12_nodes_cut_off_from_each_other_serve_their_own_shards() {
    let cluster = Nodes::new(Kind::MariaDb, 3, 3).await;
    let mut ways = Vec::new();
    for node in 0..3 {
        let proxy = Proxy::to(&cluster.peer_address(node)).await;
        cluster.advertise(node, &proxy.address());
        ways.push(proxy);
    }
    let nodes = cluster.start_all().await;
    let history = Arc::new(History::new());
    let load = Load::start(&history, channels(&nodes), 71);
    progress(&history, "load before the cut", 300).await;
    assert_eq!(passed_on(&nodes, &history, 2_000_000).await, 6, "{}", history.failure_reasons());
    let before = owners(&nodes).await;
    let take_overs = metric_of_all(&nodes, "forebay_take_overs_total{").await;

    for (first, silent) in [(3_000_000, false), (4_000_000, true)] {
        for way in &ways {
            if silent {
                way.stall(Directions::Both);
            } else {
                way.refuse();
                way.reset();
            }
        }
        let until = Instant::now() + CUT_OFF;
        let done = passed_on(&nodes, &history, first).await;
        assert_eq!(done, 0, "nothing is passed on");
        refused_rightly(&history, first..first + 6);
        while Instant::now() < until {
            progress(&history, "load while nodes are cut off", 50).await;
        }
        assert_eq!(owners(&nodes).await, before, "nothing moves");
        ways.iter().for_each(Proxy::pass);
        ways.iter().for_each(Proxy::reset);
        let (healed, mut number) = (Instant::now(), first + 100);
        while passed_on(&nodes, &history, number).await < 6 {
            assert!(healed.elapsed() < REACHED_WITHIN, "{}", history.failure_reasons());
            number += 100;
        }
        println!("calls are passed on again {:?} after the cut", healed.elapsed());
    }
    assert_eq!(metric_of_all(&nodes, "forebay_take_overs_total{").await, take_overs, "no split brain");
    progress(&history, "load after the cut", 200).await;
    load.stop().await;
    cluster.drain_and_check(&history, nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_web_page_can_make_no_call_at_the_port_for_nodes() {
    let cluster = Nodes::new(Kind::MariaDb, 1, 1).await;
    let nodes = cluster.start_all().await;
    // The last one passes, and has no secret.
    for (method, headers, status) in http2::HEADS {
        let mut connection = http2::Connection::open(&cluster.peer_address(0), 1 << 16).await;
        let answer = connection.ask(method, "QueueService/Enqueue", headers, Bytes::new()).await;
        assert_eq!(answer.status().as_u16(), status, "{method} {headers:?}");
    }
    drop(nodes);
}
