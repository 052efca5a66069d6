//! Calls with request ids that name their shard, as nodes propose it, over three nodes.

use std::{collections::BTreeSet, time::Duration};

use forebay_proto::{
    NEXT_SHARD_HEADER, NODE_HEADER,
    v1::{EnqueueItem, EnqueueRequest, EnqueueResult, queue_service_client::QueueServiceClient},
};
use forebay_testkit::servers::Kind;
use tonic::{Code, Response, Status, transport::Channel};
use tonic_types::StatusExt as _;

use super::{
    nodes::{Nodes, owners},
    operate::run,
};
use crate::{node::Node, scenario::until};

const NAMESPACE: &str = "e2e";

type Client = QueueServiceClient<Channel>;

fn client(node: &Node) -> Client {
    QueueServiceClient::new(node.channel())
}

fn call(topic: &str, request_id: &str, shard: Option<u32>) -> EnqueueRequest {
    let item = EnqueueItem { topic: topic.to_owned(), payload: "p".into(), ..EnqueueItem::default() };
    EnqueueRequest { namespace: NAMESPACE.into(), items: vec![item], request_id: request_id.into(), shard }
}

/// The answer to a call's only item, and the shard that the node proposes.
async fn store(
    node: &Node,
    topic: &str,
    request_id: &str,
    shard: Option<u32>,
) -> (EnqueueResult, Option<u32>) {
    let answer = client(node).enqueue(call(topic, request_id, shard)).await.unwrap();
    let proposed = proposed(&answer);
    (answer.into_inner().results.remove(0), proposed)
}

fn proposed<A>(answer: &Response<A>) -> Option<u32> {
    Some(answer.metadata().get(NEXT_SHARD_HEADER)?.to_str().unwrap().parse().unwrap())
}

fn shard_of(result: &EnqueueResult) -> u32 {
    assert_eq!(result.error, None);
    result.item_id.split_once('-').unwrap().0.parse().unwrap()
}

fn reason(status: &Status) -> String {
    status.get_details_error_info().unwrap().reason
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_names_its_shard_at_any_node() {
    let cluster = Nodes::new(Kind::MariaDb, 3, 6).await;
    let nodes = cluster.start_all().await;
    cluster.evenly_owned(&nodes).await;
    // Each node has heard from each other one.
    for (at, node) in nodes.iter().enumerate() {
        let is_proposed = async || store(node, "first", &format!("first-{at}"), None).await.1.is_some();
        until("a shard is proposed", Duration::from_secs(20), is_proposed).await;
    }

    // Stored there and nowhere else, whichever node takes the call or its repeat.
    for shard in 1..=6 {
        let id = format!("named-{shard}");
        let once = store(&nodes[0], "named", &id, Some(shard)).await.0;
        assert_eq!(shard_of(&once), shard);
        for node in &nodes {
            assert_eq!(store(node, "named", &id, Some(shard)).await.0, once);
        }
    }

    // The owner of the proposed shard is named, once the node has seen it.
    let (owners, mut calls) = (owners(&nodes).await, 0);
    let is_named = async || {
        calls += 1;
        let answer = client(&nodes[0]).enqueue(call("kept", &format!("owner-{calls}"), None)).await.unwrap();
        let owner = format!("node{}", owners[&proposed(&answer).unwrap()]);
        answer.metadata().get(NODE_HEADER).is_some_and(|named| named.to_str().unwrap() == owner)
    };
    until("the owner is named", Duration::from_secs(20), is_named).await;

    // A client that follows the proposals keeps a topic in two shards.
    let mut used = BTreeSet::new();
    let mut shard = store(&nodes[0], "kept", "kept", None).await.1;
    for number in 0..30 {
        let (stored, next) = store(&nodes[number % 3], "kept", &format!("kept-{number}"), shard).await;
        used.insert(shard_of(&stored));
        shard = next;
    }
    assert!(shard.is_some() && used.len() <= 2, "{used:?}");

    refuses(&nodes).await;
}

/// Wrong calls, and a shard that is drained.
async fn refuses(nodes: &[Node]) {
    let mut front = client(&nodes[1]);
    for request_id in ["unknown", ""] {
        let unknown = front.enqueue(call("named", request_id, Some(77))).await.unwrap_err();
        assert_eq!((unknown.code(), reason(&unknown).as_str()), (Code::InvalidArgument, "INVALID_FIELD"));
        assert!(unknown.message().contains("shard"), "{unknown}");
        for (field, item) in [
            ("items[0].dedupe_key", EnqueueItem { dedupe_key: "k".into(), ..EnqueueItem::default() }),
            ("items[0].shard", EnqueueItem { shard: Some(1), ..EnqueueItem::default() }),
        ] {
            let items = vec![EnqueueItem { topic: "named".into(), ..item }];
            let both = EnqueueRequest { items, ..call("named", request_id, Some(1)) };
            let refused = front.enqueue(both).await.unwrap_err();
            let fields = refused.get_details_bad_request().unwrap().field_violations;
            assert_eq!(fields[0].field, field);
        }
    }

    let (done, _, stderr) = run(&["shard", "drain", "4", "--addr", &nodes[0].grpc]).await;
    assert!(done, "{stderr}");
    let (mut tries, mut refused) = (0, String::new());
    for node in nodes {
        let is_drained = async || {
            tries += 1;
            refused = format!("late-{tries}");
            let error = store(node, "named", &refused, Some(4)).await.0.error;
            error.is_some_and(|error| error.message.contains("SHARD_DRAINING"))
        };
        until("the shard is drained", Duration::from_secs(20), is_drained).await;
        assert_eq!(shard_of(&store(node, "named", "named-4", Some(4)).await.0), 4, "it is known there");
        let plain = store(node, "named", "", Some(4)).await.0.error.unwrap();
        assert!(plain.message.contains("SHARD_DRAINING"), "{plain:?}");
    }
    let (done, _, stderr) = run(&["shard", "drain", "4", "--undo", "--addr", &nodes[0].grpc]).await;
    assert!(done, "{stderr}");
    let is_open = async || store(&nodes[0], "named", &refused, Some(4)).await.0.error.is_none();
    until("a call that was refused is not remembered", Duration::from_secs(20), is_open).await;
}
