//! The list of targets.

use std::time::Duration;

use forebay_servers::Kind;

use crate::{
    comparison::{Comparison, Entry, Scenario},
    database::Database,
    load::Load,
    scenario::lifecycle::Backlog,
    setup::{self, CommonSettings},
    target::{Bound, Measure, Target},
};

use Bound::{Above, AtLeast, AtMost, Below};

/// A comparison and the targets that it decides.
#[derive(Debug)]
pub struct Section {
    /// The comparison to run.
    pub comparison: Comparison,
    /// The targets.
    pub targets: Vec<Target>,
}

const MARIADB: Database = Database::Server { kind: Kind::MariaDb, binlog: true };
const MARIADB_NOBINLOG: Database = Database::Server { kind: Kind::MariaDb, binlog: false };
const MYSQL: Database = Database::Server { kind: Kind::MySql, binlog: true };
const LIFECYCLE: Scenario = Scenario::Lifecycle(Backlog::Empty);
const SHARDS: u32 = 2;
const KIB: usize = 1_024;

/// All sections. The options decide how long and how often they run. The load is fixed, so that a target
/// always means the same.
pub fn sections(common: &CommonSettings) -> Vec<Section> {
    let usual = common.with_load(|load| {
        *load = Load {
            seed: load.seed,
            item_bytes: 256,
            batch: 100,
            topics: 10,
            priorities: 8,
            producers: 32,
            consumers: 32,
            max_queued: 40_000,
        };
    });
    let usual = usual.with_database(MARIADB, SHARDS);
    let mut sections = lifecycle_sections(&usual);
    sections.extend(scaling_sections(&usual));
    sections.extend(single_item_sections(&usual));
    sections.extend(size_sections(&usual));
    sections
}

fn lifecycle_sections(usual: &CommonSettings) -> Vec<Section> {
    let queue = |name| usual.other_queue(name, LIFECYCLE);
    let mariadb = Section::new(usual, "lifecycle on mariadb", usual.forebay(LIFECYCLE))
        .against(usual.baseline(500, LIFECYCLE), Some(AtLeast(0.5)))
        .against(usual.baseline(100, LIFECYCLE), None)
        .against(queue("rabbitmq-priority"), Some(AtLeast(2.5)))
        .against(queue("rabbitmq-quorum"), Some(AtLeast(1.5)))
        .against(queue("postgres"), Some(AtLeast(6.0)))
        .against(queue("beanstalkd-f50"), Some(Above(1.0)))
        .against(queue("foqs"), None);
    let no_binlog = usual.with_database(MARIADB_NOBINLOG, SHARDS);
    let no_binlog =
        Section::new(&no_binlog, "lifecycle on mariadb without a binary log", no_binlog.forebay(LIFECYCLE))
            .against(no_binlog.baseline(500, LIFECYCLE), Some(AtLeast(0.5)))
            .against(no_binlog.other_queue("nats", LIFECYCLE), Some(AtLeast(0.7)));
    let mysql = usual.with_database(MYSQL, SHARDS);
    let mysql = Section::new(&mysql, "lifecycle on mysql", mysql.forebay(LIFECYCLE))
        .against(mysql.baseline(500, LIFECYCLE), Some(AtLeast(0.5)));
    let sqlite = usual.with_database(Database::Sqlite, SHARDS);
    let sqlite = Section::new(&sqlite, "lifecycle on sqlite", sqlite.forebay(LIFECYCLE))
        .against(sqlite.other_queue("beanstalkd-f50", LIFECYCLE), Some(AtLeast(1.5)))
        .against(sqlite.baseline(500, LIFECYCLE), None)
        .against(sqlite.baseline(100, LIFECYCLE), None);
    vec![mariadb, no_binlog, mysql, sqlite]
}

/// Large backlogs, many topics, many shards, and an idle node.
fn scaling_sections(usual: &CommonSettings) -> Vec<Section> {
    let backlog = Section::of(setup::backlog(usual, 5_000_000))
        .ratio(1, 0, "throughput", Some(AtLeast(0.8)))
        .ratio(2, 0, "throughput", None)
        .memory(1, "node", Some(Below(512.0)))
        .memory(2, "node", None);
    let topics = Section::of(setup::topics(usual, &[10, 100_000]))
        .ratio(1, 0, "throughput", Some(AtLeast(0.6)))
        .ratio(3, 2, "throughput", Some(AtLeast(0.8)))
        .metric(1, "page p99", "ms", Some(Below(20.0)));
    let shards = Section::of(setup::shards(usual, &[4, 16])).ratio(1, 0, "efficiency", Some(AtLeast(0.85)));
    let idle = Section::of(setup::idle(
        &usual.with_database(MARIADB, setup::IDLE_SHARDS),
        10_000,
        Duration::from_secs(3),
    ))
    .metric(0, "node", "% of a core", Some(Below(1.0)));
    vec![backlog, topics, shards, idle]
}

/// Single items: latency, delay and throughput.
fn single_item_sections(usual: &CommonSettings) -> Vec<Section> {
    let single = setup::latency(usual);
    let scenario = Scenario::Latency(1_000);
    let latency = Section::new(&single, "latency at 1000 items/s", single.forebay(scenario))
        .metric(0, "p99", "ms", Some(Below(10.0)))
        .with(single.other_queue("rabbitmq-priority", scenario))
        .ratio(0, 1, "p99", Some(AtMost(1.0)))
        .with(single.other_queue("postgres", scenario))
        .ratio(0, 2, "p99", None);
    let delay = Section::new(usual, "delay at 5000 due items/s", usual.forebay(Scenario::Delay(5_000)))
        .metric(0, "p99", "ms", Some(Below(50.0)));
    let single = setup::singles(usual, 128);
    let singles = Section::new(&single, "singles, 128 in flight", single.forebay(LIFECYCLE))
        .against(single.other_queue("postgres", LIFECYCLE), Some(Above(1.0)))
        .against(single.other_queue("beanstalkd-f0", LIFECYCLE), Some(Above(1.0)))
        .against(single.other_queue("rabbitmq-priority", LIFECYCLE), None);
    vec![latency, delay, singles]
}

/// Other sizes of payloads and batches, relative to the baseline.
fn size_sections(usual: &CommonSettings) -> Vec<Section> {
    let section = |title: &str, change: &dyn Fn(&mut Load)| {
        let common = usual.with_load(change);
        let baseline = common.baseline(common.load.batch, LIFECYCLE);
        Section::new(&common, title, common.forebay(LIFECYCLE)).against(baseline, None)
    };
    // A call has at most 4 MiB, and the queue must fit into memory.
    let large =
        |bytes| move |load: &mut Load| (load.item_bytes, load.batch, load.max_queued) = (bytes, 10, 1_000);
    vec![
        section("payloads of 16 KiB, batches of 10", &large(16 * KIB)),
        // A tenant may have 8 MiB in the queue of a shard, so fewer calls are in flight.
        section("payloads of 200 KiB, batches of 10", &|load| {
            large(200 * KIB)(load);
            (load.producers, load.consumers) = (4, 4);
        }),
        section("batches of 1", &|load| load.batch = 1),
        section("batches of 10", &|load| load.batch = 10),
    ]
}

impl Section {
    fn new(common: &CommonSettings, title: &str, first: Entry) -> Self {
        Self::of(common.comparison(title, vec![first]))
    }

    fn of(comparison: Comparison) -> Self {
        Self { comparison, targets: Vec::new() }
    }

    fn with(mut self, entry: Entry) -> Self {
        self.comparison.entries.push(entry);
        self
    }

    /// Adds an entry, and the throughput of the first entry relative to it.
    fn against(self, theirs: Entry, bound: Option<Bound>) -> Self {
        let at = self.comparison.entries.len();
        self.with(theirs).ratio(0, at, "throughput", bound)
    }

    fn ratio(self, ours: usize, theirs: usize, name: &'static str, bound: Option<Bound>) -> Self {
        let (ours, theirs) = (self.label(ours), self.label(theirs));
        let text = format!("{name}, {ours} ÷ {theirs}");
        self.target(&text, Measure::Ratio { ours, theirs, name }, "", bound)
    }

    fn metric(self, of: usize, name: &'static str, unit: &'static str, bound: Option<Bound>) -> Self {
        let of = self.label(of);
        self.target(&format!("{name}, {of}"), Measure::Metric { of, name }, unit, bound)
    }

    fn memory(self, of: usize, role: &'static str, bound: Option<Bound>) -> Self {
        let of = self.label(of);
        self.target(&format!("memory of the {role}, {of}"), Measure::Memory { of, role }, "MiB", bound)
    }

    fn target(mut self, text: &str, measure: Measure, unit: &'static str, bound: Option<Bound>) -> Self {
        let title = format!("{}: {text}", self.comparison.title);
        self.targets.push(Target { title, measure, unit, bound });
        self
    }

    fn label(&self, entry: usize) -> String {
        self.comparison.entries[entry].label.clone()
    }
}
