//! The cluster of `docker-compose.yml`: it grows and loses a node under load.
//!
//! `cargo xtask compose` runs this, and nothing else does: it needs Docker.

mod stack;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use forebay_proto::v1::{ListShardsRequest, admin_service_client::AdminServiceClient};
use tonic::transport::Channel;

use crate::{
    drain::drain_and_check,
    history::History,
    load::Load,
    scenario::{progress, until},
};
use stack::{Container, Stack};

/// How many nodes there are at first, and how many later.
const NODES: [usize; 2] = [2, 3];
/// Items that are stored, delivered and acked before each step.
const PROGRESS: u64 = 1_000;
/// A node that joins has its share within this time, and a shard has a new owner. It is a few seconds on a
/// machine with nothing else to do.
const OWNERS_TIMEOUT: Duration = Duration::from_secs(120);

fn channels(nodes: &[Container]) -> Vec<Channel> {
    nodes.iter().map(Container::channel).collect()
}

fn names<'a>(nodes: impl IntoIterator<Item = &'a Container>) -> BTreeSet<String> {
    nodes.into_iter().map(|node| node.name().to_owned()).collect()
}

/// Names of the nodes that own a shard, as one of them knows it. A shard without an owner has an empty name.
async fn owners(node: &Container) -> BTreeSet<String> {
    let answer = AdminServiceClient::new(node.channel()).list_shards(ListShardsRequest::default()).await;
    let shards = answer.map(|answer| answer.into_inner().shards).unwrap_or_default();
    shards.into_iter().map(|shard| shard.owner).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_in_containers_keep_every_promise() {
    let stack = Stack::new();
    stack.build();
    let nodes = stack.up(NODES[0]);
    let history = Arc::new(History::new());
    let load = Load::start(&history, channels(&nodes), 91);
    progress(&history, "load at two nodes", PROGRESS).await;

    let nodes = stack.up(NODES[1]);
    load.retarget(channels(&nodes));
    until("each node owns a shard", OWNERS_TIMEOUT, async || owners(&nodes[0]).await == names(&nodes)).await;
    progress(&history, "load at three nodes", PROGRESS).await;

    let (victim, survivors) = nodes.split_first().unwrap();
    stack.kill(victim);
    let all_taken = async || owners(&survivors[0]).await.is_subset(&names(survivors));
    until("the survivors own every shard", OWNERS_TIMEOUT, all_taken).await;
    load.retarget(channels(survivors));
    progress(&history, "load after a node was killed", PROGRESS).await;
    let counts = history.counts();
    assert!(counts.unknown + counts.failed > 0 && counts.redelivered > 0, "the node was idle: {counts:?}");

    let nodes = stack.up(NODES[1]);
    load.retarget(channels(&nodes));
    let seen = async || stack.prometheus("sum(up{job=\"forebay\"})") == Some(NODES[1] as f64);
    until("Prometheus sees every node", OWNERS_TIMEOUT, seen).await;
    progress(&history, "load after it was started again", PROGRESS).await;
    load.stop().await;

    // One node is left, and the history is checked through it.
    let last = stack.up(1);
    until("the last node owns every shard", OWNERS_TIMEOUT, async || owners(&last[0]).await == names(&last))
        .await;
    drain_and_check(&history, last[0].channel()).await;
}
