//! A second node on shards that have a node already.

use std::{fs, time::Duration};

use forebay_proto::v1::{GetActiveTopicsRequest, queue_service_client::QueueServiceClient};
use forebay_testkit::servers::{self, Kind};
use tokio::time::{Instant, sleep};
use tonic::Code;

use crate::backend::{Backend, Cluster};

/// The first look at a shard is over by then.
const LOOK_TIMEOUT: Duration = Duration::from_secs(10);

async fn a_second_node_is_refused(backend: Backend) {
    let cluster = Cluster::new(backend, 2).await;
    let first = cluster.start(0).await;
    let said = cluster.refused(1).await;
    let why = "serves these shards, and a node without node.advertise is the only one";
    assert!(said.contains(&format!("at {}, {why}", first.grpc)), "{said}");
    assert!(said.contains("set node.advertise and node.peer_secret_file at each of them"), "{said}");
    assert_eq!(first.get("/readyz").await, 200);
    // Its place is free once it is gone, however it went.
    first.kill9().await;
    let second = cluster.start(1).await;
    assert_eq!(second.get("/readyz").await, 200);
    assert!(second.terminate().await.0.success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_node_without_an_address_for_others_is_refused_on_sqlite() {
    a_second_node_is_refused(Backend::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_node_without_an_address_for_others_is_refused_on_mariadb() {
    a_second_node_is_refused(Backend::Server(Kind::MariaDb)).await;
}

/// A container that is killed has another host name when it starts again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_only_node_removes_dead_ones_of_other_names() {
    let cluster = Cluster::new(Backend::Sqlite, 1).await;
    cluster.start_with(0, [("FOREBAY_NAME", "before")]).await.kill9().await;
    let node = cluster.start_with(0, [("FOREBAY_NAME", "after")]).await;
    let status: serde_json::Value = serde_json::from_str(&node.fetch("/status.json").await.1).unwrap();
    let nodes = status["cluster"]["nodes"].as_array().unwrap();
    assert_eq!(nodes.iter().map(|node| &node["name"]).collect::<Vec<_>>(), ["after"]);
    assert!(node.terminate().await.0.success());
}

/// It has a catalog of its own, so that the two do not know each other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_has_to_wait_says_once_what_for() {
    let cluster = Cluster::new(Backend::Server(Kind::MariaDb), 2).await;
    cluster.set_catalog(1, &servers::shared(Kind::MariaDb).await.fresh_url().await).await;
    let first = cluster.start(0).await;
    let second = cluster.start_standby(1).await;
    let said = format!("is owned by {}; waiting", first.grpc);
    let waits = |log: &str| log.matches(&said).count();
    let log = || fs::read_to_string(cluster.log(1)).unwrap();
    let deadline = Instant::now() + LOOK_TIMEOUT;
    while waits(&log()) < 2 {
        assert!(Instant::now() < deadline, "{}", log());
        sleep(Duration::from_millis(10)).await;
    }
    let mut client = QueueServiceClient::new(second.channel());
    let request = GetActiveTopicsRequest { namespace: "ns".into(), ..Default::default() };
    let refused = client.get_active_topics(request).await.expect_err("it serves no shard");
    assert_eq!(refused.code(), Code::Unavailable, "{refused:?}");
    // It looks ten times a second, and takes over what is released. It said each thing once until then.
    assert!(first.terminate().await.0.success());
    second.wait_for_readyz(200).await;
    assert_eq!(waits(&log()), 2, "{}", log());
    second.terminate().await;
}
