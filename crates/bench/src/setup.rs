//! Sets up the comparison that the command line asks for.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, bail, ensure};

use crate::{
    args::{Command, Options},
    comparison::{Candidate, Comparison, Entry, Scenario},
    database::Database,
    load::{Load, Phases},
    other_queues,
    scenario::{lifecycle::Backlog, topics::Selection},
    system::{SystemConfig, access::Access},
};

/// Shards of an idle node, unless `--shards` is given.
pub const IDLE_SHARDS: u32 = 16;
/// Items in a large batch of the baseline.
const LARGE_BATCH: usize = 500;
/// Maximum bytes of payload in one statement of the baseline; servers accept at least 16 MiB.
const STATEMENT_BYTES_MAX: usize = 8 << 20;

/// Settings that all entries of a comparison have in common.
#[derive(Debug, Clone)]
pub struct CommonSettings {
    /// Configuration of the candidates.
    pub config: SystemConfig,
    /// The load by producers and consumers.
    pub load: Load,
    /// Turns per entry.
    pub rounds: u32,
    /// Phases of a turn.
    pub phases: Phases,
}

impl CommonSettings {
    /// Takes the settings from validated options. `forebay` is the program to measure.
    pub fn new(options: &Options, forebay: &Path) -> Self {
        let load = Load {
            seed: options.seed,
            item_bytes: options.item_bytes,
            batch: options.batch,
            topics: options.topics,
            priorities: options.priorities,
            producers: options.producers,
            consumers: options.consumers,
            max_queued: options.max_queued,
        };
        let config = SystemConfig {
            topics: load.topics,
            priorities: load.priorities,
            item_bytes: load.item_bytes,
            shards: options.shards.unwrap_or(2),
            pool_mib: options.pool_mib,
            server_flags: options.server_flags.clone(),
            by_statement: options.by_statement,
            database: options.database,
            forebay: forebay.to_owned(),
            nodes: 1,
            access: Access::Near,
        };
        let phases = Phases { warm_up: options.warm_up, measured: options.measured };
        Self { config, load, rounds: options.rounds, phases }
    }

    /// These settings with another database and number of shards.
    pub fn with_database(&self, database: Database, shards: u32) -> Self {
        Self { config: SystemConfig { database, shards, ..self.config.clone() }, ..self.clone() }
    }

    /// These settings with another load.
    pub fn with_load(&self, change: impl FnOnce(&mut Load)) -> Self {
        let mut load = self.load.clone();
        change(&mut load);
        let config = SystemConfig {
            topics: load.topics,
            priorities: load.priorities,
            item_bytes: load.item_bytes,
            ..self.config.clone()
        };
        Self { config, load, ..self.clone() }
    }

    /// An entry with this label.
    pub fn entry(&self, label: impl Into<String>, candidate: Candidate, scenario: Scenario) -> Entry {
        Entry {
            label: label.into(),
            candidate,
            config: self.config.clone(),
            load: self.load.clone(),
            scenario,
        }
    }

    /// Forebay, labelled with its database.
    pub fn forebay(&self, scenario: Scenario) -> Entry {
        self.entry(format!("forebay on {}", self.config.database), Candidate::Forebay, scenario)
    }

    /// The baseline with `batch` items per transaction.
    pub fn baseline(&self, batch: usize, scenario: Scenario) -> Entry {
        let label = format!("baseline of {}, batches of {batch}", self.config.database);
        self.entry(label, Candidate::Baseline(batch), scenario)
    }

    /// Another queue.
    pub fn other_queue(&self, name: &'static str, scenario: Scenario) -> Entry {
        self.entry(name, Candidate::OtherQueue(name), scenario)
    }

    /// A comparison of these entries.
    pub fn comparison(&self, title: impl Into<String>, entries: Vec<Entry>) -> Comparison {
        Comparison { title: title.into(), entries, rounds: self.rounds, phases: self.phases }
    }
}

/// The comparison that a command asks for.
pub fn comparison(
    command: &Command,
    common: &CommonSettings,
    options: &Options,
) -> anyhow::Result<Comparison> {
    let with_others = |common: &CommonSettings, title: &str, scenario: Scenario| {
        let mut entries = vec![common.forebay(scenario)];
        entries.extend(others(common, &options.against, scenario));
        common.comparison(title, entries)
    };
    Ok(match command {
        Command::Lifecycle => with_others(common, "lifecycle", Scenario::Lifecycle(Backlog::Empty)),
        Command::Enqueue { items } => with_others(common, "enqueue", Scenario::Enqueue(*items)),
        Command::Drain { items } => {
            // At most one producer and one consumer per topic, so that the whole order can be checked.
            let common = common.with_load(|load| {
                load.producers = load.producers.min(load.topics);
                load.consumers = load.consumers.min(load.topics);
            });
            with_others(&common, "drain", Scenario::Drain(*items))
        }
        Command::Latency { rate } => with_others(&latency(common), "latency", Scenario::Latency(*rate)),
        Command::Delay { rate } => with_others(common, "delay", Scenario::Delay(*rate)),
        Command::Singles { in_flight } => {
            with_others(&singles(common, *in_flight), "singles", Scenario::Lifecycle(Backlog::Empty))
        }
        Command::Backlog { items } => backlog(common, *items),
        Command::Topics { counts } => topics(common, counts),
        Command::Shards { counts } => shards(common, counts),
        Command::Cluster { nodes } => cluster(common, *nodes, options.shards),
        Command::Idle { waiting, settle } => {
            let shards = options.shards.unwrap_or(IDLE_SHARDS);
            idle(&common.with_database(common.config.database, shards), *waiting, *settle)
        }
        Command::Turn | Command::Targets { .. } | Command::OtherQueues => {
            bail!("this command is not a single comparison")
        }
    })
}

/// Single calls to waiting consumers, with 100 producers: items stay on schedule while other calls stall.
pub fn latency(common: &CommonSettings) -> CommonSettings {
    common.with_load(|load| (load.producers, load.consumers) = (100, 20))
}

/// One item per call; producers make half of the calls in flight.
pub fn singles(common: &CommonSettings, in_flight: u32) -> CommonSettings {
    let half = (in_flight / 2).max(1);
    common.with_load(|load| (load.batch, load.producers, load.consumers) = (1, half, half))
}

/// The lifecycle on an empty queue and on two kinds of backlog.
pub fn backlog(common: &CommonSettings, items: u64) -> Comparison {
    let entry = |label: &str, backlog| common.entry(label, Candidate::Forebay, Scenario::Lifecycle(backlog));
    let entries = vec![
        entry("empty", Backlog::Empty),
        entry(&format!("on {items} less urgent items"), Backlog::LessUrgent(items)),
        entry(&format!("on {items} equal items"), Backlog::Equal(items)),
    ];
    common.comparison("backlog", entries)
}

/// The lifecycle with these numbers of topics, of which consumers ask for active ones; and with the prefix
/// of all.
pub fn topics(common: &CommonSettings, counts: &[u32]) -> Comparison {
    let entry = |count: u32, label: String, selection: Selection| {
        let common = common.with_load(|load| {
            load.topics = count;
            load.max_queued = load.max_queued.max(2 * count as usize);
        });
        common.entry(label, Candidate::Forebay, Scenario::Topics(selection))
    };
    let active = counts.iter().map(|&count| entry(count, format!("{count} topics"), Selection::Active));
    let by_prefix = |&count: &u32| entry(count, format!("{count} topics by prefix"), Selection::Prefix);
    common.comparison("topics", active.chain(counts.iter().map(by_prefix)).collect())
}

/// The lifecycle with these numbers of shards.
pub fn shards(common: &CommonSettings, counts: &[u32]) -> Comparison {
    let entry = |&count: &u32| {
        let common = common.with_database(common.config.database, count);
        common.entry(format!("{count} shards"), Candidate::Forebay, Scenario::Lifecycle(Backlog::Empty))
    };
    common.comparison("shards", counts.iter().map(entry).collect())
}

/// The lifecycle at so many nodes: nothing goes from node to node, each call goes to the next node, consumers
/// call one node, clients go by what answers say; and at one node alone.
pub fn cluster(common: &CommonSettings, nodes: u32, shards: Option<u32>) -> Comparison {
    let common = common.with_database(common.config.database, shards.unwrap_or(2 * nodes));
    let entry = |label: String, nodes: u32, access: Access| {
        let config = SystemConfig { nodes, access, ..common.config.clone() };
        let common = CommonSettings { config, ..common.clone() };
        common.entry(label, Candidate::Forebay, Scenario::Lifecycle(Backlog::Empty))
    };
    let entries = vec![
        entry(format!("{nodes} nodes, topics at one each"), nodes, Access::Near),
        entry(format!("{nodes} nodes, calls at any"), nodes, Access::Anywhere),
        entry(format!("{nodes} nodes, consumers at one"), nodes, Access::ConsumersAtOne),
        entry(format!("{nodes} nodes, as hinted"), nodes, Access::AsHinted),
        entry("one node".to_owned(), 1, Access::Near),
    ];
    common.comparison("cluster", entries)
}

/// An idle node with one waiting item in each of `waiting` topics.
pub fn idle(common: &CommonSettings, waiting: u32, settle: Duration) -> Comparison {
    let common = common.with_load(|load| load.topics = waiting);
    common.comparison("idle", vec![common.forebay(Scenario::Idle { settle })])
}

/// The entries that `--against` names, each once: the baseline, then other queues in the order of their list.
fn others(common: &CommonSettings, against: &[String], scenario: Scenario) -> Vec<Entry> {
    let named = |name: &str| against.iter().any(|one| one == name || one == "all");
    let mut entries = Vec::new();
    if named("baseline") && has_baseline(scenario) {
        entries.extend(baselines(common, scenario));
    }
    let names = other_queues::NAMES.iter().filter(|name| named(name));
    entries.extend(names.map(|name| common.other_queue(name, scenario)));
    entries
}

/// The baseline with the run's own batch size and with batches of 500, unless a server might reject a
/// statement of that size.
fn baselines(common: &CommonSettings, scenario: Scenario) -> Vec<Entry> {
    let own = common.load.batch;
    let mut entries = vec![common.baseline(own, scenario)];
    if own != LARGE_BATCH && LARGE_BATCH * common.load.item_bytes <= STATEMENT_BYTES_MAX {
        entries.push(common.baseline(LARGE_BATCH, scenario));
    }
    entries
}

fn has_baseline(scenario: Scenario) -> bool {
    matches!(scenario, Scenario::Lifecycle(_) | Scenario::Enqueue(_) | Scenario::Drain(_))
}

/// The program to measure: the given one, else the one of this workspace, built now as it is shipped.
pub fn program(given: Option<&Path>) -> anyhow::Result<PathBuf> {
    if let Some(path) = given {
        ensure!(path.exists(), "--forebay: {} does not exist", path.display());
        return Ok(path.to_owned());
    }
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = std::process::Command::new(cargo)
        .current_dir(&workspace)
        .args(["build", "--profile", "dist", "--package", "forebay"])
        .status()
        .context("cannot run cargo to build forebay; give a built program with --forebay")?;
    ensure!(status.success(), "cannot build forebay: {status}; give a built program with --forebay");
    let own = std::env::current_exe()?;
    let target = own.parent().and_then(Path::parent).context("this program is not in a target folder")?;
    let program = target.join("dist/forebay");
    ensure!(program.exists(), "{} does not exist; give the program with --forebay", program.display());
    Ok(program)
}
