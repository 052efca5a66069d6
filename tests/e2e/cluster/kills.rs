//! An operator kills statements and connections at the server.

use forebay_testkit::servers::{Kill, Kind, kill};

use super::ways::Ways;
use crate::scenario::kinds;

/// How many statements are killed, and how many connections.
const KILLS: usize = 40;

async fn kills(kind: Kind, what: Kill, seed: u64) {
    let ways = Ways::new(kind, 2, 2, seed).await;
    kill(&ways.server, &ways.databases, what, KILLS).await;
    ways.progress("load after the kills", 200).await;
    ways.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_16_killed_statements_are_replayed() {
    for kind in kinds(Kind::MySql) {
        kills(kind, Kill::Query, 51).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_16_killed_connections_are_opened_again() {
    for kind in kinds(Kind::MariaDb) {
        kills(kind, Kill::Connection, 53).await;
    }
}
