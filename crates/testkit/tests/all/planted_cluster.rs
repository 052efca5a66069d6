//! Tests the checker of clusters: it must find each planted bug within a number of seeds.
//!
//! Bugs are planted in membership (`Bug`) and in the catalog (`CatalogBug`). Each run mostly has the fault in
//! which the bug shows.

use forebay_membership::planted::{Bug, plant};
use forebay_testkit::{
    fake::CatalogBug,
    sim::{Fault, Kind, Plan, find_bug},
};

/// How many runs may be needed to find a bug.
const RUNS: u64 = 60;

/// Runs clusters until one of them breaks this invariant.
fn found(name: &str, invariant: &str, focus: Fault, plan: impl Fn(&mut Plan)) {
    find_bug(name, RUNS, &[Kind::Cluster], &[invariant], |_, next| {
        next.focus = Some(focus);
        plan(next);
    });
}

macro_rules! membership {
    ($($test:ident: $bug:ident beside $fault:ident breaks $invariant:literal;)+) => {
        $(
            #[test]
            fn $test() {
                // A bug is planted for one thread, and a run uses only one.
                plant(Some(Bug::$bug));
                found(stringify!($bug), $invariant, Fault::$fault, |_| {});
            }
        )+
    };
}

membership! {
    a_shard_given_unasked: GivesUnasked beside Pin breaks "SHARD-SERVED";
    a_node_voted_out_that_asks_whom_it_does_not_reach: AsksUnreached beside Cut breaks "SHARD-SERVED";
    a_node_without_a_catalog_taken_for_dead: CutOffFromCatalogIsDead beside CutCatalog breaks "MOVES-BOUNDED";
    an_older_catalog_that_is_followed: FollowsOlderCatalog beside CatalogGoesBack breaks "MOVES-BOUNDED";
    a_hung_node_that_beats: BeatsWhileHung beside EngineStandsStill breaks "SHARD-SERVED";
    shards_without_an_owner_taken_by_all: TakesOutOfTurn beside CatalogAway breaks "IN-TURN";
    shards_without_an_owner_taken_by_nobody: TakesNothingUnowned beside CatalogAway breaks "SHARD-SERVED";
    silent_nodes_that_are_taken_for_living: SilentNodesForgotten beside Fails breaks "SHARD-SERVED";
    shards_that_move_again_at_once: MovesForgotten beside Pin breaks "MOVES-BOUNDED";
    many_moves_at_once: MovesUnderWayIgnored beside Drain breaks "MOVES-BOUNDED";
    a_cluster_that_is_never_even: NeverBalances beside Fails breaks "BALANCE";
}

#[test]
fn an_assignment_written_without_compare_and_set() {
    let bug = |plan: &mut Plan| plan.catalog_bug = Some(CatalogBug::AssignsWithoutCompare);
    found("AssignsWithoutCompare", "MOVES-BOUNDED", Fault::Pin, bug);
}
