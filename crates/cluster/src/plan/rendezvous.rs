//! Decides between equals. Each node weighs each shard differently, so equals do not all go to one node, and
//! every planner decides alike.

use std::hash::Hasher as _;

use forebay_types::{NodeName, ShardId};
use siphasher::sip::SipHasher13;

/// How well a node suits a shard.
pub fn weight(node: &NodeName, shard: ShardId) -> u64 {
    of(node, &shard.0.to_be_bytes())
}

/// How well a node suits a database server.
pub(super) fn weight_of_server(node: &NodeName, server: &str) -> u64 {
    of(node, server.as_bytes())
}

fn of(node: &NodeName, other: &[u8]) -> u64 {
    let mut hasher = SipHasher13::new();
    hasher.write_usize(node.as_str().len());
    hasher.write(node.as_str().as_bytes());
    hasher.write(other);
    hasher.finish()
}
