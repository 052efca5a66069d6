//! A panic of the engine: the process ends and says so, so that a supervisor starts it again.

use std::fs;

use forebay_proto::v1::{EnqueueItem, EnqueueRequest, queue_service_client::QueueServiceClient};

use crate::{
    backend::{Backend, Cluster},
    node::Node,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_whose_engine_panics_ends_with_an_error() {
    let cluster = Cluster::new(Backend::Sqlite, 1).await;
    let node = cluster.start_with(0, [("FOREBAY_TEST_PANIC", "enqueue")]).await;
    assert_eq!(node.get("/healthz").await, 200);
    let mut client = QueueServiceClient::new(node.channel());
    let items = vec![EnqueueItem { topic: "t".into(), ..Default::default() }];
    let request = EnqueueRequest { namespace: "ns".into(), items, ..EnqueueRequest::default() };
    assert!(client.enqueue(request).await.is_err());
    let status = Node::wait(node).await;
    assert_eq!(status.code(), Some(1), "{status}");
    let log = fs::read_to_string(cluster.log(0)).unwrap();
    let said = "a task of the engine panicked: EventLoop: a planted panic; the process ends";
    assert_eq!(log.matches(said).count(), 1, "{log}");

    // A node that starts next finds the shards free.
    assert!(cluster.start(0).await.terminate().await.0.success());
}
