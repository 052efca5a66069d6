//! A planned move of a shard.

use std::fs;

use forebay_proto::v1::{EnqueueItem, EnqueueRequest, queue_service_client::QueueServiceClient};
use forebay_testkit::servers::Kind;

use super::{
    nodes::{Nodes, owned_by},
    operate::{owns, run},
};

/// Number of topics that have an item.
const TOPICS: usize = 40;

/// Slow parts of a move are done while the last owner serves the shard: it waits for the next one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shard_that_moves_was_read_ahead() {
    let cluster = Nodes::new(Kind::MariaDb, 2, 1).await;
    let nodes = cluster.start_all().await;
    let item = |topic| EnqueueItem { topic: format!("t{topic}"), ..EnqueueItem::default() };
    let request = EnqueueRequest {
        namespace: "moves".into(),
        items: (0..TOPICS).map(item).collect(),
        ..EnqueueRequest::default()
    };
    let answer = QueueServiceClient::new(nodes[0].channel()).enqueue(request).await.unwrap().into_inner();
    assert!(answer.results.iter().all(|result| result.error.is_none()), "{answer:?}");

    let next = usize::from(!owned_by(&nodes[0]).await.is_empty());
    let (name, config) = (format!("node{next}"), cluster.config(0));
    let (done, _, stderr) = run(&["shard", "move", "1", &name, "--config", &config]).await;
    assert!(done, "{stderr}");
    owns(&nodes[next], &[1]).await;
    let log = fs::read_to_string(cluster.log(next)).unwrap();
    assert!(log.contains(&format!("read_ahead={TOPICS} ")), "{log}");
    for node in nodes {
        let (status, took) = node.terminate().await;
        assert!(status.success(), "{status} after {took:?}");
    }
}
