//! What the first page reads of topics and namespaces.

use std::sync::Arc;

use forebay_proto::v1::{
    ListNamespacesRequest, ListNamespacesResponse, ListTopicsRequest, ListTopicsResponse,
};
use tonic::Status;

use super::super::super::{asked::Asked, shared::Wall};
use crate::grpc::ALL_NAMESPACES;

/// Topics in each order.
const TOPICS: u32 = 50;
/// Namespaces that are shown.
const NAMESPACES: u32 = 20;

/// Reads it for somebody who may see the whole cluster, or takes what others have read just now.
pub async fn wall(asked: &Asked) -> Result<Arc<Wall>, Status> {
    asked.shared.wall.get(|| read(asked.clone())).await
}

/// One call after the other, as one walk at a time is let in.
async fn read(asked: Asked) -> Result<Wall, Status> {
    let stopping = |_| Status::unavailable("the node is stopping");
    let mut admin = asked.admin().map_err(stopping)?;
    let ordered = |order: &str| ListTopicsRequest {
        namespace: ALL_NAMESPACES.to_owned(),
        order_by: order.to_owned(),
        page_size: TOPICS,
        ..ListTopicsRequest::default()
    };
    let _walk = asked.shared.walk.lock().await;
    let oldest = admin.list_topics(asked.request(ordered("-oldest"))).await?.into_inner();
    let dead = admin.list_topics(asked.request(ordered("-dead"))).await?.into_inner();
    let first = ListNamespacesRequest { page_size: NAMESPACES, page_token: String::new() };
    let namespaces = admin.list_namespaces(asked.request(first)).await?.into_inner();
    Ok(merged(oldest, dead, namespaces))
}

fn merged(oldest: ListTopicsResponse, dead: ListTopicsResponse, namespaces: ListNamespacesResponse) -> Wall {
    let scanned = oldest.scanned.max(dead.scanned);
    let missing = [&oldest.incomplete_shards, &dead.incomplete_shards, &namespaces.incomplete_shards];
    let mut incomplete: Vec<u32> = missing.into_iter().flatten().copied().collect();
    incomplete.sort_unstable();
    incomplete.dedup();
    let mut topics = oldest.topics;
    topics.extend(dead.topics);
    // Of a topic that is there twice the first one stays.
    topics.sort_by(|a, b| (&a.namespace, &a.topic).cmp(&(&b.namespace, &b.topic)));
    topics.dedup_by(|a, b| a.namespace == b.namespace && a.topic == b.topic);
    Wall {
        topics,
        scanned,
        has_more_namespaces: !namespaces.next_page_token.is_empty(),
        namespaces: namespaces.namespaces,
        incomplete,
    }
}

#[cfg(test)]
mod tests {
    use forebay_proto::v1::Topic;

    use super::*;

    #[test]
    fn a_topic_is_there_once_and_every_missing_shard_is_named() {
        let topic = |name: &str| Topic { topic: name.to_owned(), ..Topic::default() };
        let list = |names: [&str; 2], shard| ListTopicsResponse {
            topics: names.map(topic).to_vec(),
            incomplete_shards: vec![7, shard],
            scanned: 9,
            ..ListTopicsResponse::default()
        };
        let wall = merged(list(["b", "a"], 3), list(["c", "b"], 2), ListNamespacesResponse::default());
        let names: Vec<&str> = wall.topics.iter().map(|topic| &*topic.topic).collect();
        assert_eq!((names, wall.incomplete, wall.scanned), (vec!["a", "b", "c"], vec![2, 3, 7], 9));
    }
}
