//! Counts of a namespace whose topics are forgotten.

use forebay_proto::v1::{
    Counts, GetNamespaceRequest, GetNamespaceResponse, ListNamespacesRequest,
    admin_service_client::AdminServiceClient,
};
use tonic::{Response, Status, transport::Channel};

use super::{NAMESPACE, Wire, item};

/// Topics without items are forgotten at once.
const SETTINGS: &str = "[engine]\nidle_topic_ms = 100\n";

fn admin(wire: &Wire) -> AdminServiceClient<Channel> {
    AdminServiceClient::new(wire.node.channel())
}

async fn get(wire: &Wire) -> Result<GetNamespaceResponse, Status> {
    let request = GetNamespaceRequest { namespace: NAMESPACE.into() };
    admin(wire).get_namespace(request).await.map(Response::into_inner)
}

/// The counts, once the namespace has no topic.
async fn counts(wire: &Wire) -> Counts {
    let topics = |status: &serde_json::Value| {
        let shards = status["engine"]["shards"].as_array().unwrap();
        shards.iter().all(|shard| shard["topics"].as_u64() == Some(0))
    };
    wire.wait_for("no topic is in memory", topics).await;
    let answer = get(wire).await.unwrap();
    assert_eq!((answer.incomplete_shards.len(), answer.uncounted_shards.len()), (0, 0));
    let found = answer.namespace.unwrap();
    assert_eq!(found.topic_count, 0);
    found.counts.unwrap()
}

#[tokio::test]
async fn the_counts_of_a_namespace_stay_when_its_topics_are_forgotten() {
    let wire = Wire::with(SETTINGS).await;
    for round in 1..=3 {
        wire.stored(["a", "b", "b", "c"].map(item).into()).await;
        for topic in ["a", "b", "b", "c"] {
            let taken = wire.take_one(topic).await;
            assert_eq!(wire.ack(&taken.receipt).await, None);
        }
        let counts = counts(&wire).await;
        assert_eq!((counts.enqueued, counts.delivered, counts.acked), (4 * round, 4 * round, 4 * round));
    }
    let list = admin(&wire).list_namespaces(ListNamespacesRequest::default()).await.unwrap().into_inner();
    let listed: Vec<_> = list.namespaces.iter().map(|it| (&*it.namespace, it.topic_count)).collect();
    assert_eq!((listed, list.uncounted_shards), (vec![(NAMESPACE, 0)], Vec::new()));
    assert_eq!(list.namespaces[0].counts.map(|counts| counts.acked), Some(12));
}
