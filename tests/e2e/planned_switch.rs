//! A planned switch of the database server to its replica, under load. Connections to the old server stay
//! open.

use std::{sync::Arc, time::Duration};

use forebay_proto::v1::EnqueueItem;
use forebay_testkit::servers::{Kind, ReplicatedPair};
use tokio::time::Instant;
use tonic::transport::Channel;

use crate::{
    backend::{Backend, Cluster},
    drain::drain_and_check,
    history::History,
    load::{Load, topics},
    rpc::{Rpc, WorstOutcome, payload},
    scenario::progress,
};

/// Items are stored again within this time after the switch.
const SERVED_WITHIN: Duration = Duration::from_secs(5);
/// Keys of [`keyed`].
const KEYS: u64 = 9;

async fn nothing_is_lost(kind: Kind) {
    let servers = ReplicatedPair::start(kind).await;
    let urls = [servers.fresh_url().await, servers.fresh_url().await];
    let cluster = Cluster::on(Backend::Server(kind), &urls, 1).await;
    let history = Arc::new(History::new());
    let node = cluster.start(0).await;
    let load = Load::start(&history, vec![node.channel()], 3);
    progress(&history, "load before the switch", 300).await;
    keyed(&history, node.channel(), "before").await;

    servers.switch().await;
    let switched = Instant::now();
    let stored = history.counts().enqueued;
    history.wait("an item stored after the switch", SERVED_WITHIN, |now| now.enqueued > stored + 50).await;
    println!("served again {:?} after the switch", switched.elapsed());

    keyed(&history, node.channel(), "after").await;
    progress(&history, "load after the switch", 300).await;
    load.stop().await;
    drain_and_check(&history, node.channel()).await;
}

/// Stores items with keys, and sends them again: each is stored once.
async fn keyed(history: &History, channel: Channel, when: &str) {
    let number = |key| 1_000_000 + key + if when == "after" { KEYS } else { 0 };
    let item = |key: u64| EnqueueItem {
        topic: topics()[0].clone(),
        payload: payload(number(key)).into(),
        dedupe_key: format!("{when}-{key}"),
        max_attempts: 1_000,
        ..EnqueueItem::default()
    };
    let items: Vec<(u64, EnqueueItem)> = (0..KEYS).map(|key| (number(key), item(key))).collect();
    for _ in 0..3 {
        let done = async {
            while Rpc::new(channel.clone(), history).enqueue(&items, "").await != WorstOutcome::Done {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), done).await.expect("keys are stored");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_planned_switch_of_mariadb_loses_nothing() {
    nothing_is_lost(Kind::MariaDb).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_planned_switch_of_mysql_loses_nothing() {
    nothing_is_lost(Kind::MySql).await;
}
