//! Topics and namespaces on the first page.

use forebay_proto::v1::{
    ListNamespacesRequest, ListNamespacesResponse, ListTopicsResponse, Namespace, Topic,
};
use tonic::Status;

use super::super::super::{asked::PageRequest, greatest};

/// Namespaces that are shown.
const NAMESPACES: u32 = 20;

/// Topics and namespaces of the whole cluster.
#[derive(Debug, Default)]
pub struct Wall {
    /// Topics that wait longest, and topics with the most dead letters, each once.
    pub topics: Vec<Topic>,
    /// How many topics there are.
    pub scanned: u64,
    /// The first namespaces by name.
    pub namespaces: Vec<Namespace>,
    /// There are more of them.
    pub has_more_namespaces: bool,
    /// Shards that could not be asked.
    pub incomplete: Vec<u32>,
}

/// Reads it for somebody who may see the whole cluster, or takes what others have read just now.
pub async fn wall(asked: &PageRequest) -> Result<Wall, Status> {
    let namespaces = {
        let asked = asked.clone();
        move || async move {
            let first = ListNamespacesRequest { page_size: NAMESPACES, page_token: String::new() };
            asked.ask(first).await
        }
    };
    let namespaces = asked.shared.namespaces.get(namespaces);
    let (topics, namespaces) = tokio::try_join!(greatest::read(asked), namespaces)?;
    Ok(wall_of(&topics, &namespaces))
}

fn wall_of(topics: &ListTopicsResponse, namespaces: &ListNamespacesResponse) -> Wall {
    let missing = [&topics.incomplete_shards, &namespaces.incomplete_shards];
    let mut incomplete: Vec<u32> = missing.into_iter().flatten().copied().collect();
    incomplete.sort_unstable();
    incomplete.dedup();
    Wall {
        topics: greatest::by(topics, "-oldest,-dead"),
        scanned: topics.scanned,
        has_more_namespaces: !namespaces.next_page_token.is_empty(),
        namespaces: namespaces.namespaces.clone(),
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
        let wall = wall_of(&topics, &namespaces);
        assert_eq!((wall.incomplete, wall.scanned), (vec![2, 3, 7], 9));
    }
}
