//! Clusters with a catalog under a seeded simulation. `sim/seeds.rs` says how to run more seeds, and how to
//! repeat one.

use forebay_testkit::sim::{Kind, Plan, repeat_seeds, run_seeds};

/// How many seeds a plain test run uses.
const SEEDS: u64 = 36;
/// With so many, all situations are met.
const ENOUGH: u64 = 36;

fn plan(seed: u64) -> Plan {
    Plan::of(Kind::Cluster, seed)
}

#[test]
fn every_seed_keeps_every_invariant() {
    let Some(seeds) = run_seeds(SEEDS, plan) else { return };
    if seeds.count >= ENOUGH {
        let missing = seeds.coverage.cluster.missing(seeds.count);
        assert_eq!(missing, Vec::<String>::new(), "the runs met these situations too rarely");
    }
}

#[test]
fn the_same_seed_does_the_same() {
    repeat_seeds(0..3, plan);
}
