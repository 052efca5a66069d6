//! Changes of items whose shards other nodes own.

use forebay_proto::v1::{
    CancelItemsRequest, DequeueRequest, EnqueueItem, EnqueueRequest, ItemState, TopicDemand,
    UpdateItemRequest, admin_service_client::AdminServiceClient, queue_service_client::QueueServiceClient,
    topic_demand::Selector, update_item_request::Schedule,
};
use forebay_testkit::servers::Kind;

use super::nodes::Nodes;
use crate::node::Node;

const NAMESPACE: &str = "e2e";

/// One item in each of three shards.
async fn stored(node: &Node) -> Vec<String> {
    let item = |shard| EnqueueItem { topic: "mail".to_owned(), shard: Some(shard), ..Default::default() };
    let items = (1..=3).map(item).collect();
    let request = EnqueueRequest { namespace: NAMESPACE.to_owned(), items, ..Default::default() };
    let stored = QueueServiceClient::new(node.channel()).enqueue(request).await.unwrap().into_inner();
    stored.results.into_iter().map(|result| result.item_id).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn items_in_shards_of_other_nodes_are_cancelled() {
    let cluster = Nodes::new(Kind::MariaDb, 2, 3).await;
    let nodes = cluster.start_all().await;
    let namespace = NAMESPACE.to_owned();
    let item_ids = stored(&nodes[0]).await;
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn items_in_shards_of_other_nodes_are_updated() {
    let cluster = Nodes::new(Kind::MariaDb, 2, 3).await;
    let nodes = cluster.start_all().await;
    let item_ids = stored(&nodes[0]).await;
    let update = |id: &String, priority, schedule| UpdateItemRequest {
        namespace: NAMESPACE.to_owned(),
        item_id: id.clone(),
        priority: Some(priority),
        schedule,
        metadata: Some("updated".into()),
        ..Default::default()
    };
    let later = Some(Schedule::Delay(prost_types::Duration { seconds: 3_600, nanos: 0 }));
    // All through one node: some are in its own shards, some in the other's.
    for (at, id) in item_ids.iter().enumerate() {
        let mut admin = AdminServiceClient::new(nodes[1].channel());
        let state = admin.update_item(update(id, 0, later)).await.unwrap().into_inner().state();
        assert_eq!(state, ItemState::Scheduled);
        let now = Some(Schedule::Delay(prost_types::Duration::default()));
        let state = admin.update_item(update(id, 9 - at as i32, now)).await.unwrap().into_inner().state();
        assert_eq!(state, ItemState::Ready);
    }
    // Each node delivers them in their new order, as far as it gives more than one.
    let mut delivered = Vec::new();
    for node in nodes.iter().cycle().take(20) {
        if delivered.len() == item_ids.len() {
            break;
        }
        let selector = Some(Selector::Topic("mail".to_owned()));
        let demand = TopicDemand { selector, max_items: 9 };
        let request = DequeueRequest {
            namespace: NAMESPACE.to_owned(),
            demands: vec![demand],
            wait: Some(prost_types::Duration { seconds: 1, nanos: 0 }),
            ..Default::default()
        };
        let items =
            QueueServiceClient::new(node.channel()).dequeue(request).await.unwrap().into_inner().items;
        assert!(items.is_sorted_by_key(|item| item.priority), "{items:?}");
        delivered.extend(items.into_iter().map(|item| (item.item_id, item.priority, item.metadata)));
    }
    delivered.sort_by_key(|(_, priority, _)| -priority);
    let expected = item_ids.iter().zip([9, 8, 7]).map(|(id, at)| (id.clone(), at, "updated".into()));
    assert_eq!(delivered, expected.collect::<Vec<_>>());
}
