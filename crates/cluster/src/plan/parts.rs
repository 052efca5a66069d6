//! The shards that take part in a plan, each at one eligible node.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use forebay_store::CatalogShardState;
use forebay_types::{NodeName, ShardId};

use super::{
    moves::{MOVED_STAYS, Move, NEW_HOME_STAYS, Reason},
    rendezvous,
    standing::Standing,
};
use crate::view::{ClusterView, NodeView, ShardView};

/// The moves that a shard may make for evenness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mobility {
    /// It stays where an operator put it.
    Pinned,
    /// It has moved not long ago, is on its way, or its server may be away: it moves later.
    Waits,
    /// It may move now.
    Free,
    /// It must move anyway.
    Displaced(Reason),
    /// It must leave its home, and goes where it was put.
    Sent(Reason),
}

/// A shard that takes part.
#[derive(Debug)]
pub(super) struct Part<'a> {
    /// The shard.
    pub(super) id: ShardId,
    /// Its database server, as a position in [`Parts::servers`].
    pub(super) server: usize,
    /// The home that it has.
    home: Option<&'a NodeName>,
    /// The moves that it may make.
    mobility: Mobility,
    /// Where the plan wants it, as a position in [`Parts::nodes`].
    pub(super) node: usize,
}

impl Part<'_> {
    /// How gladly it moves for evenness. `None`: not at all.
    pub(super) fn readiness(&self) -> Option<Mobility> {
        (!matches!(self.mobility, Mobility::Pinned | Mobility::Sent(_))).then_some(self.mobility)
    }
}

/// The shards that take part in a plan, and the eligible nodes. A shard at a node that keeps its shards does
/// not take part, and neither does one that no eligible node reaches: both stay as they are.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    /// The eligible nodes.
    pub(super) nodes: Vec<&'a NodeName>,
    /// The database servers.
    pub(super) servers: Vec<&'a str>,
    /// Whether a node reaches a server: `reaches[node][server]`.
    pub(super) reaches: Vec<Vec<bool>>,
    /// How many shards of a server the plan wants at a node: `counts[node][server]`.
    pub(super) counts: Vec<Vec<usize>>,
    /// The shards.
    pub(super) shards: Vec<Part<'a>>,
}

impl<'a> Parts<'a> {
    /// Sorts the shards of a view, and finds new homes for those that must move.
    pub(super) fn new(view: &'a ClusterView, standings: &BTreeMap<&'a NodeName, Standing>) -> Self {
        let nodes: Vec<_> =
            standings.iter().filter(|(_, it)| **it == Standing::Eligible).map(|(name, _)| *name).collect();
        let servers: BTreeSet<_> = view.shards.values().map(|shard| shard.server.as_str()).collect();
        let servers: Vec<_> = servers.into_iter().collect();
        let reaches = nodes.iter().map(|name| {
            let reported = view.nodes.get(*name).map(|node| &node.servers);
            servers.iter().map(|it| reported.is_some_and(|all| all.contains(*it))).collect()
        });
        let reaches: Vec<Vec<bool>> = reaches.collect();
        let counts = vec![vec![0; servers.len()]; nodes.len()];
        let mut parts = Self { nodes, servers, reaches, counts, shards: Vec::new() };
        let mut displaced = Vec::new();
        for (id, shard) in &view.shards {
            match parts.sort(view, standings, shard) {
                ShardPlacement::At(node, mobility) => parts.add(*id, shard, mobility, node),
                ShardPlacement::Displaced(reason) => displaced.push((*id, shard, reason)),
                ShardPlacement::Out => {}
            }
        }
        for (id, shard, reason) in displaced {
            if let Some(node) = parts.best(id, shard, reason) {
                let mobility = match reason {
                    Reason::Stuck => Mobility::Sent(reason),
                    _ => Mobility::Displaced(reason),
                };
                parts.add(id, shard, mobility, node);
            }
        }
        parts
    }

    /// How many shards the plan wants at a node.
    pub(super) fn total(&self, node: usize) -> usize {
        self.counts[node].iter().sum()
    }

    /// Wants a shard at another node.
    pub(super) fn put(&mut self, shard: usize, node: usize) {
        let part = &mut self.shards[shard];
        self.counts[part.node][part.server] -= 1;
        self.counts[node][part.server] += 1;
        part.node = node;
    }

    /// Whether a shard moves already, so that another destination costs nothing.
    pub(super) fn moves_already(&self, part: &Part<'_>) -> bool {
        part.home != Some(self.nodes[part.node])
    }

    /// The moves from the homes that shards have to those of the plan. Shards that wait are left where they
    /// are.
    pub(super) fn moves(&self) -> Vec<Move> {
        let moves = self.shards.iter().filter(|part| self.moves_already(part)).filter_map(|part| {
            let reason = match part.mobility {
                Mobility::Displaced(reason) | Mobility::Sent(reason) => reason,
                Mobility::Free => Reason::Balance,
                Mobility::Waits | Mobility::Pinned => return None,
            };
            let to = Some(self.nodes[part.node].clone());
            Some(Move { shard: part.id, from: part.home.cloned(), to, reason })
        });
        moves.collect()
    }

    fn add(&mut self, id: ShardId, shard: &'a ShardView, mobility: Mobility, node: usize) {
        let server = self.server(shard);
        self.counts[node][server] += 1;
        let home = shard.home.as_ref().map(|home| &home.node);
        self.shards.push(Part { id, server, home, mobility, node });
    }

    /// Every server of a shard is in the list.
    fn server(&self, shard: &ShardView) -> usize {
        self.servers.binary_search(&shard.server.as_str()).unwrap_or_default()
    }

    /// The eligible node of a name, if it reaches a shard's server.
    fn reaching(&self, name: &NodeName, shard: &ShardView) -> Option<usize> {
        let node = self.nodes.binary_search(&name).ok()?;
        self.reaches[node][self.server(shard)].then_some(node)
    }

    fn sort(
        &self,
        view: &ClusterView,
        standings: &BTreeMap<&NodeName, Standing>,
        shard: &ShardView,
    ) -> ShardPlacement {
        let server = self.server(shard);
        let somebody_reaches = self.reaches.iter().any(|servers| servers[server]);
        if shard.state == CatalogShardState::Offline || !somebody_reaches {
            return ShardPlacement::Out;
        }
        if self.is_kept(view, standings, shard) {
            return ShardPlacement::Out;
        }
        let Some(home) = &shard.home else { return ShardPlacement::Displaced(Reason::Homeless) };
        let reaches = view.nodes.get(&home.node).is_some_and(|node| node.servers.contains(&shard.server));
        let sorted = match standings.get(&home.node) {
            None | Some(Standing::Gone) => ShardPlacement::Displaced(Reason::NodeGone),
            Some(_) if !reaches => ShardPlacement::Displaced(Reason::ServerUnreached),
            Some(Standing::Leaves(reason)) => ShardPlacement::Displaced(*reason),
            Some(Standing::Eligible | Standing::Joins | Standing::Keeps) if shard.stuck => {
                ShardPlacement::Displaced(Reason::Stuck)
            }
            Some(Standing::Joins | Standing::Keeps) => ShardPlacement::Out,
            Some(Standing::Eligible) => match self.reaching(&home.node, shard) {
                Some(node) => ShardPlacement::At(node, mobility(view, shard, home.pinned)),
                None => ShardPlacement::Out,
            },
        };
        match sorted {
            ShardPlacement::Displaced(reason) if reason.is_failover() && is_new(view, standings, shard) => {
                ShardPlacement::Out
            }
            sorted => sorted,
        }
    }

    /// Whether a shard has lost its home, and a node serves it that may have it soon: another node would have
    /// it for nothing.
    fn is_kept(
        &self,
        view: &ClusterView,
        standings: &BTreeMap<&NodeName, Standing>,
        shard: &ShardView,
    ) -> bool {
        let standing = |name: &NodeName| standings.get(name).copied().unwrap_or(Standing::Gone);
        let has_home = shard.home.as_ref().is_some_and(|home| standing(&home.node) != Standing::Gone);
        let Some(owner) = shard.owner.as_ref().filter(|_| !has_home && !shard.silent) else { return false };
        let is_well = |node: &NodeView| node.grey_since.is_none() && node.servers.contains(&shard.server);
        matches!(standing(owner), Standing::Joins | Standing::Keeps)
            && view.nodes.get(owner).is_some_and(is_well)
    }

    /// The best node for a shard that must move: its owner, if it may have it, else the one with the fewest
    /// shards of its server, and the fewest in all.
    fn best(&self, id: ShardId, shard: &ShardView, reason: Reason) -> Option<usize> {
        let home = shard.home.as_ref().map(|home| &home.node);
        let may_have = |node: &usize| reason != Reason::Stuck || home != Some(self.nodes[*node]);
        let owner = shard.owner.as_ref().and_then(|owner| self.reaching(owner, shard));
        if let Some(owner) = owner.filter(may_have) {
            return Some(owner);
        }
        let server = self.server(shard);
        let reaching = (0..self.nodes.len()).filter(|node| self.reaches[*node][server]).filter(may_have);
        reaching.min_by_key(|node| {
            let weight = rendezvous::weight(self.nodes[*node], id);
            (self.counts[*node][server], self.total(*node), Reverse(weight))
        })
    }
}

/// Where a shard belongs before anything moves.
enum ShardPlacement {
    /// At an eligible node.
    At(usize, Mobility),
    /// It needs another home.
    Displaced(Reason),
    /// It does not take part.
    Out,
}

/// Whether a shard has its home for so short a time that the home is left alone, although it seems to fail.
/// One that has left does not come back. One that owned the shard and shows no sign of life any more has had
/// a whole lease for that.
fn is_new(view: &ClusterView, standings: &BTreeMap<&NodeName, Standing>, shard: &ShardView) -> bool {
    let home = shard.home.as_ref().map(|home| &home.node);
    let is_known = home.is_some_and(|home| standings.contains_key(home));
    let has_failed = shard.silent && shard.owner.as_ref() == home;
    is_known && !has_failed && shard.home_since.is_some_and(|since| view.now.since(since) < NEW_HOME_STAYS)
}

fn mobility(view: &ClusterView, shard: &ShardView, pinned: bool) -> Mobility {
    let is_at_home = shard.owner.as_ref() == shard.home.as_ref().map(|home| &home.node);
    let has_stayed = shard.home_since.is_none_or(|since| view.now.since(since) >= MOVED_STAYS);
    match () {
        () if pinned => Mobility::Pinned,
        () if is_at_home && has_stayed && shard.steady => Mobility::Free,
        () => Mobility::Waits,
    }
}
