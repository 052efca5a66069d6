//! The engine under a seeded simulation.
//!
//! `FOREBAY_SIM_SEEDS=N` runs N seeds instead of the usual number, from `FOREBAY_SIM_FROM` on;
//! `FOREBAY_SIM_SEED=n` repeats one seed and prints its trace. `FOREBAY_SIM_DIGESTS=file` writes each seed's
//! digest to a file. A change that keeps the behaviour keeps the digests.

use std::{
    collections::BTreeMap,
    env,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use forebay_testkit::sim::{Coverage, Plan, Report, run};

/// How many seeds a plain test run uses.
const SEEDS: u64 = 2_000;

fn number(name: &str) -> Option<u64> {
    env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")))
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

#[test]
fn every_seed_keeps_every_invariant() {
    if let Some(seed) = number("FOREBAY_SIM_SEED") {
        let report = run(Plan { trace: true, ..Plan::new(seed) });
        print(seed, &report);
        assert!(report.findings.is_empty(), "seed {seed} breaks {} invariants", report.findings.len());
        return;
    }
    let count = number("FOREBAY_SIM_SEEDS").unwrap_or(SEEDS);
    let from = number("FOREBAY_SIM_FROM").unwrap_or(0);
    let (next, all) = (AtomicU64::new(from), Mutex::new((Coverage::default(), Vec::new(), BTreeMap::new())));
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= from + count {
                        return;
                    }
                    let report = run(Plan::new(seed));
                    let (coverage, broken, digests) = &mut *all.lock().unwrap();
                    digests.insert(seed, report.hash);
                    coverage.add(&report.coverage);
                    if let Some((invariant, what)) = report.findings.first() {
                        let plan = Plan::new(seed);
                        println!("FOREBAY_SIM_SEED={seed} ({:?}): {invariant}: {what}", plan.kind);
                        broken.push(seed);
                    }
                }
            });
        }
    });
    let (coverage, broken, digests) = all.into_inner().unwrap();
    if let Ok(path) = env::var("FOREBAY_SIM_DIGESTS") {
        let lines: String = digests.iter().map(|(seed, hash)| format!("{seed} {hash:016x}\n")).collect();
        std::fs::write(&path, lines).unwrap_or_else(|error| panic!("{path}: {error}"));
    }
    println!("{count} seeds: {coverage:#?}");
    assert!(broken.is_empty(), "{} of {count} seeds break an invariant: {broken:?}", broken.len());
    if count >= SEEDS {
        assert_eq!(coverage.missing(), Vec::<String>::new(), "the runs met these situations too rarely");
    }
}

#[test]
fn the_same_seed_does_the_same() {
    for seed in 0..24 {
        let first = run(Plan { trace: true, ..Plan::new(seed) });
        let second = run(Plan { trace: true, ..Plan::new(seed) });
        if first.hash != second.hash {
            let pairs = first.lines.iter().zip(&second.lines);
            let differ = pairs.clone().position(|(one, other)| one != other);
            let at = differ.unwrap_or_else(|| first.lines.len().min(second.lines.len()));
            let (one, other) = (first.lines.get(at), second.lines.get(at));
            panic!("seed {seed} differs at line {at}:\n{one:?}\n{other:?}");
        }
    }
}
