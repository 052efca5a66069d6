//! Which moves may begin now: a node takes part in few moves at once, so that few shards wait at once.

use std::collections::BTreeMap;

use forebay_types::NodeName;

use super::moves::{MOVES_MAX, Move, Reason};
use crate::view::{ClusterView, ShardView};

/// Drops the moves that must wait for others. Failovers wait for nothing.
pub(super) fn begin_now(view: &ClusterView, mut moves: Vec<Move>) -> Vec<Move> {
    moves.sort_by_key(|it| (it.reason, it.shard));
    let mut busy = under_way(view);
    moves.retain(|it| {
        let shard = view.shards.get(&it.shard);
        let may_live = it.reason == Reason::NodeGone && shard.is_some_and(|shard| is_renewed(view, shard));
        if it.reason.is_failover() && !may_live {
            return true;
        }
        let both = [&it.from, &it.to].map(|node| node.as_ref());
        let nodes: Vec<_> = both.into_iter().flatten().collect();
        let may = nodes.iter().all(|node| busy.get(*node).copied().unwrap_or(0) < MOVES_MAX);
        if may {
            nodes.into_iter().for_each(|node| *busy.entry(node.clone()).or_default() += 1);
        }
        may
    });
    moves
}

/// Whether a node that is dead by its counter still says in a shard that it lives. It is cut off from the
/// catalog alone: nobody can take the shard, and once the node reads the catalog it gives away what moved.
fn is_renewed(view: &ClusterView, shard: &ShardView) -> bool {
    let owner = shard.owner.as_ref().and_then(|owner| view.nodes.get(owner));
    owner.is_some_and(|owner| !owner.live) && !shard.silent
}

/// In how many moves each node takes part already. A shard whose owner is dead is not counted: that is a
/// failover. One that has no owner is: its home is about to take it.
fn under_way(view: &ClusterView) -> BTreeMap<NodeName, usize> {
    let mut busy = BTreeMap::<NodeName, usize>::new();
    for shard in view.shards.values() {
        let Some(home) = shard.home.as_ref().map(|home| &home.node) else { continue };
        let owner = shard.owner.as_ref().filter(|owner| *owner != home);
        let is_failover = owner.is_some_and(|owner| !view.nodes.get(owner).is_some_and(|node| node.live));
        if shard.owner.as_ref() == Some(home) || is_failover && !is_renewed(view, shard) {
            continue;
        }
        for node in owner.into_iter().chain([home]) {
            *busy.entry(node.clone()).or_default() += 1;
        }
    }
    busy
}
