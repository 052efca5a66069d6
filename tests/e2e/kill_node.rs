//! SIGKILL of the node under load.

use std::sync::Arc;

use forebay_testkit::servers::Kind;

use crate::{
    backend::{Backend, Cluster},
    drain::drain_and_check,
    history::History,
    load::Load,
    scenario::{progress, rounds},
};

async fn nothing_is_lost(backend: Backend) {
    let cluster = Cluster::new(backend, 1).await;
    let history = Arc::new(History::new());
    let mut node = cluster.start(0).await;
    let load = Load::start(&history, vec![node.channel()], 1);
    for round in 1..=rounds(10) {
        progress(&history, &format!("load before kill {round}"), 300).await;
        node.kill9().await;
        node = cluster.start(0).await;
    }
    progress(&history, "load after the last kill", 300).await;
    load.stop().await;
    let seen = drain_and_check(&history, node.channel()).await;
    // Otherwise the kills hit an idle node.
    assert!(seen.unknown > 0 && seen.redelivered > 0 && seen.lost > 0, "{seen:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_node_loses_nothing_on_sqlite() {
    nothing_is_lost(Backend::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_node_loses_nothing_on_mariadb() {
    nothing_is_lost(Backend::Server(Kind::MariaDb)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_node_loses_nothing_on_mysql() {
    nothing_is_lost(Backend::Server(Kind::MySql)).await;
}
