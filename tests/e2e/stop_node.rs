//! SIGTERM under load.

use std::{sync::Arc, time::Duration};

use forebay_testkit::servers::Kind;

use crate::{
    backend::{Backend, Cluster},
    drain::drain_and_check,
    history::History,
    load::Load,
    scenario::progress,
};

const EXIT_WITHIN: Duration = Duration::from_secs(25);

async fn drains(backend: Backend) {
    let cluster = Cluster::new(backend, 1).await;
    let history = Arc::new(History::new());
    let node = cluster.start(0).await;
    let load = Load::start(&history, vec![node.channel()], 4);
    progress(&history, "load before the node is told to stop", 1_000).await;
    let (status, took) = node.terminate().await;
    assert_eq!(status.code(), Some(0), "{status}");
    assert!(took < EXIT_WITHIN, "{took:?}");
    load.stop().await;

    let node = cluster.start(0).await;
    let seen = drain_and_check(&history, node.channel()).await;
    assert!(seen.enqueued >= 1_000, "{seen:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_told_to_stop_drains_on_sqlite() {
    drains(Backend::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_told_to_stop_drains_on_mariadb() {
    drains(Backend::Server(Kind::MariaDb)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_told_to_stop_drains_on_mysql() {
    drains(Backend::Server(Kind::MySql)).await;
}
