//! The catalog's rows, as far as the assignment needs them.

use std::time::Duration;

use forebay_types::{Monotonic, NodeName};

/// A shard's home, and whether it is pinned there.
pub(super) type Home = Option<(usize, bool)>;

/// The rows.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Catalog {
    /// The version of the assignment.
    pub version: u64,
    /// The home of each shard.
    pub homes: Vec<Home>,
    /// Since when it has been that. Every node has seen it change.
    pub since: Vec<u8>,
    /// Whether each node lives.
    pub alive: Vec<bool>,
    /// When each node joined; later than anything for those that have not.
    pub joined: Vec<u8>,
}

/// Assignment that a node is about to write.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Draft {
    /// The version that it was made from.
    pub from: u64,
    /// The homes that it was made from.
    pub base: Vec<Home>,
    /// The shards that get another home.
    pub homes: Vec<(usize, Home)>,
}

impl Catalog {
    /// Nodes that have lived for long, each with its part of the shards.
    pub fn first(nodes: usize, joiners: usize, shards: usize) -> Self {
        let all = nodes + joiners;
        Self {
            version: 1,
            homes: (0..shards).map(|shard| Some((shard % nodes, false))).collect(),
            since: vec![0; shards],
            alive: (0..all).map(|node| node < nodes).collect(),
            joined: (0..all).map(|node| if node < nodes { 0 } else { u8::MAX }).collect(),
        }
    }

    /// Whether a node has joined. It may be dead.
    pub fn is_there(&self, node: usize) -> bool {
        self.joined[node] != u8::MAX
    }

    /// A node joins.
    pub fn join(&mut self, node: usize, now: u8) {
        (self.alive[node], self.joined[node]) = (true, now);
    }

    /// Changes homes.
    pub fn assign(&mut self, homes: &[(usize, Home)], now: u8) {
        self.version += 1;
        for (shard, home) in homes {
            if self.homes[*shard].map(|(node, _)| node) != home.map(|(node, _)| node) {
                self.since[*shard] = now;
            }
            self.homes[*shard] = *home;
        }
    }
}

/// The name of a node.
pub(super) fn name(node: usize) -> NodeName {
    let name = format!("node{node}");
    name.parse().unwrap_or_else(|_| unreachable!("{name} is a name"))
}

/// The node of a name.
pub(super) fn node(name: &NodeName) -> usize {
    name.as_str().trim_start_matches("node").parse().unwrap_or_else(|_| unreachable!("{name} has a number"))
}

/// When so many half minutes have passed, and a little more, since a minute after the nodes began.
pub(super) fn at(ticks: u8) -> Monotonic {
    Monotonic::from_start(Duration::from_secs(31) * (u32::from(ticks) + 2))
}
