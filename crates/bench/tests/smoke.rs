//! Each scenario in a tiny form, against the real binary on embedded SQLite: the benchmark's own checks pass, and
//! it reports. How fast anything is does not matter here.

use std::{collections::BTreeSet, fs, process::Command};

use serde_json::Value;

/// Short turns of few items; each has a second, in which even a machine that is busy with other tests gets some through.
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
    "--room",
    "400",
    "--item-bytes",
    "64",
];

/// What a run wrote.
struct Report {
    json: Value,
    page: String,
    said: String,
}

/// A machine that is busy with other tests may stall for all of a measured second, which is no fault of anyone.
const ATTEMPTS: usize = 3;

/// Runs the benchmark; it must succeed, and measure something.
fn run(line: &str) -> Report {
    let mut runs = (0..ATTEMPTS).map(|_| run_once(line));
    runs.find(Report::measured_something).unwrap_or_else(|| panic!("{line}: nothing in {ATTEMPTS} attempts"))
}

fn run_once(line: &str) -> Report {
    let folder = tempfile::tempdir().unwrap();
    let (json, page) = (folder.path().join("report.json"), folder.path().join("report.html"));
    let output = bench(line).arg("--json").arg(&json).arg("--html").arg(&page).output().unwrap();
    let (said, errors) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{line}: {}\n{said}\n{errors}", output.status);
    let json = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    Report { json, page: fs::read_to_string(page).unwrap(), said }
}

fn bench(line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_forebay-bench"));
    command.args(line.split(' ')).args(TINY).arg("--forebay").arg(forebay_testkit::program());
    command
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}

impl Report {
    /// All is above zero that a run of any length measures.
    fn measured_something(&self) -> bool {
        let standings = self.json["results"][0]["standings"].as_array().unwrap();
        let rounds = standings.iter().flat_map(|standing| standing["rounds"].as_array().unwrap());
        rounds.flat_map(|round| round["figures"].as_array().unwrap()).all(|figure| {
            let (value, unit) = (figure["value"].as_f64().unwrap(), figure["unit"].as_str().unwrap());
            // CPU time is told in ticks of 10 ms, of which a tiny run may have used none.
            let in_ticks = unit.contains("CPU") || unit.contains("core");
            value > 0.0 || in_ticks && value == 0.0
        })
    }

    /// These took part, and nobody else.
    fn holds(&self, labels: &[&str]) {
        let standings = self.json["results"][0]["standings"].as_array().unwrap();
        let found: BTreeSet<_> = standings.iter().map(|one| one["label"].as_str().unwrap()).collect();
        assert_eq!(found, labels.iter().copied().collect(), "{}", self.said);
        for standing in standings {
            let label = standing["label"].as_str().unwrap();
            assert!(self.page.contains(label) && self.said.contains(label), "{label}: {}", self.said);
            let rounds = standing["rounds"].as_array().unwrap();
            assert_eq!(rounds.len(), 1, "{standing}");
            assert!(!rounds[0]["figures"].as_array().unwrap().is_empty(), "{standing}");
        }
        assert!(self.page.contains("<svg "), "no plot");
    }

    /// The names of the figures of the first entry.
    fn figures(&self) -> Vec<&str> {
        let figures = self.json["results"][0]["standings"][0]["rounds"][0]["figures"].as_array().unwrap();
        figures.iter().map(|figure| figure["name"].as_str().unwrap()).collect()
    }
}

const FOREBAY: &str = "forebay on sqlite";
const FLOOR: &str = "floor of sqlite, batches of 10";
const LARGE_FLOOR: &str = "floor of sqlite, batches of 500";

#[test]
fn lifecycle() {
    let report = run("lifecycle");
    report.holds(&[FOREBAY, FLOOR, LARGE_FLOOR]);
    assert_eq!(report.figures()[0], "throughput");
    assert!(report.said.contains("more is better"), "{}", report.said);
}

#[test]
fn enqueue() {
    run("enqueue --items 400").holds(&[FOREBAY, FLOOR, LARGE_FLOOR]);
}

#[test]
fn drain() {
    run("drain --items 400").holds(&[FOREBAY, FLOOR, LARGE_FLOOR]);
}

#[test]
fn latency() {
    let report = run("latency --rate 50");
    report.holds(&[FOREBAY]);
    assert_eq!(report.figures()[..4], ["p99", "p50", "p99.9", "longest"]);
}

#[test]
fn backlog() {
    run("backlog --items 200").holds(&["empty", "on 200 less urgent items", "on 200 items alike"]);
}

#[test]
fn topics() {
    let report = run("topics --counts 3,50");
    report.holds(&["3 topics", "50 topics"]);
    assert!(report.figures().contains(&"page p99"));
}

#[test]
fn shards() {
    run("shards --counts 1,3").holds(&["1 shards", "3 shards"]);
}

#[test]
fn delay() {
    let report = run("delay --rate 200");
    report.holds(&[FOREBAY]);
    assert!(report.figures().contains(&"throughput"));
}

#[test]
fn singles() {
    run("singles --in-flight 8 --against none").holds(&[FOREBAY]);
}

#[test]
fn idle() {
    let report = run("idle --waiting 20 --settle 100ms --shards 2");
    report.holds(&[FOREBAY]);
    assert_eq!(report.figures(), ["node"]);
}

#[test]
fn who_can_not_take_part_is_named_with_the_reason() {
    let report = run("lifecycle --against foqs");
    report.holds(&[FOREBAY]);
    let absent = &report.json["results"][0]["absent"][0];
    assert_eq!(absent[0], "foqs");
    assert!(absent[1].as_str().unwrap().contains("runs on a database server"), "{absent}");
}

#[test]
fn what_is_refused_is_said_in_one_line() {
    let output = bench("delay --against nats").output().unwrap();
    assert!(!output.status.success() && output.stdout.is_empty(), "{output:?}");
    let said = text(output.stderr);
    assert!(said.starts_with("forebay-bench: --against nats: ") && said.lines().count() == 1, "{said}");
}
