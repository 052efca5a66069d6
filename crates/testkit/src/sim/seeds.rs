//! Runs many seeds, or repeats one.
//!
//! `FOREBAY_SIM_SEEDS=N` runs N seeds instead of the usual number, from `FOREBAY_SIM_FROM` on;
//! `FOREBAY_SIM_SEED=n` repeats one seed and prints its trace. `FOREBAY_SIM_DIGESTS=file` writes each seed's
//! digest to a file. A change that keeps the behaviour keeps the digests.

use std::{
    collections::BTreeMap,
    env,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use super::{
    coverage::Coverage,
    plan::Plan,
    run::{Report, run},
};

/// Result of many seeds.
#[derive(Debug, Default)]
pub struct Seeds {
    /// How many they were.
    pub count: u64,
    /// Which situations they met.
    pub coverage: Coverage,
    /// Seeds that break an invariant.
    pub broken: Vec<u64>,
    /// Digests of their runs.
    digests: BTreeMap<u64, u64>,
}

fn number(name: &str) -> Option<u64> {
    env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")))
}

/// Runs as many seeds as usual, or as the environment says. Panics if one breaks an invariant. Returns what
/// they met; nothing, if one seed was repeated.
pub fn run_seeds(usual: u64, plan: impl Fn(u64) -> Plan + Sync) -> Option<Seeds> {
    if let Some(seed) = number("FOREBAY_SIM_SEED") {
        let report = run(Plan { trace: true, ..plan(seed) });
        print(seed, &report);
        assert!(report.findings.is_empty(), "seed {seed} breaks {} invariants", report.findings.len());
        return None;
    }
    let count = number("FOREBAY_SIM_SEEDS").unwrap_or(usual);
    let from = number("FOREBAY_SIM_FROM").unwrap_or(0);
    let (next, all) = (AtomicU64::new(from), Mutex::new(Seeds { count, ..Seeds::default() }));
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= from + count {
                        return;
                    }
                    let report = run(plan(seed));
                    let seeds = &mut *all.lock().unwrap_or_else(PoisonError::into_inner);
                    seeds.digests.insert(seed, report.hash);
                    seeds.coverage.add(&report.coverage);
                    if let Some((invariant, what)) = report.findings.first() {
                        let kind = plan(seed).kind;
                        println!("FOREBAY_SIM_SEED={seed} ({kind:?}): {invariant}: {what}");
                        seeds.broken.push(seed);
                    }
                }
            });
        }
    });
    let seeds = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Ok(path) = env::var("FOREBAY_SIM_DIGESTS") {
        let lines: String =
            seeds.digests.iter().map(|(seed, hash)| format!("{seed} {hash:016x}\n")).collect();
        std::fs::write(&path, lines).unwrap_or_else(|error| panic!("{path}: {error}"));
    }
    println!("{count} seeds: {:#?}", seeds.coverage);
    let broken = &seeds.broken;
    assert!(broken.is_empty(), "{} of {count} seeds break an invariant: {broken:?}", broken.len());
    Some(seeds)
}

fn print(seed: u64, report: &Report) {
    for line in &report.lines {
        println!("{line}");
    }
    println!("{:#?}", report.coverage);
    for (invariant, what) in &report.findings {
        println!("seed {seed}: {invariant}: {what}");
    }
}

/// Runs seeds twice. Panics if one does not do the same again.
pub fn repeat_seeds(seeds: impl Iterator<Item = u64>, plan: impl Fn(u64) -> Plan) {
    for seed in seeds {
        let first = run(Plan { trace: true, ..plan(seed) });
        let second = run(Plan { trace: true, ..plan(seed) });
        if first.hash != second.hash {
            let pairs = first.lines.iter().zip(&second.lines);
            let differ = pairs.clone().position(|(one, other)| one != other);
            let at = differ.unwrap_or_else(|| first.lines.len().min(second.lines.len()));
            let (one, other) = (first.lines.get(at), second.lines.get(at));
            panic!("seed {seed} differs at line {at}:\n{one:?}\n{other:?}");
        }
    }
}
