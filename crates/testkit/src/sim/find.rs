//! Searches for a run that finds a planted bug.

use std::collections::BTreeMap;

use super::{
    plan::{Kind, Plan},
    run::run,
};

/// The first seed. Other tests begin with 0.
const FROM: u64 = 1_000_000;

/// Runs plans of these kinds until one of them breaks one of these invariants. `plan` changes each, by its
/// number. Panics if that does not happen within so many runs.
pub fn find_bug(name: &str, runs: u64, kinds: &[Kind], invariants: &[&str], plan: impl Fn(u64, &mut Plan)) {
    let mut others = BTreeMap::<&str, (u64, String)>::new();
    for number in 0..runs {
        let kind = kinds[(number % kinds.len() as u64) as usize];
        let mut next = Plan::of(kind, FROM + number);
        plan(number, &mut next);
        for (invariant, what) in run(next).findings {
            if invariants.contains(&invariant) {
                println!("{name} was found in run {number} ({kind:?}): {invariant}: {what}");
                return;
            }
            others.entry(invariant).or_insert((number, what));
        }
    }
    panic!("{name} was not found in {runs} runs as one of {invariants:?}, but as: {others:#?}");
}
