//! Runs each scenario in a tiny form against the real program on embedded SQLite, but for nodes that share
//! a server. The benchmark's own checks must pass, and it must write its reports. Speed does not matter here.

use std::{collections::BTreeSet, fs, process::Command};

use serde_json::Value;

/// Short turns with few items. One second suffices for some items even on a busy machine.
const TINY: [&str; 20] = [
    "--database",
    "sqlite",
    "--rounds",
    "1",
    "--measured",
    "1s",
    "--warm-up",
    "200ms",
    "--batch",
    "10",
    "--topics",
    "4",
    "--producers",
    "4",
    "--consumers",
    "4",
    "--max-queued",
    "400",
    "--item-bytes",
    "64",
];

/// The output of a run.
struct Report {
    json: Value,
    page: String,
    stdout: String,
}

/// A machine that is busy with other tests may stall for the whole measured second.
const ATTEMPTS: usize = 3;

/// Runs the benchmark, which must succeed and measure something.
fn run(line: &str) -> Report {
    let mut runs = (0..ATTEMPTS).map(|_| run_once(line));
    runs.find(Report::measured_something)
        .unwrap_or_else(|| panic!("{line}: measured nothing in {ATTEMPTS} attempts"))
}

fn run_once(line: &str) -> Report {
    let folder = tempfile::tempdir().unwrap();
    let (json, page) = (folder.path().join("report.json"), folder.path().join("report.html"));
    let output = bench(line).arg("--json").arg(&json).arg("--html").arg(&page).output().unwrap();
    let (stdout, stderr) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{line}: {}\n{stdout}\n{stderr}", output.status);
    let json = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    Report { json, page: fs::read_to_string(page).unwrap(), stdout }
}

fn bench(line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_forebay-bench"));
    // The first two name the database.
    let tiny = if line.contains("--database") { &TINY[2..] } else { &TINY[..] };
    command.args(line.split(' ')).args(tiny).arg("--forebay").arg(forebay_testkit::program());
    command
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}

impl Report {
    /// Whether all values are above zero that a run of any length measures.
    fn measured_something(&self) -> bool {
        let candidates = self.json["results"][0]["candidates"].as_array().unwrap();
        let rounds = candidates.iter().flat_map(|candidate| candidate["rounds"].as_array().unwrap());
        rounds.flat_map(|round| round["metrics"].as_array().unwrap()).all(|metric| {
            let (value, unit) = (metric["value"].as_f64().unwrap(), metric["unit"].as_str().unwrap());
            // CPU time is measured in ticks of 10 ms. A tiny run may use less than one tick.
            let in_ticks = unit.contains("CPU") || unit.contains("core");
            value > 0.0 || in_ticks && value == 0.0
        })
    }

    /// Checks that exactly these candidates were measured.
    fn holds(&self, labels: &[&str]) {
        let candidates = self.json["results"][0]["candidates"].as_array().unwrap();
        let found: BTreeSet<_> = candidates.iter().map(|one| one["label"].as_str().unwrap()).collect();
        assert_eq!(found, labels.iter().copied().collect(), "{}", self.stdout);
        for candidate in candidates {
            let label = candidate["label"].as_str().unwrap();
            assert!(self.page.contains(label) && self.stdout.contains(label), "{label}: {}", self.stdout);
            let rounds = candidate["rounds"].as_array().unwrap();
            assert_eq!(rounds.len(), 1, "{candidate}");
            assert!(!rounds[0]["metrics"].as_array().unwrap().is_empty(), "{candidate}");
        }
        assert!(self.page.contains("<svg "), "no plot");
    }

    /// Names of the metrics of the first candidate.
    fn metrics(&self) -> Vec<&str> {
        let metrics = self.json["results"][0]["candidates"][0]["rounds"][0]["metrics"].as_array().unwrap();
        metrics.iter().map(|metric| metric["name"].as_str().unwrap()).collect()
    }
}

const FOREBAY: &str = "forebay on sqlite";
const BASELINE: &str = "baseline of sqlite, batches of 10";
const LARGE_BASELINE: &str = "baseline of sqlite, batches of 500";

#[test]
fn lifecycle() {
    let report = run("lifecycle");
    report.holds(&[FOREBAY, BASELINE, LARGE_BASELINE]);
    assert_eq!(report.metrics()[0], "throughput");
    assert!(report.stdout.contains("more is better"), "{}", report.stdout);
}

#[test]
fn enqueue() {
    run("enqueue --items 400").holds(&[FOREBAY, BASELINE, LARGE_BASELINE]);
}

#[test]
fn drain() {
    run("drain --items 400").holds(&[FOREBAY, BASELINE, LARGE_BASELINE]);
}

#[test]
fn latency() {
    let report = run("latency --rate 50");
    report.holds(&[FOREBAY]);
    assert_eq!(report.metrics()[..4], ["p99", "p50", "p99.9", "longest"]);
}

#[test]
fn backlog() {
    run("backlog --items 200").holds(&["empty", "on 200 less urgent items", "on 200 equal items"]);
}

#[test]
fn topics() {
    let report = run("topics --counts 3,50");
    report.holds(&["3 topics", "50 topics", "3 topics by prefix", "50 topics by prefix"]);
    assert!(report.metrics().contains(&"page p99"));
}

#[test]
fn shards() {
    run("shards --counts 1,3").holds(&["1 shards", "3 shards"]);
}

/// Nodes share a server, so this one is not on SQLite.
#[test]
fn cluster() {
    let report = run("cluster --nodes 2 --database mariadb");
    let nodes = ["topics at one each", "calls at any", "consumers at one", "as hinted"]
        .map(|how| format!("2 nodes, {how}"));
    report.holds(&[&nodes[0], &nodes[1], &nodes[2], &nodes[3], "one node"]);
}

#[test]
fn delay() {
    let report = run("delay --rate 200");
    report.holds(&[FOREBAY]);
    assert!(report.metrics().contains(&"throughput"));
}

#[test]
fn singles() {
    run("singles --in-flight 8 --against none").holds(&[FOREBAY]);
}

#[test]
fn idle() {
    let report = run("idle --waiting 20 --settle 100ms --shards 2");
    report.holds(&[FOREBAY]);
    assert_eq!(report.metrics(), ["node"]);
}

#[test]
fn a_queue_that_cannot_be_measured_is_listed_with_the_reason() {
    let report = run("lifecycle --against foqs");
    report.holds(&[FOREBAY]);
    let absent = &report.json["results"][0]["absent"][0];
    assert_eq!(absent[0], "foqs");
    assert!(absent[1].as_str().unwrap().contains("runs on a database server"), "{absent}");
}

#[test]
fn a_refusal_is_one_line() {
    let output = bench("delay --against nats").output().unwrap();
    assert!(!output.status.success() && output.stdout.is_empty(), "{output:?}");
    let stderr = text(output.stderr);
    assert!(stderr.starts_with("forebay-bench: --against nats: ") && stderr.lines().count() == 1, "{stderr}");
    let output = bench("cluster").output().unwrap();
    assert!(text(output.stderr).contains("cluster: nodes share a database server"));
}
