//! The node that owns shards, which an answer names: the client's next call has a shorter way there.

use std::{cmp::Reverse, collections::BTreeMap};

use forebay_membership::ClusterState;
use forebay_proto::NODE_HEADER;
use forebay_types::ShardId;
use tonic::Response;

/// The node that owns most of these shards, each of which counts as often as it comes; this one rather than
/// one that owns as many.
pub fn of_most(cluster: &ClusterState, shards: impl Iterator<Item = ShardId>) -> Option<String> {
    let mut counts = BTreeMap::<ShardId, usize>::new();
    shards.for_each(|shard| *counts.entry(shard).or_default() += 1);
    let mut nodes = BTreeMap::<&str, usize>::new();
    for (shard, count) in counts {
        let home = cluster.shards.iter().find(|home| home.id == shard);
        if let Some(owner) = home.and_then(|home| home.owner.as_ref()) {
            *nodes.entry(owner.as_str()).or_default() += count;
        }
    }
    let best = nodes.into_iter().min_by_key(|(name, count)| (Reverse(*count), **name != *cluster.own));
    best.map(|(name, _)| name.to_owned())
}

/// Names a node in the answer's metadata.
pub fn name<A>(answer: &mut Response<A>, node: Option<String>) {
    if let Some(node) = node.and_then(|name| name.parse().ok()) {
        answer.metadata_mut().insert(NODE_HEADER, node);
    }
}

#[cfg(test)]
mod tests {
    use forebay_membership::ShardHome;

    use super::*;

    #[test]
    fn the_node_is_named_that_owns_most() {
        let owners = [(1, Some("a")), (2, Some("b")), (3, Some("c")), (4, Some("c")), (5, None)];
        let home = |(id, owner): (u32, Option<&str>)| ShardHome {
            id: ShardId(id),
            state: "active".to_owned(),
            home: None,
            pinned: false,
            owner: owner.map(|name| name.parse().unwrap()),
        };
        let shards = owners.into_iter().map(home).collect();
        let cluster = ClusterState { own: "b".to_owned(), shards, ..ClusterState::default() };
        let named = |shards: &[u32]| of_most(&cluster, shards.iter().copied().map(ShardId));
        assert_eq!(named(&[]), None, "there are no shards");
        assert_eq!(named(&[1, 2, 1]).as_deref(), Some("a"));
        assert_eq!(named(&[1, 2, 4, 2, 3, 3]).as_deref(), Some("c"), "of both its shards");
        assert_eq!(named(&[1, 2]).as_deref(), Some("b"), "this node rather than another");
        assert_eq!(named(&[5, 9, 1]).as_deref(), Some("a"), "as far as owners are known");
    }
}
