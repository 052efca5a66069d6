//! Spans of calls that one node passes on to another.

use forebay_proto::v1::{EnqueueItem, EnqueueRequest, queue_service_client::QueueServiceClient};
use forebay_testkit::servers::Kind;
use tonic::Request;

use super::nodes::{Nodes, owned_by};
use crate::collector::{CALLER, Collector, TRACE, parent};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_passed_on_is_one_trace() {
    let collector = Collector::start().await;
    let cluster = Nodes::new(Kind::MariaDb, 2, 2).await;
    cluster.configure(&collector.section(0.0));
    let nodes = cluster.start_all().await;
    let elsewhere = *owned_by(&nodes[1]).await.first().expect("each node has a shard");

    let shard = Some(u32::try_from(elsewhere).unwrap());
    let items = vec![EnqueueItem { topic: "t".into(), shard, ..EnqueueItem::default() }];
    let mut request = Request::new(EnqueueRequest { namespace: "e2e".into(), items, ..Default::default() });
    request.metadata_mut().insert("traceparent", parent().parse().unwrap());
    let mut front = QueueServiceClient::new(nodes[0].channel());
    let results = front.enqueue(request).await.unwrap().into_inner().results;
    assert!(results[0].error.is_none(), "{results:?}");

    let spans = collector.calls(2).await;
    assert_eq!(spans.len(), 2, "what nodes ask each other otherwise has no spans: {spans:#?}");
    let named = |name: &str| spans.iter().find(|seen| seen.span.name == name).expect(name);
    let at_front = named("forebay.v1.QueueService/Enqueue");
    let at_owner = named("forebay.peer.v1.PeerService/Enqueue");
    let [trace, own, above] = at_front.ids();
    assert_eq!((trace.as_str(), above.as_str()), (TRACE, CALLER));
    assert_eq!((&at_owner.ids()[0], &at_owner.ids()[2]), (&trace, &own));
    for (seen, node) in [(at_front, "node0"), (at_owner, "node1")] {
        let sender = ("service.instance.id".to_owned(), node.to_owned());
        assert!(seen.sender.contains(&sender), "{seen:?}");
        let shard = elsewhere.to_string();
        for (name, value) in
            [("rpc.response.status_code", "OK"), ("messaging.destination.partition.id", shard.as_str())]
        {
            assert!(seen.attributes().contains(&(name.to_owned(), value.to_owned())), "{seen:?}");
        }
    }
}
