//! A database server, the catalog, or one node's way to its shards, is away for a while.

use std::{sync::Arc, time::Duration};

use forebay_testkit::{
    proxy::{Proxy, Ways as Directions},
    servers::{self, Kind, Private},
};
use tokio::time::Instant;

use super::nodes::{Nodes, channels, metric, metric_becomes, metric_of_all};
use crate::{
    backend::{Backend, Cluster},
    drain::drain_and_check,
    history::{Event, History, Outcome},
    load::Load,
    scenario::{outage, progress},
};

/// So long a server is stopped, at least.
const STOPPED: Duration = Duration::from_secs(15);
/// So long a catalog is silent, at least.
const SILENT: Duration = Duration::from_secs(5);

/// Row 26 of the faults, with a catalog whose connections stay open and bring no answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_26_a_silent_catalog_stops_nobody() {
    let (cluster, way) = Nodes::with_way_to_catalog(Kind::MariaDb, 2, 3).await;
    let nodes = cluster.start_all().await;
    let history = Arc::new(History::new());
    let load = Load::start(&history, channels(&nodes), 81);
    progress(&history, "load with the catalog", 300).await;
    let take_overs = metric_of_all(&nodes, "forebay_take_overs_total{").await;
    way.stall(Directions::Both);
    metric_becomes(&nodes, "forebay_catalog_answers", |answering| answering == 0.0).await;
    let until = Instant::now() + outage(SILENT);
    while Instant::now() < until {
        progress(&history, "load while the catalog is silent", 100).await;
    }
    assert_eq!(metric_of_all(&nodes, "forebay_take_overs_total{").await, take_overs, "nothing moves");
    way.pass();
    metric_becomes(&nodes, "forebay_catalog_answers", |answering| answering == 2.0).await;
    progress(&history, "load with the catalog again", 200).await;
    load.stop().await;
    cluster.drain_and_check(&history, nodes).await;
}

/// A server that is shut down in an orderly way takes its shards with it, and no other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_two_servers_is_stopped_for_a_while() {
    let stays = servers::shared(Kind::MariaDb).await;
    let mut stops = Private::start(Kind::MariaDb, &[]).await;
    let mut urls = Vec::new();
    for _ in 0..2 {
        urls.extend([stays.fresh_url().await, stops.fresh_url().await]);
    }
    let cluster = Nodes::on(&stays.fresh_url().await, &urls, 2).await;
    let nodes = cluster.start_all().await;
    let history = Arc::new(History::new());
    let load = Load::start(&history, channels(&nodes), 82);
    progress(&history, "load on two servers", 300).await;
    let stayed = async || {
        let one = metric_of_all(&nodes, "forebay_take_overs_total{shard=\"1\"}").await;
        one + metric_of_all(&nodes, "forebay_take_overs_total{shard=\"3\"}").await
    };
    let before = stayed().await;
    stops.stop().await;
    let (until, from) = (Instant::now() + outage(STOPPED), history.now());
    while Instant::now() < until {
        progress(&history, "load on one server", 100).await;
    }
    assert_eq!(stayed().await, before, "no shard of the other server has moved");
    stops.restart().await;
    let restarted = history.now();
    cluster.all_owned(&nodes.iter().collect::<Vec<_>>()).await;
    progress(&history, "load on two servers again", 300).await;
    load.stop().await;
    let gone = history.inspect(|events| {
        let of_stopped = |event: &&Event| match event {
            Event::Enqueue { call, outcome: Outcome::Ok(id), .. } => {
                call.began > from && call.ended < restarted && (id.starts_with("2-") || id.starts_with("4-"))
            }
            _ => false,
        };
        events.iter().filter(of_stopped).count()
    });
    assert_eq!(gone, 0, "nothing is stored at a server that is stopped");
    cluster.drain_and_check(&history, nodes).await;
}

/// Two nodes that do not know each other, as each has a catalog of its own with the same shards, lose
/// nothing. One loses its way to the shards. The other one, which has its own, takes them over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_alone_loses_its_way_to_the_shards_is_replaced() {
    let server = servers::shared(Kind::MariaDb).await;
    let urls = [server.fresh_url().await, server.fresh_url().await];
    let way = Proxy::of_url(&urls[0]).await;
    let cluster = Cluster::on(Backend::Server(Kind::MariaDb), &urls, 2).await;
    for (node, urls) in [(0, [way.through(&urls[0]), way.through(&urls[1])]), (1, urls.clone())] {
        cluster.write_config(node, &urls);
        cluster.set_catalog(node, &server.fresh_url().await).await;
    }
    let history = Arc::new(History::new());
    let first = cluster.start(0).await;
    let load = Load::start(&history, vec![first.channel()], 83);
    progress(&history, "load on the first node", 300).await;
    let second = cluster.start_standby(1).await;
    way.stall(Directions::Both);
    second.wait_for_readyz(200).await;
    load.retarget(vec![first.channel(), second.channel(), second.channel()]);
    progress(&history, "load on the second node", 300).await;
    assert_eq!(metric(&second, "forebay_shard_owned").await, 2.0);
    way.pass();
    way.reset();
    progress(&history, "load while the first node has its way again", 300).await;
    load.retarget(vec![second.channel()]);
    load.stop().await;
    assert_eq!(metric(&second, "forebay_shard_owned").await, 2.0);
    drain_and_check(&history, second.channel()).await;
}
