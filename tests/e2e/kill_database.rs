//! SIGKILL and restart of the database server under load.

use std::sync::Arc;

use forebay_testkit::servers::{Kind, Private};

use crate::{
    backend::{Backend, Cluster},
    drain::drain_and_check,
    history::History,
    load::Load,
    scenario::{progress, rounds},
};

/// Most kills until at least one call notices.
const ROUNDS_MAX: u32 = 15;

async fn nothing_is_lost(kind: Kind) {
    let mut server = Private::start(kind, &[]).await;
    let urls = [server.fresh_url().await, server.fresh_url().await];
    let cluster = Cluster::on(Backend::Server(kind), &urls, 1).await;
    let history = Arc::new(History::new());
    let node = cluster.start(0).await;
    let load = Load::start(&history, vec![node.channel()], 2);
    for round in 1..=rounds(3).max(ROUNDS_MAX) {
        progress(&history, &format!("load before kill {round} of the server"), 300).await;
        server.kill9().await;
        server.restart().await;
        // A server that is back at once may have cost no call anything.
        let seen = history.counts();
        if round >= rounds(3) && seen.unknown + seen.failed > 0 {
            break;
        }
    }
    progress(&history, "load after the last restart of the server", 300).await;
    load.stop().await;
    let seen = drain_and_check(&history, node.channel()).await;
    assert!(seen.redelivered > 0 && seen.lost > 0, "{seen:?}");
    // Otherwise the kills hit an idle server.
    assert!(seen.unknown + seen.failed > 0, "{seen:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_mariadb_loses_nothing() {
    nothing_is_lost(Kind::MariaDb).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_mysql_loses_nothing() {
    nothing_is_lost(Kind::MySql).await;
}
