//! Nodes that start while the catalog is away, from the copy of it that they keep.

use std::{fs, path::Path, time::Duration};

use forebay_proto::v1::{
    DequeueRequest, EnqueueItem, EnqueueRequest, GetTopicRequest, PauseTopicRequest, ResumeTopicRequest,
    Side, TopicDemand, admin_service_client::AdminServiceClient, queue_service_client::QueueServiceClient,
    topic_demand::Selector,
};
use forebay_testkit::{
    proxy::Proxy,
    servers::{self, Kind},
};
use tonic::{Code, Status};

use crate::{
    backend::{Backend, Cluster},
    cluster::nodes::Nodes,
    node::Node,
    scenario::until,
};

const NAMESPACE: &str = "e2e";
const PAUSED: &str = "paused-topic";
const OTHER: &str = "other-topic";
/// Each step is over within this time, on a machine that does much else.
const STEP_TIMEOUT: Duration = Duration::from_secs(40);

/// Waits until a file holds a text.
async fn holds(file: &Path, text: &str) {
    let read = async || fs::read_to_string(file).is_ok_and(|found| found.contains(text));
    until(&format!("{} holds {text}", file.display()), STEP_TIMEOUT, read).await;
}

async fn store(node: &Node) {
    let item = |topic: &str| EnqueueItem { topic: topic.into(), ..Default::default() };
    let items = vec![item(PAUSED), item(OTHER)];
    let request = EnqueueRequest { namespace: NAMESPACE.into(), items, ..Default::default() };
    let results =
        QueueServiceClient::new(node.channel()).enqueue(request).await.unwrap().into_inner().results;
    assert!(results.iter().all(|result| result.error.is_none()), "{results:?}");
}

async fn take(node: &Node, topic: &str) -> usize {
    let demands = vec![TopicDemand { selector: Some(Selector::Topic(topic.to_owned())), max_items: 9 }];
    let request = DequeueRequest { namespace: NAMESPACE.into(), demands, ..Default::default() };
    QueueServiceClient::new(node.channel()).dequeue(request).await.unwrap().into_inner().items.len()
}

async fn pause(node: &Node) -> Result<(), Status> {
    let (namespace, topic) = (NAMESPACE.to_owned(), PAUSED.to_owned());
    let sides = vec![Side::Dequeue.into()];
    let request = PauseTopicRequest { namespace, topic, sides, ..Default::default() };
    AdminServiceClient::new(node.channel()).pause_topic(request).await.map(drop)
}

async fn is_paused(node: &Node) -> bool {
    let request = GetTopicRequest { namespace: NAMESPACE.into(), topic: PAUSED.into() };
    let answer = AdminServiceClient::new(node.channel()).get_topic(request).await;
    answer.is_ok_and(|answer| answer.into_inner().topic.is_some_and(|topic| !topic.pauses.is_empty()))
}

/// A cluster for nodes that are alone, with a proxy between node number `behind` and the catalog.
async fn with_catalog(nodes: usize, behind: usize) -> (Cluster, Proxy) {
    let cluster = Cluster::new(Backend::Server(Kind::MariaDb), nodes).await;
    let url = servers::shared(Kind::MariaDb).await.fresh_url().await;
    let way = Proxy::of_url(&url).await;
    for node in 0..nodes {
        cluster.set_catalog(node, &if node == behind { way.through(&url) } else { url.clone() }).await;
    }
    (cluster, way)
}

/// A pause of before holds, items are served, and changes wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_only_node_starts_without_its_catalog() {
    let (cluster, way) = with_catalog(1, 0).await;
    let file = cluster.keep_copy(0);
    let node = cluster.start(0).await;
    pause(&node).await.unwrap();
    store(&node).await;
    holds(&file, PAUSED).await;
    fs::remove_file(&file).unwrap();
    // One that is gone is written again.
    holds(&file, PAUSED).await;
    let metric = "\nforebay_catalog_copy_timestamp_seconds 1";
    until("the time of the copy is a metric", STEP_TIMEOUT, async || {
        node.fetch("/metrics").await.1.contains(metric)
    })
    .await;
    node.kill9().await;
    way.refuse();

    let node = cluster.start(0).await;
    until("the other topic is served", STEP_TIMEOUT, async || take(&node, OTHER).await == 1).await;
    assert_eq!(take(&node, PAUSED).await, 0, "the pause holds");
    store(&node).await;
    let refused = pause(&node).await.expect_err("a change waits for the catalog");
    assert_eq!(refused.code(), Code::Unavailable, "{refused:?}");
    assert_eq!(node.fetch("/metrics").await.1.matches("\nforebay_catalog_answers 0").count(), 1);

    way.pass();
    let request = ResumeTopicRequest {
        namespace: NAMESPACE.into(),
        topic: PAUSED.into(),
        sides: vec![Side::Dequeue.into()],
        ..Default::default()
    };
    let resumed =
        async || AdminServiceClient::new(node.channel()).resume_topic(request.clone()).await.is_ok();
    until("a change is made", STEP_TIMEOUT, resumed).await;
    holds(&cluster.log(0), "joined the cluster").await;
    until("the topic is resumed", STEP_TIMEOUT, async || take(&node, PAUSED).await > 0).await;
    let status: serde_json::Value = serde_json::from_str(&node.fetch("/status.json").await.1).unwrap();
    assert_eq!(status["cluster"]["nodes"].as_array().unwrap().len(), 1, "{status}");
    assert!(node.terminate().await.0.success());
}

/// It could not see at its start that it is the second one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_only_node_gives_way_once_the_catalog_answers() {
    let (cluster, way) = with_catalog(2, 1).await;
    let copies = [cluster.keep_copy(0), cluster.keep_copy(1)];
    let first = cluster.start(0).await;
    holds(&copies[0], "shards").await;
    fs::copy(&copies[0], &copies[1]).unwrap();
    way.refuse();
    let second = cluster.start_standby(1).await;
    holds(&cluster.log(1), "starting without the catalog").await;
    store(&first).await;
    way.pass();
    holds(&cluster.log(1), "serves these shards, and a node without node.advertise is the only one").await;
    assert_eq!(second.get("/readyz").await, 503);
    let (page, why) = (second.fetch("/status.json").await.1, "serves these shards, and a node without");
    assert!(page.contains(why) && !page.contains("does not answer"), "{page}");
    assert_eq!((take(&first, OTHER).await, first.get("/readyz").await), (1, 200));
    first.kill9().await;
    second.wait_for_readyz(200).await;
    store(&second).await;
    assert!(second.terminate().await.0.success());
}

/// The copy is of before a shard was moved, which `forebay migrate` can't say while the catalog is away.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_has_a_shard_elsewhere_is_not_used() {
    let server = servers::shared(Kind::MariaDb).await;
    let (shard, catalog) = (server.fresh_url().await, server.fresh_url().await);
    let cluster = Cluster::on(Backend::Server(Kind::MariaDb), std::slice::from_ref(&shard), 1).await;
    let (way, elsewhere) = (Proxy::of_url(&catalog).await, Proxy::of_url(&shard).await);
    cluster.set_catalog(0, &way.through(&catalog)).await;
    let file = cluster.keep_copy(0);
    let node = cluster.start(0).await;
    holds(&file, "shards").await;
    node.kill9().await;
    cluster.list_elsewhere(0, &shard, &elsewhere.through(&shard));
    way.refuse();
    let catalog_returns = async {
        holds(&cluster.log(0), "can't be used: it has shard 1 elsewhere than it is listed").await;
        way.pass();
    };
    let (said, ()) = tokio::join!(cluster.refused(0), catalog_returns);
    assert!(said.contains("run `forebay migrate`"), "{said}");
}

/// A pause that was made while the node was away is known to the others. Where nobody can be asked, it waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_of_several_starts_with_the_copy_of_another() {
    let (cluster, way) = Nodes::with_way_of(0, Kind::MariaDb, 2, 2).await;
    let copies = cluster.keep_copies();
    let mut nodes = cluster.start_all().await;
    let (second, first) = (nodes.pop().unwrap(), nodes.pop().unwrap());
    holds(&copies[0], "node1").await;
    assert!(first.terminate().await.0.success());
    pause(&second).await.unwrap();
    holds(&copies[1], PAUSED).await;
    assert!(!fs::read_to_string(&copies[0]).unwrap().contains(PAUSED), "its own copy is an older one");
    way.refuse();
    let first = cluster.start(0).await;
    until("the pause is known", STEP_TIMEOUT, async || is_paused(&first).await).await;
    store(&first).await;
    way.pass();
    cluster.evenly_owned(&[first, second]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_of_several_that_can_ask_nobody_waits_for_the_catalog() {
    let (cluster, way) = Nodes::with_way_of(0, Kind::MariaDb, 2, 2).await;
    let copies = cluster.keep_copies();
    let mut nodes = cluster.start_all().await;
    for copy in &copies {
        holds(copy, "node1").await;
    }
    while let Some(node) = nodes.pop() {
        node.kill9().await;
    }
    way.refuse();
    let starting = cluster.start(0);
    let catalog_returns = async {
        holds(&cluster.log(0), "no other node has sent its copy of the catalog").await;
        way.pass();
    };
    let (node, ()) = tokio::join!(starting, catalog_returns);
    node.wait_for_readyz(200).await;
    assert!(!fs::read_to_string(cluster.log(0)).unwrap().contains("starting without the catalog"));
}
