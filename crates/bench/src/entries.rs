//! From the command line to those who take part.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, bail, ensure};

use crate::{
    args::{Options, Verb},
    contest::{Contest, Contestant, Entry, Scenario},
    database::Database,
    peers,
    scenario::lifecycle::Backlog,
    system::Setup,
    workload::{Load, Span},
};

/// Shards of a node that has nothing to do, unless a number is named.
pub const IDLE_SHARDS: u32 = 16;
/// Items in a large batch of the floor.
const LARGE: usize = 500;
/// Payloads in one statement of the floor's larger batches: servers take at least 16 MiB.
const STATEMENT_BYTES: usize = 8 << 20;

/// What all entries of a command have in common.
#[derive(Debug, Clone)]
pub struct Common {
    /// On what.
    pub setup: Setup,
    /// Under which load.
    pub load: Load,
    /// How often.
    pub rounds: u32,
    /// How long.
    pub span: Span,
}

impl Common {
    /// As the options say, which have been checked; `forebay` is the program to measure.
    pub fn new(options: &Options, forebay: &Path) -> Self {
        let load = Load {
            seed: options.seed,
            item_bytes: options.item_bytes,
            batch: options.batch,
            topics: options.topics,
            priorities: options.priorities,
            producers: options.producers,
            consumers: options.consumers,
            room: options.room,
        };
        let setup = Setup {
            topics: load.topics,
            priorities: load.priorities,
            item_bytes: load.item_bytes,
            shards: options.shards.unwrap_or(2),
            pool_mib: options.pool_mib,
            server_flags: options.server_flags.clone(),
            by_statement: options.by_statement,
            database: options.database,
            forebay: forebay.to_owned(),
        };
        let span = Span { warm_up: options.warm_up, measured: options.measured };
        Self { setup, load, rounds: options.rounds, span }
    }

    /// The same on another database, with its usual number of shards.
    pub fn on(&self, database: Database, shards: u32) -> Self {
        Self { setup: Setup { database, shards, ..self.setup.clone() }, ..self.clone() }
    }

    /// The same with another load.
    pub fn under(&self, change: impl FnOnce(&mut Load)) -> Self {
        let mut load = self.load.clone();
        change(&mut load);
        let setup = Setup {
            topics: load.topics,
            priorities: load.priorities,
            item_bytes: load.item_bytes,
            ..self.setup.clone()
        };
        Self { setup, load, ..self.clone() }
    }

    /// One line of the table.
    pub fn entry(&self, label: impl Into<String>, contestant: Contestant, scenario: Scenario) -> Entry {
        Entry {
            label: label.into(),
            contestant,
            setup: self.setup.clone(),
            load: self.load.clone(),
            scenario,
        }
    }

    /// Forebay, called so, with its database.
    pub fn forebay(&self, scenario: Scenario) -> Entry {
        self.entry(format!("forebay on {}", self.setup.database), Contestant::Forebay, scenario)
    }

    /// The floor in batches of so many.
    pub fn floor(&self, batch: usize, scenario: Scenario) -> Entry {
        let label = format!("floor of {}, batches of {batch}", self.setup.database);
        self.entry(label, Contestant::Floor(batch), scenario)
    }

    /// Another queue.
    pub fn peer(&self, name: &'static str, scenario: Scenario) -> Entry {
        self.entry(name, Contestant::Peer(name), scenario)
    }

    /// These take part.
    pub fn contest(&self, title: impl Into<String>, entries: Vec<Entry>) -> Contest {
        Contest { title: title.into(), entries, rounds: self.rounds, span: self.span }
    }
}

/// The contest that a command names.
pub fn contest(verb: &Verb, common: &Common, options: &Options) -> anyhow::Result<Contest> {
    let with_rivals = |common: &Common, title: &str, scenario: Scenario| {
        let mut entries = vec![common.forebay(scenario)];
        entries.extend(rivals(common, &options.against, scenario));
        common.contest(title, entries)
    };
    Ok(match verb {
        Verb::Lifecycle => with_rivals(common, "lifecycle", Scenario::Lifecycle(Backlog::Empty)),
        Verb::Enqueue { items } => with_rivals(common, "enqueue", Scenario::Enqueue(*items)),
        Verb::Drain { items } => {
            // One producer and one consumer a topic at most, so that the whole order can be checked.
            let common = common.under(|load| {
                load.producers = load.producers.min(load.topics);
                load.consumers = load.consumers.min(load.topics);
            });
            with_rivals(&common, "drain", Scenario::Drain(*items))
        }
        Verb::Latency { rate } => with_rivals(&latency(common), "latency", Scenario::Latency(*rate)),
        Verb::Delay { rate } => with_rivals(common, "delay", Scenario::Delay(*rate)),
        Verb::Singles { in_flight } => {
            with_rivals(&singles(common, *in_flight), "singles", Scenario::Lifecycle(Backlog::Empty))
        }
        Verb::Backlog { items } => backlog(common, *items),
        Verb::Topics { counts } => topics(common, counts),
        Verb::Shards { counts } => shards(common, counts),
        Verb::Idle { waiting, settle } => {
            let common = common.on(common.setup.database, options.shards.unwrap_or(IDLE_SHARDS));
            idle(&common, *waiting, *settle)
        }
        Verb::Targets { .. } | Verb::Peers => bail!("not one contest"),
    })
}

/// Single calls to waiting consumers: as many calls may be under way as a second has items, should all stall.
pub fn latency(common: &Common) -> Common {
    common.under(|load| (load.producers, load.consumers) = (100, 20))
}

/// One item a call, half of the calls under way by producers.
pub fn singles(common: &Common, in_flight: u32) -> Common {
    let half = (in_flight / 2).max(1);
    common.under(|load| (load.batch, load.producers, load.consumers) = (1, half, half))
}

/// Empty, and on top of what waits.
pub fn backlog(common: &Common, items: u64) -> Contest {
    let of = |label: &str, backlog| common.entry(label, Contestant::Forebay, Scenario::Lifecycle(backlog));
    let entries = vec![
        of("empty", Backlog::Empty),
        of(&format!("on {items} less urgent items"), Backlog::LessUrgent(items)),
        of(&format!("on {items} items alike"), Backlog::Alike(items)),
    ];
    common.contest("backlog", entries)
}

/// Growing numbers of topics.
pub fn topics(common: &Common, counts: &[u32]) -> Contest {
    let entry = |&count: &u32| {
        let common = common.under(|load| {
            load.topics = count;
            load.room = load.room.max(2 * count as usize);
        });
        common.entry(format!("{count} topics"), Contestant::Forebay, Scenario::Topics)
    };
    common.contest("topics", counts.iter().map(entry).collect())
}

/// Growing numbers of shards.
pub fn shards(common: &Common, counts: &[u32]) -> Contest {
    let entry = |&count: &u32| {
        let common = common.on(common.setup.database, count);
        common.entry(format!("{count} shards"), Contestant::Forebay, Scenario::Lifecycle(Backlog::Empty))
    };
    common.contest("shards", counts.iter().map(entry).collect())
}

/// Nothing to do, with an item that waits in each of so many topics.
pub fn idle(common: &Common, waiting: u32, settle: Duration) -> Contest {
    let common = common.under(|load| load.topics = waiting);
    common.contest("idle", vec![common.forebay(Scenario::Idle { settle })])
}

/// Those named, each once: the floor first, and then the peers in the order of their list.
fn rivals(common: &Common, against: &[String], scenario: Scenario) -> Vec<Entry> {
    let named = |name: &str| against.iter().any(|one| one == name || one == "all");
    let mut entries = Vec::new();
    if named("floor") && has_floor(scenario) {
        entries.extend(floors(common, scenario));
    }
    let peers = peers::NAMES.iter().filter(|name| named(name));
    entries.extend(peers.map(|name| common.peer(name, scenario)));
    entries
}

/// The floor in the run's own batches and in batches of 500, unless those are more than a server takes at once.
pub fn floors(common: &Common, scenario: Scenario) -> Vec<Entry> {
    let own = common.load.batch;
    let mut entries = vec![common.floor(own, scenario)];
    if own != LARGE && LARGE * common.load.item_bytes <= STATEMENT_BYTES {
        entries.push(common.floor(LARGE, scenario));
    }
    entries
}

fn has_floor(scenario: Scenario) -> bool {
    matches!(scenario, Scenario::Lifecycle(_) | Scenario::Enqueue(_) | Scenario::Drain(_))
}

/// The program to measure: the one named, else the workspace's, built now.
pub fn program(named: Option<&Path>) -> anyhow::Result<PathBuf> {
    if let Some(path) = named {
        ensure!(path.exists(), "--forebay: {} does not exist", path.display());
        return Ok(path.to_owned());
    }
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = std::process::Command::new(cargo)
        .current_dir(&workspace)
        .args(["build", "--release", "--package", "forebay"])
        .status()
        .context("running cargo to build the program to measure")?;
    ensure!(built.success(), "the program to measure could not be built");
    let own = std::env::current_exe()?;
    let target = own.parent().and_then(Path::parent).context("no target folder")?;
    let program = target.join("release/forebay");
    ensure!(program.exists(), "no {}; name the program with --forebay", program.display());
    Ok(program)
}
