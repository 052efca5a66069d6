//! Cost of a turn of the engine's event loop, over a store that does nothing: against the numbers of shards,
//! topics, waiting polls, queued enqueues and open leases. One axis is varied at a time, and one node has
//! much of everything. Then nodes among others, which follow topics of each other.
//!
//! The clock is the CPU time of the measuring thread. A point that misses a target is measured again, and
//! of each figure the lowest counts: what the engine does at a point, it does in every round. So other
//! processes of the machine, and pages that the kernel has to find, do not count as the engine's.

mod clock;
mod load;
mod measure;
mod nodes;
mod store;
mod turns;

use std::time::Duration;

use anyhow::{Context as _, ensure};

use self::{
    clock::on_own_thread,
    measure::{PointMeasurements, STEPS, Setup},
    nodes::{NODES_STEPS, NodesSetup},
};

/// A turn that takes longer keeps others waiting.
const LONGEST_MAX: Duration = Duration::from_millis(5);
/// Along an axis an enqueue costs at most so many times what it costs where it is cheapest.
const FLAT_FACTOR: u32 = 2;
/// How often a point is measured that misses a target.
const ROUNDS_MAX: usize = 3;

/// Figure that is varied, and its points with their names.
type Axis = (&'static str, Vec<(String, Setup)>);

/// The points that are measured.
fn axes() -> Vec<Axis> {
    let base = Setup::default();
    let named = |setups: Vec<(usize, Setup)>| -> Vec<(String, Setup)> {
        setups.into_iter().map(|(value, setup)| (value.to_string(), setup)).collect()
    };
    let shards = [1, 4, 16, 64, 256].map(|shards| (shards as usize, Setup { shards, ..base }));
    let topics = [10, 1_000, 100_000, 1_000_000].map(|topics| (topics as usize, Setup { topics, ..base }));
    let polls = [0, 100, 10_000, 40_000].map(|polls| (polls, Setup { polls, ..base }));
    let handed_off =
        [16, 100, 10_000, 40_000].map(|polls| (polls, Setup { polls, handed_off: true, ..base }));
    let queued = [0, 1_000, 50_000].map(|queued| (queued, Setup { queued, ..base }));
    let leases = [0, 1_000, 100_000, 1_000_000].map(|leases| (leases as usize, Setup { leases, ..base }));
    let prefixes = [0, 1, 64].map(|prefixes| (prefixes, Setup { prefixes, topics: 100_000, ..base }));
    let one_shard = Setup { shards: 1, topics: 1_000_000, leases: 1_000_000, ..base };
    let two_slow = Setup { shards: 2, queued: 100_000, all_slow: true, ..base };
    let large = Setup { shards: 64, topics: 1_000_000, polls: 10_000, leases: 1_000_000, ..base };
    vec![
        ("shards", named(shards.into())),
        ("topics", named(topics.into())),
        ("waiting polls", named(polls.into())),
        ("polls of the item's topic", named(handed_off.into())),
        ("queued enqueues", named(queued.into())),
        ("open leases", named(leases.into())),
        ("prefixes, 100,000 topics", named(prefixes.into())),
        ("one shard of 1M topics and 1M leases", vec![(String::new(), one_shard)]),
        ("two slow shards, 100,000 queued enqueues", vec![(String::new(), two_slow)]),
        ("64 shards, 1M topics, 10,000 polls, 1M leases", vec![(String::new(), large)]),
    ]
}

/// A point, and what was measured there.
struct Point {
    name: String,
    setup: Setup,
    measured: PointMeasurements,
}

/// Measures along each axis, and prints a line for each point. Fails if a target was missed.
pub async fn run() -> anyhow::Result<()> {
    // As a node does: it would be the system that is measured, which clears them.
    #[cfg(target_os = "linux")]
    rustix::thread::disable_transparent_huge_pages(true).context("cannot do without huge pages")?;
    let steps = STEPS.map(|step| format!("{step:>9}")).concat();
    println!("{:>46} {:>11}{steps}", "", "µs/enqueue");
    let mut missed = Vec::new();
    for (axis, points) in axes() {
        let points = measure_axis(axis, points).await?;
        points.iter().for_each(|point| println!("{}", line(point)));
        let cheapest = cheapest(&points);
        for Point { name, measured, .. } in &points {
            if measured.longest() > LONGEST_MAX {
                missed.push(format!("{name}: a turn took {:?}", measured.longest()));
            }
            if measured.per_enqueue > cheapest * FLAT_FACTOR {
                missed.push(format!(
                    "{name}: an enqueue took {:?}, elsewhere {cheapest:?}",
                    measured.per_enqueue
                ));
            }
        }
    }
    missed.extend(run_nodes().await?);
    ensure!(missed.is_empty(), "targets were missed:\n{}", missed.join("\n"));
    println!(
        "no turn took longer than {LONGEST_MAX:?}, and every axis is flat within a factor of {FLAT_FACTOR}"
    );
    Ok(())
}

/// Nodes among others that are measured.
fn nodes() -> Vec<(&'static str, NodesSetup)> {
    let base = NodesSetup { nodes: 2, shards: 128, topics: 100_000, followed: 10_000, polls: 10_000 };
    vec![
        ("2 other nodes", base),
        ("20 other nodes", NodesSetup { nodes: 20, followed: 2_500, ..base }),
        (
            "99 other nodes with 936 shards, 1M topics",
            NodesSetup { nodes: 99, shards: 936, topics: 1_000_000, followed: 500, ..base },
        ),
    ]
}

/// Measures nodes among others, and prints a line for each. Returns the targets that were missed.
async fn run_nodes() -> anyhow::Result<Vec<String>> {
    println!("\n{:>58}{}", "", NODES_STEPS.map(|step| format!("{step:>9}")).concat());
    let mut missed = Vec::new();
    for (name, setup) in nodes() {
        let mut longest = [Duration::MAX; NODES_STEPS.len()];
        for _ in 0..ROUNDS_MAX {
            let measured = on_own_thread(move || nodes::measure(setup)).await.context(name)?;
            longest = std::array::from_fn(|step| longest[step].min(measured[step]));
            if longest.iter().all(|turn| *turn <= LONGEST_MAX) {
                break;
            }
        }
        println!("{name:>58}{}", columns(longest));
        let longest = longest.into_iter().max().unwrap_or_default();
        if longest > LONGEST_MAX {
            missed.push(format!("{name}: a turn took {longest:?}"));
        }
    }
    Ok(missed)
}

/// Measures the points of an axis: those that miss a target again, and the lower figures count.
async fn measure_axis(axis: &str, setups: Vec<(String, Setup)>) -> anyhow::Result<Vec<Point>> {
    let mut points = Vec::new();
    for (value, setup) in setups {
        let name = format!("{value} {axis}").trim().to_owned();
        let measured = on_own_thread(move || measure::measure(setup)).await.with_context(|| name.clone())?;
        points.push(Point { name, setup, measured });
    }
    for _ in 1..ROUNDS_MAX {
        let cheapest = cheapest(&points);
        for Point { name, setup, measured } in &mut points {
            if measured.longest() > LONGEST_MAX || measured.per_enqueue > cheapest * FLAT_FACTOR {
                let setup = *setup;
                let again = on_own_thread(move || measure::measure(setup)).await;
                *measured = measured.min(again.with_context(|| name.clone())?);
            }
        }
    }
    Ok(points)
}

/// Returns the cost of an enqueue where it is cheapest.
fn cheapest(points: &[Point]) -> Duration {
    points.iter().map(|point| point.measured.per_enqueue).min().unwrap_or_default()
}

fn line(Point { name, measured, .. }: &Point) -> String {
    let per_enqueue = measured.per_enqueue.as_secs_f64() * 1e6;
    format!("{name:>46} {per_enqueue:>11.1}{}", columns(measured.longest))
}

/// The longest turn of each step, in milliseconds.
fn columns<const STEPS: usize>(longest: [Duration; STEPS]) -> String {
    longest.map(|time| format!("{:>9.2}", time.as_secs_f64() * 1e3)).concat()
}
