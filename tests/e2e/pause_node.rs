//! SIGSTOP of a node under load, take-over of its shards by a second one, SIGCONT.

use std::sync::Arc;

use forebay_testkit::servers::Kind;

use crate::{
    backend::{Backend, Cluster},
    drain::drain_and_check,
    history::History,
    load::Load,
    scenario::{progress, rounds},
};

async fn shards_are_taken_over(kind: Kind) {
    let cluster = Cluster::new(Backend::Server(kind), 2).await;
    let history = Arc::new(History::new());
    let mut owner = cluster.start(0).await;
    let load = Load::start(&history, vec![owner.channel()], 3);
    for round in 0..rounds(2) {
        let (old, new) = ((round % 2) as usize, ((round + 1) % 2) as usize);
        progress(&history, &format!("load before node {old} is stopped"), 300).await;
        owner.freeze();
        // Ready once it owns the shards.
        let next = cluster.start(new).await;
        // Some workers stay with the old node, which resumes and must refuse calls for shards that it lost.
        load.retarget(vec![owner.channel(), next.channel(), next.channel()]);
        progress(&history, &format!("load after node {new} took over"), 300).await;
        owner.thaw();
        progress(&history, &format!("load while node {old} runs again"), 300).await;
        load.retarget(vec![next.channel()]);
        owner.kill9().await;
        owner = next;
    }
    load.stop().await;
    let seen = drain_and_check(&history, owner.channel()).await;
    assert!(seen.unknown > 0 && seen.redelivered > 0 && seen.lost > 0, "{seen:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_node_is_taken_over_on_mariadb() {
    shards_are_taken_over(Kind::MariaDb).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_node_is_taken_over_on_mysql() {
    shards_are_taken_over(Kind::MySql).await;
}
