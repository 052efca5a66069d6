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

/// One walk for both orders, as one at a time is let in.
async fn read(asked: Asked) -> Result<Wall, Status> {
    let stopping = |_| Status::unavailable("the node is stopping");
    let mut admin = asked.admin().map_err(stopping)?;
    let mut others = admin.clone();
    let greatest = ListTopicsRequest {
        namespace: ALL_NAMESPACES.to_owned(),
        order_by: "-oldest,-dead".to_owned(),
        page_size: TOPICS,
        ..ListTopicsRequest::default()
    };
    let first = ListNamespacesRequest { page_size: NAMESPACES, page_token: String::new() };
    let _walk = asked.shared.walk.lock().await;
    let (topics, namespaces) = tokio::try_join!(
        admin.list_topics(asked.request(greatest)),
        others.list_namespaces(asked.request(first)),
    )?;
    Ok(wall_of(topics.into_inner(), namespaces.into_inner()))
}

fn wall_of(topics: ListTopicsResponse, namespaces: ListNamespacesResponse) -> Wall {
    let missing = [&topics.incomplete_shards, &namespaces.incomplete_shards];
    let mut incomplete: Vec<u32> = missing.into_iter().flatten().copied().collect();
    incomplete.sort_unstable();
    incomplete.dedup();
    Wall {
        topics: topics.topics,
        scanned: topics.scanned,
        has_more_namespaces: !namespaces.next_page_token.is_empty(),
        namespaces: namespaces.namespaces,
        incomplete,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_missing_shard_is_named() {
        let topics =
            ListTopicsResponse { incomplete_shards: vec![7, 3], scanned: 9, ..ListTopicsResponse::default() };
        let namespaces =
            ListNamespacesResponse { incomplete_shards: vec![2, 7], ..ListNamespacesResponse::default() };
        let wall = wall_of(topics, namespaces);
        assert_eq!((wall.incomplete, wall.scanned), (vec![2, 3, 7], 9));
    }
}
