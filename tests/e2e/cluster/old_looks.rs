//! Looks between nodes as the release before asks for them. They go with the next release.

use std::{collections::BTreeSet, time::Duration};

use forebay_proto::{
    peer::{self, peer_service_client::PeerServiceClient},
    v1::{
        AckRequest, DequeueRequest, EnqueueItem, EnqueueRequest, GroupDeadLettersRequest, ItemState, Nack,
        NackRequest, TopicDemand, admin_service_client::AdminServiceClient,
        queue_service_client::QueueServiceClient, topic_demand::Selector,
    },
};
use forebay_testkit::servers::Kind;
use tonic::{
    Code, Request,
    metadata::AsciiMetadataValue,
    service::{Interceptor, interceptor::InterceptedService},
    transport::{Channel, Endpoint},
};

use super::nodes::Nodes;
use crate::node::Node;

const NAMESPACE: &str = "e2e";
const TOPIC: &str = "mail";

type Peer<F> = PeerServiceClient<InterceptedService<Channel, F>>;

/// Calls a node as another node of its cluster does.
async fn peer(cluster: &Nodes, node: usize, id: &str) -> Peer<impl Interceptor + use<>> {
    let address = format!("http://{}", cluster.peer_address(node));
    let channel = Endpoint::from_shared(address).unwrap().connect().await.unwrap();
    let id: AsciiMetadataValue = id.parse().unwrap();
    PeerServiceClient::with_interceptor(channel, move |mut request: Request<()>| {
        let metadata = request.metadata_mut();
        metadata.insert("forebay-cluster", id.clone());
        metadata.insert("authorization", AsciiMetadataValue::from_static("Bearer the-secret-of-the-tests"));
        metadata.insert("forebay-peer-protocol", 1.into());
        Ok(request)
    })
}

/// The cluster's id, as a node names it to who knows the secret alone.
async fn cluster_id(cluster: &Nodes) -> String {
    let refused = peer(cluster, 0, "0").await.ping(peer::PingRequest {}).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
    refused.message().rsplit(' ').next().unwrap().to_owned()
}

/// Five items in each of four shards. Of those of a node one is a dead letter then, and one is acked.
async fn fill(node: &Node) {
    let mut queue = QueueServiceClient::new(node.channel());
    for shard in 1..=4 {
        let item = EnqueueItem { topic: TOPIC.to_owned(), shard: Some(shard), ..Default::default() };
        let items = vec![item; 5];
        let request = EnqueueRequest { namespace: NAMESPACE.to_owned(), items, ..Default::default() };
        queue.enqueue(request).await.unwrap();
    }
    let selector = Some(Selector::Topic(TOPIC.to_owned()));
    let request = DequeueRequest {
        namespace: NAMESPACE.to_owned(),
        demands: vec![TopicDemand { selector, max_items: 1 }],
        consumer: "w1".to_owned(),
        wait: Some(prost_types::Duration { seconds: 10, nanos: 0 }),
        ..Default::default()
    };
    let mut items = Vec::new();
    while items.len() < 2 {
        items.extend(queue.dequeue(request.clone()).await.unwrap().into_inner().items);
    }
    let [dead, acked, ..] = &items[..] else { panic!("{items:?}") };
    let (receipt, reason) = (dead.receipt.clone(), "no such host".to_owned());
    let nacks = vec![Nack { receipt, reason, dead_letter: true, ..Default::default() }];
    queue.nack(NackRequest { namespace: NAMESPACE.to_owned(), nacks }).await.unwrap();
    let acks = vec![forebay_proto::v1::Ack { receipt: acked.receipt.clone() }];
    queue.ack(AckRequest { namespace: NAMESPACE.to_owned(), acks }).await.unwrap();
}

fn name() -> peer::TopicName {
    peer::TopicName { namespace: NAMESPACE.to_owned(), topic: TOPIC.to_owned() }
}

/// How many items a node lists, in two pages. It shows the first of them, and none of a shard of nobody.
async fn items<F: Interceptor>(peer: &mut Peer<F>) -> u64 {
    let state = ItemState::Ready.into();
    let request = peer::ListItemsRequest { name: Some(name()), state, limit: 3, ..Default::default() };
    let first = peer.list_items(request.clone()).await.unwrap().into_inner();
    assert!(first.filtered && first.items.len() == 3);
    let rest = peer::ListItemsRequest { after: first.through, limit: 100, ..request };
    let rest = peer.list_items(rest).await.unwrap().into_inner();
    assert!(rest.through.is_none());
    let peer::ItemPosition { shard, seq, .. } = first.items[0].position.unwrap();
    let request = peer::GetItemRequest { namespace: NAMESPACE.to_owned(), shard, seq, payload_max: 0 };
    let item = peer.get_item(request.clone()).await.unwrap().into_inner();
    assert_eq!((item.looked, &item.item), (true, &first.items[0].item));
    let request = peer::GetItemRequest { shard: 99, ..request };
    assert!(!peer.get_item(request).await.unwrap().into_inner().looked);
    (first.items.len() + rest.items.len()) as u64
}

/// The number of the first second that a node remembers. It looks once a second.
async fn history<F: Interceptor>(peer: &mut Peer<F>) -> u64 {
    let namespace = "-".to_owned();
    let request = peer::GetHistoryRequest { namespace, step: 1, until: u64::MAX, ..Default::default() };
    loop {
        let history = peer.get_history(request.clone()).await.unwrap().into_inner();
        if !history.lines.is_empty() {
            assert_eq!((history.looked_every, history.topics_cut), (1, false));
            return history.from;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_answers_looks_of_the_release_before() {
    let cluster = Nodes::new(Kind::MariaDb, 2, 4).await;
    let nodes = cluster.start_all().await;
    fill(&nodes[0]).await;
    let id = cluster_id(&cluster).await;
    let (mut ready, mut listed, mut consumers) = (0, 0, BTreeSet::new());
    let (mut shards, mut groups) = (BTreeSet::new(), Vec::new());
    for node in 0..nodes.len() {
        let mut peer = peer(&cluster, node, &id).await;
        let request =
            peer::ListTopicsRequest { namespace: NAMESPACE.to_owned(), limit: 10, ..Default::default() };
        let topics = peer.list_topics(request).await.unwrap().into_inner();
        ready += topics.topics[0].ready_count;
        shards.extend(topics.shards);
        let topic = peer.get_topic(peer::GetTopicRequest { name: Some(name()) }).await.unwrap().into_inner();
        assert_eq!(topic.topic.unwrap().ready_count, topics.topics[0].ready_count);
        assert_eq!(topic.priorities[0].ready_count, topics.topics[0].ready_count);
        assert_eq!(topics.latencies.is_empty(), topic.latencies.is_none());

        listed += items(&mut peer).await;
        let request = peer::GroupDeadLettersRequest {
            namespace: NAMESPACE.to_owned(),
            topic: Some(TOPIC.to_owned()),
            window: 100,
        };
        groups.extend(peer.group_dead_letters(request).await.unwrap().into_inner().groups);
        let request = peer::ListConsumersRequest { namespace: NAMESPACE.to_owned(), ..Default::default() };
        let answer = peer.list_consumers(request).await.unwrap().into_inner();
        consumers.extend(answer.consumers.into_iter().map(|consumer| consumer.name));
        assert!(history(&mut peer).await > 1_000_000_000, "the number of a second");
        // A look that no program knows.
        let look = peer::AskRequest { look: "DeleteNamespace".to_owned(), ..Default::default() };
        assert_eq!(peer.ask(look).await.unwrap_err().code(), Code::Unimplemented);
    }
    assert_eq!((ready, listed, shards.len()), (18, 18, 4));
    assert_eq!(consumers.into_iter().collect::<Vec<_>>(), ["w1"]);
    let request = GroupDeadLettersRequest { namespace: NAMESPACE.to_owned(), ..Default::default() };
    let public = AdminServiceClient::new(nodes[1].channel()).group_dead_letters(request).await.unwrap();
    let public = &public.get_ref().groups[0];
    let at = public.first_died_at.unwrap();
    assert_eq!(groups.len(), 1);
    assert_eq!((groups[0].count, &groups[0].fingerprint), (public.count, &public.fingerprint));
    assert_eq!((&groups[0].reason, &groups[0].samples), (&public.reason, &public.sample_item_ids));
    assert_eq!(groups[0].first_micros, at.seconds * 1_000_000 + i64::from(at.nanos / 1_000));
}
