//! The engine under a seeded simulation. `sim/seeds.rs` says how to run more seeds, and how to repeat one.

use forebay_testkit::sim::{Plan, repeat_seeds, run_seeds};

/// How many seeds a plain test run uses.
const SEEDS: u64 = 1_200;

#[test]
fn every_seed_keeps_every_invariant() {
    let Some(seeds) = run_seeds(SEEDS, Plan::new) else { return };
    if seeds.count >= SEEDS {
        let missing = seeds.coverage.missing(seeds.count);
        assert_eq!(missing, Vec::<String>::new(), "the runs met these situations too rarely");
    }
}

#[test]
fn the_same_seed_does_the_same() {
    repeat_seeds(0..24, Plan::new);
}
