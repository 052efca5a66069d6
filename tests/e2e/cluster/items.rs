//! Changes of items whose shards other nodes own.

use forebay_proto::v1::{
    CancelItemsRequest, EnqueueItem, EnqueueRequest, ItemState, admin_service_client::AdminServiceClient,
    queue_service_client::QueueServiceClient,
};
use forebay_testkit::servers::Kind;

use super::nodes::Nodes;

const NAMESPACE: &str = "e2e";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn items_in_shards_of_other_nodes_are_cancelled() {
    let cluster = Nodes::new(Kind::MariaDb, 2, 3).await;
    let nodes = cluster.start_all().await;
    let (namespace, topic) = (NAMESPACE.to_owned(), "mail".to_owned());
    let item = |shard| EnqueueItem { topic: topic.clone(), shard: Some(shard), ..Default::default() };
    let items = (1..=3).map(item).collect();
    let request = EnqueueRequest { namespace: namespace.clone(), items, ..Default::default() };
    let stored = QueueServiceClient::new(nodes[0].channel()).enqueue(request).await.unwrap().into_inner();
    let item_ids: Vec<String> = stored.results.into_iter().map(|result| result.item_id).collect();
    for (node, dry_run) in [(&nodes[1], true), (&nodes[0], true), (&nodes[1], false)] {
        let (namespace, item_ids) = (namespace.clone(), item_ids.clone());
        let request = CancelItemsRequest { namespace, item_ids, dry_run, ..Default::default() };
        let answer = AdminServiceClient::new(node.channel()).cancel_items(request).await.unwrap();
        let results = answer.into_inner().results;
        assert!(results.iter().all(|it| it.state() == ItemState::Ready), "{results:?}");
    }
    let request = CancelItemsRequest { namespace, item_ids, ..Default::default() };
    let answer = AdminServiceClient::new(nodes[0].channel()).cancel_items(request).await.unwrap();
    let results = answer.into_inner().results;
    assert!(results.iter().all(|it| it.reason == "ITEM_NOT_FOUND"), "{results:?}");
}
