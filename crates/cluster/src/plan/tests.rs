//! Plans of small clusters.

use std::{collections::BTreeMap, time::Duration};

use forebay_store::{CatalogShardState, Home};
use forebay_types::{Monotonic, NodeName, ShardId};

use super::*;
use crate::view::{NodeView, ShardView};

const NOW: u64 = 1_000;

fn at(seconds: u64) -> Monotonic {
    Monotonic::from_start(Duration::from_secs(seconds))
}

fn name(name: &str) -> NodeName {
    name.parse().unwrap()
}

/// A cluster in which everything has been as it is for long. `shards` says the server of each shard and its
/// home, if any; homes own their shards.
fn cluster(nodes: &[&str], shards: &[(u32, &str, &str)]) -> ClusterView {
    let servers = shards.iter().map(|(_, server, _)| (*server).to_owned()).collect();
    let node =
        NodeView { live: true, late: false, draining: false, joined_since: at(0), servers, grey_since: None };
    let shard = |server: &str, home: &str| ShardView {
        server: server.to_owned(),
        state: CatalogShardState::Active,
        home: (!home.is_empty()).then(|| Home { node: name(home), pinned: false }),
        home_since: Some(at(0)),
        owner: (!home.is_empty()).then(|| name(home)),
        silent: false,
        stuck: false,
        steady: true,
    };
    ClusterView {
        now: at(NOW),
        nodes: nodes.iter().map(|it| (name(it), node.clone())).collect(),
        shards: shards.iter().map(|(id, server, home)| (ShardId(*id), shard(server, home))).collect(),
    }
}

fn node<'a>(view: &'a mut ClusterView, node: &str) -> &'a mut NodeView {
    view.nodes.get_mut(&name(node)).unwrap()
}

fn shard(view: &mut ClusterView, id: u32) -> &mut ShardView {
    view.shards.get_mut(&ShardId(id)).unwrap()
}

/// A node dies, and with it the signs of life in its shards.
fn die(view: &mut ClusterView, dead: &str) {
    node(view, dead).live = false;
    view.shards.values_mut().filter(|it| it.owner == Some(name(dead))).for_each(|it| it.silent = true);
}

/// Carries the moves out at once.
fn apply(view: &mut ClusterView, moves: &[Move]) {
    for it in moves {
        let shard = view.shards.get_mut(&it.shard).unwrap();
        shard.home = it.to.clone().map(|node| Home { node, pinned: false });
        (shard.home_since, shard.owner) = (Some(view.now), it.to.clone());
    }
}

/// Plans until nothing moves. Returns how many moves there were.
fn settle(view: &mut ClusterView) -> usize {
    let mut moved = 0;
    for _ in 0..1_000 {
        let moves = plan(view);
        if moves.is_empty() {
            return moved;
        }
        moved += moves.len();
        apply(view, &moves);
        view.now = view.now.plus(MOVED_STAYS);
    }
    panic!("it never settles: {view:?}");
}

/// How many shards each node has, by name; of one server, or of all.
fn counts(view: &ClusterView, server: Option<&str>) -> Vec<usize> {
    let mut counts: BTreeMap<_, _> = view.nodes.keys().map(|name| (name.clone(), 0)).collect();
    for it in view.shards.values().filter(|it| server.is_none_or(|server| it.server == server)) {
        if let Some(home) = &it.home {
            *counts.entry(home.node.clone()).or_default() += 1;
        }
    }
    counts.into_values().collect()
}

fn sorted(mut counts: Vec<usize>) -> Vec<usize> {
    counts.sort_unstable();
    counts
}

#[test]
fn four_shards_on_three_nodes_are_two_and_one_and_one() {
    let shards = [1, 2, 3, 4].map(|id| (id, "s", ""));
    let mut view = cluster(&["a", "b", "c"], &shards);
    let moves = plan(&view);
    assert_eq!((moves.len(), moves[0].reason), (4, Reason::Homeless));
    apply(&mut view, &moves);
    assert_eq!(sorted(counts(&view, None)), [1, 1, 2]);
    assert_eq!(plan(&view), []);
}

#[test]
fn a_joiner_takes_its_share_and_no_more_moves() {
    let shards: Vec<_> = (1..=12).map(|id| (id, "s", ["a", "b", "c"][id as usize % 3])).collect();
    let mut view = cluster(&["a", "b", "c", "d"], &shards);
    node(&mut view, "d").joined_since = at(NOW - 4);
    assert_eq!(plan(&view), [], "it has just joined");
    node(&mut view, "d").joined_since = at(NOW - 5);
    let first = plan(&view);
    assert_eq!(first.len(), MOVES_MAX, "{first:?}");
    assert!(first.iter().all(|it| it.to == Some(name("d")) && it.reason == Reason::Balance));
    assert_eq!(settle(&mut view), 3);
    assert_eq!(counts(&view, None), [3, 3, 3, 3]);
}

#[test]
fn while_a_node_joins_nothing_moves_for_evenness() {
    let shards: Vec<_> = (1..=6).map(|id| (id, "s", "a")).collect();
    let mut view = cluster(&["a", "b", "c"], &shards);
    node(&mut view, "c").joined_since = at(NOW - 4);
    assert_eq!(plan(&view), [], "two of what b would get now would go on to c");
    node(&mut view, "c").joined_since = at(NOW - 5);
    assert_eq!(settle(&mut view), 4);
    assert_eq!(counts(&view, None), [2, 2, 2]);
    // A failover waits for no joiner.
    node(&mut view, "c").joined_since = view.now;
    die(&mut view, "b");
    assert_eq!(plan(&view).iter().map(|it| it.reason).collect::<Vec<_>>(), [Reason::NodeGone; 2]);
}

#[test]
fn shards_of_a_server_that_may_be_away_do_not_move_for_evenness() {
    let shards = [(1, "s", "a"), (2, "s", "a"), (3, "t", "a"), (4, "t", "a")];
    let mut view = cluster(&["a", "b"], &shards);
    (1..=2).for_each(|id| shard(&mut view, id).steady = false);
    let moves = plan(&view);
    assert_eq!(moves.len(), 1, "{moves:?}");
    assert!(moves[0].shard.0 > 2, "{moves:?}");
}

#[test]
fn a_shard_that_has_moved_stays_unless_its_node_fails_or_drains() {
    let shards: Vec<_> = (1..=4).map(|id| (id, "s", "a")).collect();
    let mut view = cluster(&["a", "b"], &shards);
    (1..=4).for_each(|id| shard(&mut view, id).home_since = Some(at(NOW - 29)));
    assert_eq!(plan(&view), []);
    view.now = at(NOW + 1);
    assert_eq!(plan(&view).len(), 2);
    view.now = at(NOW);
    node(&mut view, "a").draining = true;
    assert_eq!(plan(&view).len(), MOVES_MAX);
    die(&mut view, "a");
    assert_eq!(plan(&view).len(), 4);
}

#[test]
fn a_drained_node_loses_all_its_shards() {
    let shards: Vec<_> = (1..=9).map(|id| (id, "s", ["a", "b", "c"][id as usize % 3])).collect();
    let mut view = cluster(&["a", "b", "c"], &shards);
    node(&mut view, "b").draining = true;
    assert_eq!(settle(&mut view), 3);
    assert_eq!(sorted(counts(&view, None)), [0, 4, 5]);
    assert_eq!(counts(&view, None)[1], 0);
}

#[test]
fn a_new_home_is_left_alone_for_a_while() {
    type Lacks = fn(&mut ClusterView);
    let lacks: [(Reason, Lacks); 3] = [
        (Reason::NodeGone, |view| node(view, "b").live = false),
        (Reason::ServerUnreached, |view| node(view, "b").servers.clear()),
        (Reason::Stuck, |view| shard(view, 2).stuck = true),
    ];
    for (reason, lack) in lacks {
        let mut view = cluster(&["a", "b"], &[(1, "db", "a"), (2, "db", "b")]);
        lack(&mut view);
        shard(&mut view, 2).home_since = Some(at(NOW - 1));
        assert_eq!(plan(&view), [], "{reason}");
        shard(&mut view, 2).home_since = Some(at(NOW - 2));
        assert_eq!(plan(&view)[0].reason, reason);
    }
    // The shards of a drained node move without a wait, and so do those of a node that is gone.
    let new = || {
        let mut view = cluster(&["a", "b"], &[(1, "db", "a"), (2, "db", "b")]);
        shard(&mut view, 2).home_since = Some(at(NOW - 1));
        view
    };
    let (mut drained, mut left) = (new(), new());
    node(&mut drained, "b").draining = true;
    left.nodes.remove(&name("b"));
    assert_eq!((plan(&drained).len(), plan(&left).len()), (1, 1));
}

#[test]
fn the_shards_of_a_dead_node_spread_at_once_per_server_too() {
    let servers = ["s", "t"];
    let shards: Vec<_> =
        (0..24).map(|id| (id, servers[id as usize % 2], ["a", "b", "c", "d"][id as usize / 2 % 4])).collect();
    let mut view = cluster(&["a", "b", "c", "d"], &shards);
    assert_eq!(plan(&view), []);
    die(&mut view, "c");
    let moves = plan(&view);
    assert!(moves.iter().all(|it| it.reason == Reason::NodeGone && it.from == Some(name("c"))));
    assert_eq!(moves.len(), 6);
    apply(&mut view, &moves);
    assert_eq!(counts(&view, None), [8, 8, 0, 8]);
    for server in servers {
        assert_eq!(counts(&view, Some(server)), [4, 4, 0, 4], "{server}");
    }
    // The same if it has left.
    let mut view = cluster(&["a", "b", "d"], &shards);
    assert_eq!(settle(&mut view), 6);
    assert_eq!(counts(&view, None), [8, 8, 8]);
}

#[test]
fn shards_that_a_dead_node_still_renews_move_two_at_a_time() {
    let shards: Vec<_> = (1..=9).map(|id| (id, "s", ["a", "b", "c"][id as usize % 3])).collect();
    let mut view = cluster(&["a", "b", "c"], &shards);
    node(&mut view, "a").live = false;
    let first = plan(&view);
    assert!(first.iter().all(|it| it.from == Some(name("a")) && it.reason == Reason::NodeGone), "{first:?}");
    assert_eq!(first.len(), MOVES_MAX, "it is perhaps cut off from the catalog alone: {first:?}");
    for it in &first {
        shard(&mut view, it.shard.0).home = it.to.clone().map(|node| Home { node, pinned: false });
    }
    assert_eq!(plan(&view), [], "nobody has them yet");
    die(&mut view, "a");
    assert_eq!(plan(&view).len(), 1, "it is dead, and the rest moves at once");
}

#[test]
fn pins_go_before_evenness() {
    let shards: Vec<_> = (1..=6).map(|id| (id, "s", "a")).collect();
    let mut view = cluster(&["a", "b"], &shards);
    for id in 1..=5 {
        shard(&mut view, id).home.as_mut().unwrap().pinned = true;
    }
    let moves = plan(&view);
    assert_eq!(moves.iter().map(|it| it.shard.0).collect::<Vec<_>>(), [6]);
    // A pin ends with its node: a shard that no node serves helps nobody.
    die(&mut view, "a");
    assert_eq!(plan(&view).len(), 6);
    assert!(changes(&plan(&view)).values().flatten().all(|home| !home.pinned));
}

#[test]
fn a_node_takes_only_what_it_reaches() {
    let shards = [(1, "s", "a"), (2, "s", "a"), (3, "s", "a"), (4, "t", "a"), (5, "t", "b")];
    let mut view = cluster(&["a", "b"], &shards);
    node(&mut view, "b").servers.remove("s");
    assert_eq!(plan(&view), [], "b has as many of t as a, and can have none of s");
    node(&mut view, "a").servers.remove("t");
    let moves = plan(&view);
    assert_eq!((moves.len(), moves[0].shard.0, moves[0].reason), (1, 4, Reason::ServerUnreached));
    // Nobody reaches it: nothing moves.
    node(&mut view, "b").servers.clear();
    assert_eq!(plan(&view), []);
}

#[test]
fn without_an_eligible_node_nothing_moves() {
    let mut view = cluster(&["a", "b"], &[(1, "s", "a"), (2, "s", "b"), (3, "s", "")]);
    for name in ["a", "b"] {
        node(&mut view, name).draining = true;
    }
    assert_eq!(plan(&view), []);
    node(&mut view, "a").live = false;
    assert_eq!(plan(&view), []);
    assert_eq!(plan(&cluster(&[], &[(1, "s", "a")])), []);
}

#[test]
fn an_offline_shard_has_no_home() {
    let mut view = cluster(&["a"], &[(1, "s", "a"), (2, "s", "a")]);
    shard(&mut view, 1).state = CatalogShardState::Offline;
    shard(&mut view, 2).state = CatalogShardState::Draining;
    let moves = plan(&view);
    assert_eq!((moves.len(), moves[0].shard.0, &moves[0].to), (1, 1, &None));
    apply(&mut view, &moves);
    assert_eq!(plan(&view), []);
    shard(&mut view, 1).state = CatalogShardState::Active;
    assert_eq!(plan(&view)[0].to, Some(name("a")));
}

#[test]
fn an_outvoted_node_hands_over_after_a_while_and_one_at_a_time() {
    let shards: Vec<_> = (0..8).map(|id| (id, "s", ["a", "b", "c", "d"][id as usize % 4])).collect();
    let mut view = cluster(&["a", "b", "c", "d"], &shards);
    node(&mut view, "b").grey_since = Some(at(NOW - 7));
    assert_eq!(plan(&view), []);
    node(&mut view, "b").grey_since = Some(at(NOW - 8));
    node(&mut view, "c").grey_since = Some(at(NOW - 20));
    let moves = plan(&view);
    assert_eq!(moves.len(), 2);
    for it in &moves {
        assert_eq!((it.from.clone(), it.reason), (Some(name("b")), Reason::Outvoted));
        assert!(it.to == Some(name("a")) || it.to == Some(name("d")), "a grey node takes none: {it:?}");
    }
    apply(&mut view, &moves);
    assert!(plan(&view).iter().all(|it| it.from == Some(name("c"))));
    // With fewer than three that live, nobody is voted out.
    for dead in ["a", "d"] {
        node(&mut view, dead).live = false;
    }
    assert_eq!(plan(&view).iter().filter(|it| it.reason == Reason::Outvoted).count(), 0);
}

#[test]
fn a_move_under_way_counts_and_is_not_changed() {
    let shards: Vec<_> = (1..=8).map(|id| (id, "s", "a")).collect();
    let mut view = cluster(&["a", "b"], &shards);
    let moves = plan(&view);
    assert_eq!(moves.len(), MOVES_MAX);
    // The wish has changed; the owner has not given them yet.
    for it in &moves {
        view.shards.get_mut(&it.shard).unwrap().home = Some(Home { node: name("b"), pinned: false });
    }
    assert_eq!(plan(&view), []);
    shard(&mut view, moves[0].shard.0).owner = Some(name("b"));
    assert_eq!(plan(&view).len(), 1);
    // The successor dies: the owner, which lives, keeps what it has.
    node(&mut view, "b").live = false;
    let back = plan(&view);
    assert!(back.iter().all(|it| it.to == Some(name("a")) && it.reason == Reason::NodeGone), "{back:?}");
}

#[test]
fn one_view_has_one_plan_and_shards_spread() {
    let shards: Vec<_> = (1..=100).map(|id| (id, "s", "")).collect();
    let view = cluster(&["a", "b", "c", "d", "e"], &shards);
    let moves = plan(&view);
    assert_eq!(moves, plan(&view.clone()));
    let first: BTreeMap<_, _> = moves.iter().take(5).map(|it| (it.to.clone(), ())).collect();
    assert_eq!(first.len(), 5);
    let next: Vec<_> = moves.iter().skip(5).take(5).map(|it| it.to.clone()).collect();
    assert_ne!(next, moves.iter().take(5).map(|it| it.to.clone()).collect::<Vec<_>>(), "not in turns");
}

#[test]
fn a_shard_that_is_stuck_goes_elsewhere_even_if_that_is_uneven() {
    let mut view = cluster(&["a", "b"], &[(1, "db1", "a"), (2, "db1", "b"), (3, "db1", "b")]);
    shard(&mut view, 1).stuck = true;
    // As after the owner gave it up.
    shard(&mut view, 1).owner = None;
    let moves = plan(&view);
    let of_stuck = moves.iter().find(|it| it.shard == ShardId(1)).unwrap();
    assert_eq!((of_stuck.to.clone(), of_stuck.reason), (Some(name("b")), Reason::Stuck));
    // Where nobody else may have it, it stays.
    node(&mut view, "b").servers.clear();
    assert!(plan(&view).iter().all(|it| it.shard != ShardId(1)));
}

#[test]
fn a_node_whose_counter_stands_still_takes_nothing() {
    let mut view = cluster(&["a", "b"], &[(1, "s", "a"), (2, "s", "a"), (3, "s", "b")]);
    assert_eq!(plan(&view), []);
    let mut uneven = cluster(&["a", "b"], &[(1, "s", "a"), (2, "s", "a")]);
    assert_eq!(plan(&uneven).len(), 1);
    node(&mut uneven, "b").late = true;
    assert_eq!(plan(&uneven), [], "others may call it dead");
    node(&mut view, "b").late = true;
    assert_eq!(plan(&view), [], "it keeps what it has");
}

#[test]
fn a_shard_without_a_home_stays_with_a_newcomer_that_serves_it() {
    let mut view = cluster(&["a", "b", "c"], &[(1, "s", "a"), (2, "s", "b")]);
    node(&mut view, "a").live = false;
    node(&mut view, "c").joined_since = at(NOW - 1);
    shard(&mut view, 1).owner = Some(name("c"));
    assert_eq!(plan(&view), [], "c has taken it while the catalog was away");
    shard(&mut view, 1).silent = true;
    assert_eq!(plan(&view)[0].to, Some(name("b")), "nobody serves it");
    shard(&mut view, 1).silent = false;
    node(&mut view, "c").servers.clear();
    assert_eq!(plan(&view)[0].to, Some(name("b")), "c does not reach it any more");
    node(&mut view, "c").servers.insert("s".to_owned());
    view.now = at(NOW + 4);
    assert_eq!(plan(&view)[0].to, Some(name("c")));
}
