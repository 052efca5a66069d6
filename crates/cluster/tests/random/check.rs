//! The rules of nodes and shards, said once more and otherwise.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use forebay_cluster::{
    ClusterView, FIRST_JOINERS_WAIT, JOINER_WAITS, MOVED_STAYS, MOVES_MAX, Move, NEW_HOME_STAYS, NodeView,
    OUTVOTED_AFTER, Reason, ShardView,
};
use forebay_store::CatalogShardState;
use forebay_types::NodeName;

fn may_take(view: &ClusterView, node: &NodeView, shard: &ShardView) -> bool {
    is_eligible(view, node) && node.servers.contains(&shard.server)
}

fn is_eligible(view: &ClusterView, node: &NodeView) -> bool {
    is_well(node) && !node.late && lived(view, node) >= wait(view)
}

fn is_well(node: &NodeView) -> bool {
    node.live && !node.draining && node.grey_since.is_none()
}

fn lived(view: &ClusterView, node: &NodeView) -> Duration {
    view.now.since(node.joined_since)
}

/// How long a node must have lived: as a cluster begins, nobody waits for long.
fn wait(view: &ClusterView) -> Duration {
    let lives =
        |span| view.nodes.values().any(|node| node.live && !node.draining && lived(view, node) >= span);
    match () {
        () if lives(JOINER_WAITS) => JOINER_WAITS,
        () if lives(FIRST_JOINERS_WAIT) => Duration::ZERO,
        () => FIRST_JOINERS_WAIT,
    }
}

/// Every move keeps the rules.
pub fn plan(view: &ClusterView, moves: &[Move], what: &str) {
    assert_eq!(moves, forebay_cluster::plan(view), "{what}: the same view has another plan");
    let mut moved = BTreeSet::new();
    for it in moves {
        assert!(moved.insert(it.shard), "{what}: {it:?} moves twice");
        destination(view, it, what);
        reason(view, it, what);
    }
    concurrency(view, moves, what);
    let outvoted: BTreeSet<_> =
        moves.iter().filter(|it| it.reason == Reason::Outvoted).map(|it| it.from.clone()).collect();
    assert!(outvoted.len() <= 1, "{what}: {outvoted:?} hand over at once");
    for (id, shard) in &view.shards {
        let is_new = shard.home_since.is_some_and(|since| view.now.since(since) < NEW_HOME_STAYS);
        let waits = needs_home(view, shard) && !moved.contains(id);
        assert!(!waits || is_new, "{what}: {id} has no live home, and could have one: {shard:?}");
    }
}

fn destination(view: &ClusterView, it: &Move, what: &str) {
    let shard = &view.shards[&it.shard];
    assert_eq!(it.from.as_ref(), shard.home.as_ref().map(|home| &home.node), "{what}: {it:?}");
    assert_ne!(it.from, it.to, "{what}: {it:?}");
    match &it.to {
        None => assert_eq!(shard.state, CatalogShardState::Offline, "{what}: {it:?}"),
        Some(to) => {
            assert_ne!(shard.state, CatalogShardState::Offline, "{what}: {it:?}");
            assert!(may_take(view, &view.nodes[to], shard), "{what}: {it:?} to {:?}", view.nodes[to]);
        }
    }
}

fn reason(view: &ClusterView, it: &Move, what: &str) {
    let shard = &view.shards[&it.shard];
    let home = it.from.as_ref().and_then(|from| view.nodes.get(from));
    let Some(home) = home.filter(|home| home.live) else {
        assert!(it.reason.is_failover(), "{what}: {it:?}");
        return;
    };
    let long_grey = home.grey_since.is_some_and(|since| view.now.since(since) >= OUTVOTED_AFTER);
    let live = view.nodes.values().filter(|node| node.live).count();
    let may = match it.reason {
        Reason::Offline => shard.state == CatalogShardState::Offline,
        Reason::Homeless | Reason::NodeGone => false,
        Reason::ServerUnreached => !home.servers.contains(&shard.server),
        Reason::Stuck => shard.stuck,
        Reason::Draining => home.draining,
        Reason::Outvoted => long_grey && live > 2,
        Reason::Balance => {
            let has_stayed = shard.home_since.is_none_or(|since| view.now.since(since) >= MOVED_STAYS);
            let is_pinned = shard.home.as_ref().is_some_and(|home| home.pinned);
            may_take(view, home, shard)
                && has_stayed
                && !is_pinned
                && shard.owner == it.from
                && !(is_settled(view) && is_even(view))
        }
    };
    assert!(may, "{what}: {it:?} from {home:?}");
}

/// Whether all shards are where they may be, so that a move can only be for evenness between two nodes.
fn is_settled(view: &ClusterView) -> bool {
    let served = view.shards.values().filter(|it| it.state != CatalogShardState::Offline);
    let mut homes = served.map(|it| (it, it.home.as_ref()));
    homes.all(|(it, home)| {
        let node = home.and_then(|home| view.nodes.get(&home.node));
        !it.stuck && node.is_some_and(|node| may_take(view, node, it))
    })
}

fn needs_home(view: &ClusterView, shard: &ShardView) -> bool {
    let home = shard.home.as_ref().and_then(|home| view.nodes.get(&home.node)).filter(|node| node.live);
    let has_live = home.is_some_and(|node| node.servers.contains(&shard.server));
    let somebody = view.nodes.values().any(|node| may_take(view, node, shard));
    // One that may have it soon serves it.
    let owner = shard.owner.as_ref().and_then(|owner| view.nodes.get(owner)).filter(|_| !shard.silent);
    let serves =
        |node: &NodeView| is_well(node) && !is_eligible(view, node) && node.servers.contains(&shard.server);
    let is_kept = home.is_none() && owner.is_some_and(serves);
    // A dead owner that still renews it may be cut off from the catalog alone. Few such shards move at once.
    let is_renewed = owner.is_some_and(|owner| !owner.live);
    let is_kept = is_kept || is_renewed;
    shard.state != CatalogShardState::Offline && !has_live && !is_kept && somebody
}

/// A node that takes part in a move of choice takes part in few.
fn concurrency(view: &ClusterView, moves: &[Move], what: &str) {
    let mut busy = BTreeMap::<&NodeName, usize>::new();
    for shard in view.shards.values() {
        let (Some(home), Some(owner)) = (&shard.home, &shard.owner) else { continue };
        if home.node != *owner && view.nodes.get(owner).is_some_and(|node| node.live) {
            [&home.node, owner].into_iter().for_each(|node| *busy.entry(node).or_default() += 1);
        }
    }
    let chosen = moves.iter().filter(|it| !it.reason.is_failover());
    let mut begin = BTreeSet::new();
    for node in chosen.flat_map(|it| [&it.from, &it.to]).flatten() {
        *busy.entry(node).or_default() += 1;
        begin.insert(node);
    }
    for node in begin {
        assert!(busy[node] <= MOVES_MAX, "{what}: {node} takes part in {} moves", busy[node]);
    }
}

/// How many shards have each eligible node as their home.
fn counts(view: &ClusterView, server: Option<&str>) -> BTreeMap<NodeName, usize> {
    let eligible = view.nodes.iter().filter(|(_, node)| is_eligible(view, node));
    let mut counts: BTreeMap<_, _> = eligible.map(|(name, _)| (name.clone(), 0)).collect();
    let served = view.shards.values().filter(|it| it.state != CatalogShardState::Offline);
    for shard in served.filter(|it| server.is_none_or(|server| it.server == server)) {
        if let Some(count) = shard.home.as_ref().and_then(|home| counts.get_mut(&home.node)) {
            *count += 1;
        }
    }
    counts
}

/// How a cluster is once nothing moves any more.
pub fn end(view: &ClusterView, what: &str) {
    for (id, shard) in &view.shards {
        assert!(!needs_home(view, shard), "{what}: {id} has no home");
        let home = shard.home.as_ref().and_then(|home| view.nodes.get(&home.node));
        let leaves = home.is_some_and(|node| node.draining);
        let somebody = view.nodes.values().any(|node| may_take(view, node, shard));
        assert!(!(leaves && somebody), "{what}: {id} is at a node that drains");
        let offline = shard.state == CatalogShardState::Offline;
        assert!(!(offline && shard.home.is_some()), "{what}: {id} is offline and has a home");
    }
    let pinned = view.shards.values().any(|it| it.home.as_ref().is_some_and(|home| home.pinned));
    let servers: BTreeSet<_> = view.shards.values().map(|it| it.server.clone()).collect();
    let eligible = || view.nodes.values().filter(|node| is_eligible(view, node));
    if pinned || eligible().any(|node| !servers.is_subset(&node.servers)) {
        return;
    }
    assert!(is_even(view), "{what}: not even: {view:?}");
}

/// Whether eligible nodes are within one of each other, in all and per server.
fn is_even(view: &ClusterView) -> bool {
    let servers: BTreeSet<_> = view.shards.values().map(|it| Some(it.server.as_str())).collect();
    servers.into_iter().chain([None]).all(|server| {
        let counts = counts(view, server);
        let (least, most) = (counts.values().min().copied(), counts.values().max().copied());
        most.unwrap_or(0) <= least.unwrap_or(0) + 1
    })
}
