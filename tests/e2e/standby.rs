//! Answers and log of a node that has to wait for its shards.

use std::{fs, time::Duration};

use forebay_proto::v1::{GetActiveTopicsRequest, queue_service_client::QueueServiceClient};
use tokio::time::{Instant, sleep};
use tonic::Code;

use crate::backend::{Backend, Cluster};

/// The first look at a shard is over by then.
const LOOK_TIMEOUT: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_node_on_a_folder_says_once_what_it_waits_for() {
    let cluster = Cluster::new(Backend::Sqlite, 2).await;
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
