//! Evenness: eligible nodes have numbers of shards within one of each other, of each database server and in
//! all, as far as pins and reachability allow.
//!
//! Each step moves a shard from a node with at least two more to one with fewer. That makes the sum of the
//! squares of the numbers smaller, so it ends. A shard that has to wait counts as if it could move: what is
//! even without it would have to be undone later.

use std::cmp::Reverse;

use super::{parts::Parts, rendezvous};

/// Makes the plan even.
pub(super) fn balance(parts: &mut Parts<'_>) {
    loop {
        let mut is_even = true;
        for server in 0..parts.servers.len() {
            while let Some((from, to)) = uneven_server(parts, server) {
                is_even &= !give(parts, server, from, to);
            }
        }
        while let Some((server, from, to)) = uneven_total(parts) {
            is_even &= !give(parts, server, from, to);
        }
        if is_even {
            return;
        }
    }
}

/// Two nodes whose numbers of shards of a server differ by at least two, the first of which can give one.
fn uneven_server(parts: &Parts<'_>, server: usize) -> Option<(usize, usize)> {
    let weight = |node: &usize| rendezvous::weight_of_server(parts.nodes[*node], parts.servers[server]);
    let count = |node: usize| parts.counts[node][server];
    let nodes = || (0..parts.nodes.len()).filter(|node| parts.reaches[*node][server]);
    let giving = nodes().filter(|node| can_give(parts, server, *node));
    let from = giving.max_by_key(|node| (count(*node), parts.total(*node), Reverse(weight(node))))?;
    let to = nodes().min_by_key(|node| (count(*node), parts.total(*node), Reverse(weight(node))))?;
    (count(from) >= count(to) + 2).then_some((from, to))
}

/// A server, and two nodes whose numbers of shards in all differ by at least two. The first can give one of
/// that server, and has more of it: so the server stays even.
fn uneven_total(parts: &Parts<'_>) -> Option<(usize, usize, usize)> {
    let mut nodes: Vec<_> = (0..parts.nodes.len()).map(|node| (parts.total(node), node)).collect();
    nodes.sort_unstable();
    for (most, from) in nodes.iter().rev() {
        for (fewest, to) in nodes.iter().take_while(|(total, _)| *most >= total + 2) {
            debug_assert!(most > fewest, "the list is sorted");
            let more = |server: &usize| {
                parts.reaches[*to][*server]
                    && parts.counts[*from][*server] > parts.counts[*to][*server]
                    && can_give(parts, *server, *from)
            };
            let difference = |server: &usize| {
                let weight = rendezvous::weight_of_server(parts.nodes[*to], parts.servers[*server]);
                let more = parts.counts[*from][*server] - parts.counts[*to][*server];
                (gives_for_free(parts, *server, *from), more, weight)
            };
            if let Some(server) = (0..parts.servers.len()).filter(more).max_by_key(difference) {
                return Some((server, *from, *to));
            }
        }
    }
    None
}

fn can_give(parts: &Parts<'_>, server: usize, node: usize) -> bool {
    let mut shards = parts.shards.iter();
    shards.any(|it| it.node == node && it.server == server && it.readiness().is_some())
}

/// Whether a node can give a shard of a server that moves anyway.
fn gives_for_free(parts: &Parts<'_>, server: usize, node: usize) -> bool {
    let mut shards = parts.shards.iter().filter(|it| it.readiness().is_some());
    shards.any(|it| it.node == node && it.server == server && parts.moves_already(it))
}

/// Moves the shard that costs least. Returns whether there was one.
fn give(parts: &mut Parts<'_>, server: usize, from: usize, to: usize) -> bool {
    let shards = parts.shards.iter().enumerate();
    let given = shards.filter(|(_, it)| it.node == from && it.server == server);
    let given = given.filter_map(|(shard, it)| Some((shard, it, it.readiness()?)));
    let best = given.max_by_key(|(_, it, readiness)| {
        (parts.moves_already(it), *readiness, rendezvous::weight(parts.nodes[to], it.id))
    });
    let Some((shard, ..)) = best else { return false };
    parts.put(shard, to);
    true
}
