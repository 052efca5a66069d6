//! The list of targets.

use std::time::Duration;

use forebay_servers::Kind;

use super::target::{Bound, Measure, Target};
use crate::{
    contest::{Contest, Entry, Scenario},
    database::Database,
    entries::{self, Common},
    scenario::lifecycle::Backlog,
    workload::Load,
};

use Bound::{Above, AtLeast, AtMost, Below};

/// A contest and what is to come of it.
#[derive(Debug)]
pub struct Section {
    /// Who takes part.
    pub contest: Contest,
    /// What is to be so.
    pub targets: Vec<Target>,
}

const MARIADB: Database = Database::Server { kind: Kind::MariaDb, binlog: true };
const MARIADB_NOBINLOG: Database = Database::Server { kind: Kind::MariaDb, binlog: false };
const MYSQL: Database = Database::Server { kind: Kind::MySql, binlog: true };
const LIFECYCLE: Scenario = Scenario::Lifecycle(Backlog::Empty);
const SHARDS: u32 = 2;
const KIB: usize = 1_024;

/// All of them. How long and how often is as the options say; the load is not, so that a target always means
/// the same.
pub fn sections(common: &Common) -> Vec<Section> {
    let usual = common.under(|load| {
        *load = Load {
            seed: load.seed,
            item_bytes: 256,
            batch: 100,
            topics: 10,
            priorities: 8,
            producers: 32,
            consumers: 32,
            room: 40_000,
        };
    });
    let usual = usual.on(MARIADB, SHARDS);
    let mut sections = lifecycles(&usual);
    sections.extend(growths(&usual));
    sections.extend(times(&usual));
    sections.extend(sizes(&usual));
    sections
}

fn lifecycles(usual: &Common) -> Vec<Section> {
    let peer = |name| usual.peer(name, LIFECYCLE);
    let mariadb = Section::new(usual, "lifecycle on mariadb", usual.forebay(LIFECYCLE))
        .against(usual.floor(500, LIFECYCLE), Some(AtLeast(0.5)))
        .against(usual.floor(100, LIFECYCLE), None)
        .against(peer("rabbitmq-priority"), Some(AtLeast(2.5)))
        .against(peer("rabbitmq-quorum"), Some(AtLeast(1.5)))
        .against(peer("postgres"), Some(AtLeast(6.0)))
        .against(peer("beanstalkd-f50"), Some(Above(1.0)))
        .against(peer("foqs"), None);
    let no_binlog = usual.on(MARIADB_NOBINLOG, SHARDS);
    let no_binlog =
        Section::new(&no_binlog, "lifecycle on mariadb without a binary log", no_binlog.forebay(LIFECYCLE))
            .against(no_binlog.floor(500, LIFECYCLE), Some(AtLeast(0.5)))
            .against(no_binlog.peer("nats", LIFECYCLE), Some(AtLeast(0.7)));
    let mysql = usual.on(MYSQL, SHARDS);
    let mysql = Section::new(&mysql, "lifecycle on mysql", mysql.forebay(LIFECYCLE))
        .against(mysql.floor(500, LIFECYCLE), Some(AtLeast(0.5)));
    let sqlite = usual.on(Database::Sqlite, SHARDS);
    let sqlite = Section::new(&sqlite, "lifecycle on sqlite", sqlite.forebay(LIFECYCLE))
        .against(sqlite.peer("beanstalkd-f50", LIFECYCLE), Some(AtLeast(1.5)))
        .against(sqlite.floor(500, LIFECYCLE), None)
        .against(sqlite.floor(100, LIFECYCLE), None);
    vec![mariadb, no_binlog, mysql, sqlite]
}

/// What grows: the backlog, the topics, the shards.
fn growths(usual: &Common) -> Vec<Section> {
    let backlog = Section::of(entries::backlog(usual, 5_000_000))
        .ratio(1, 0, "throughput", Some(AtLeast(0.8)))
        .ratio(2, 0, "throughput", None)
        .memory(1, "node", Some(Below(512.0)))
        .memory(2, "node", None);
    let topics = Section::of(entries::topics(usual, &[10, 100_000]))
        .ratio(1, 0, "throughput", Some(AtLeast(0.6)))
        .figure(1, "page p99", "ms", Some(Below(20.0)));
    let shards = Section::of(entries::shards(usual, &[4, 16])).ratio(1, 0, "efficiency", Some(AtLeast(0.85)));
    let idle =
        Section::of(entries::idle(&usual.on(MARIADB, entries::IDLE_SHARDS), 10_000, Duration::from_secs(3)))
            .figure(0, "node", "% of a core", Some(Below(1.0)));
    vec![backlog, topics, shards, idle]
}

/// Single calls, and what comes when.
fn times(usual: &Common) -> Vec<Section> {
    let single = entries::latency(usual);
    let scenario = Scenario::Latency(1_000);
    let latency = Section::new(&single, "latency at 1000 items/s", single.forebay(scenario))
        .figure(0, "p99", "ms", Some(Below(10.0)))
        .with(single.peer("rabbitmq-priority", scenario))
        .ratio(0, 1, "p99", Some(AtMost(1.0)))
        .with(single.peer("postgres", scenario))
        .ratio(0, 2, "p99", None);
    let delay = Section::new(usual, "delay at 5000 due items/s", usual.forebay(Scenario::Delay(5_000)))
        .figure(0, "p99", "ms", Some(Below(50.0)));
    let single = entries::singles(usual, 128);
    let singles = Section::new(&single, "singles, 128 in flight", single.forebay(LIFECYCLE))
        .against(single.peer("postgres", LIFECYCLE), Some(Above(1.0)))
        .against(single.peer("beanstalkd-f0", LIFECYCLE), Some(Above(1.0)))
        .against(single.peer("rabbitmq-priority", LIFECYCLE), None);
    vec![latency, delay, singles]
}

/// Other payloads and other batches, as shares of their floors.
fn sizes(usual: &Common) -> Vec<Section> {
    let share = |title: &str, change: &dyn Fn(&mut Load)| {
        let common = usual.under(change);
        let floor = common.floor(common.load.batch, LIFECYCLE);
        Section::new(&common, title, common.forebay(LIFECYCLE)).against(floor, None)
    };
    // A call is 4 MiB at most, and what waits is to fit into memory.
    let large = |bytes| move |load: &mut Load| (load.item_bytes, load.batch, load.room) = (bytes, 10, 1_000);
    vec![
        share("payloads of 16 KiB, batches of 10", &large(16 * KIB)),
        // A tenant may have 8 MiB waiting at a shard, so fewer calls are under way.
        share("payloads of 200 KiB, batches of 10", &|load| {
            large(200 * KIB)(load);
            (load.producers, load.consumers) = (4, 4);
        }),
        share("batches of 1", &|load| load.batch = 1),
        share("batches of 10", &|load| load.batch = 10),
    ]
}

impl Section {
    fn new(common: &Common, title: &str, first: Entry) -> Self {
        Self::of(common.contest(title, vec![first]))
    }

    fn of(contest: Contest) -> Self {
        Self { contest, targets: Vec::new() }
    }

    fn with(mut self, entry: Entry) -> Self {
        self.contest.entries.push(entry);
        self
    }

    /// The throughput of the first entry by that of this one, which joins.
    fn against(self, theirs: Entry, bound: Option<Bound>) -> Self {
        let at = self.contest.entries.len();
        self.with(theirs).ratio(0, at, "throughput", bound)
    }

    fn ratio(self, ours: usize, theirs: usize, name: &'static str, bound: Option<Bound>) -> Self {
        let (ours, theirs) = (self.label(ours), self.label(theirs));
        let words = format!("{name}, {ours} ÷ {theirs}");
        self.target(&words, Measure::Ratio { ours, theirs, name }, "", bound)
    }

    fn figure(self, of: usize, name: &'static str, unit: &'static str, bound: Option<Bound>) -> Self {
        let of = self.label(of);
        self.target(&format!("{name}, {of}"), Measure::Figure { of, name }, unit, bound)
    }

    fn memory(self, of: usize, role: &'static str, bound: Option<Bound>) -> Self {
        let of = self.label(of);
        self.target(&format!("memory of the {role}, {of}"), Measure::Memory { of, role }, "MiB", bound)
    }

    fn target(mut self, words: &str, measure: Measure, unit: &'static str, bound: Option<Bound>) -> Self {
        let title = format!("{}: {words}", self.contest.title);
        self.targets.push(Target { title, measure, unit, bound });
        self
    }

    fn label(&self, entry: usize) -> String {
        self.contest.entries[entry].label.clone()
    }
}
