//! The plan of a run, which follows from its seed.

use std::time::Duration;

use forebay_engine::Settings;
use forebay_store::ErrorClass;

use super::{caller_bug::CallerBug, cluster::Fault};
use crate::fake::{CatalogBug, Dice, Faults, StoreBug};

/// The faults that a run tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// No faults: order and time are checked exactly.
    Quiet,
    /// A tiny memory budget and slow reads.
    Tight,
    /// Batches are rolled back, rows cannot be stored, the disk is full, a shard is slow or down.
    Rollbacks,
    /// COMMITs are lost before, after and while they take effect.
    Unknown,
    /// Processes die or are stopped, and others start.
    Crashes,
    /// A process is cut off from its shards, and another takes them over.
    TakeOvers,
    /// Clocks step by up to an hour.
    Clocks,
    /// A process, or one task of it, stands still for up to 20 s, and then goes on.
    Stalls,
    /// Processes start with other sets of shards than those before.
    Reshards,
    /// Shards are handed from process to process.
    Moves,
    /// Shards are added, drained and removed while processes run. These hear of it at different times.
    Changes,
    /// All of these faults.
    Everything,
    /// A cluster with a catalog: its nodes decide themselves who owns which shard.
    Cluster,
}

impl Kind {
    /// All kinds of runs without a catalog.
    pub const ALL: [Self; 12] = [
        Self::Quiet,
        Self::Tight,
        Self::Rollbacks,
        Self::Unknown,
        Self::Crashes,
        Self::TakeOvers,
        Self::Clocks,
        Self::Stalls,
        Self::Reshards,
        Self::Moves,
        Self::Changes,
        Self::Everything,
    ];
}

/// One run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Its seed.
    pub seed: u64,
    /// The faults that it tests.
    pub kind: Kind,
    /// How many shards.
    pub shards: usize,
    /// How many clients.
    pub clients: usize,
    /// How many calls each of them makes.
    pub steps: usize,
    /// Whether one server stores all shards.
    pub one_server: bool,
    /// How many servers store the shards, in runs with a catalog.
    pub servers: usize,
    /// Milliseconds for which a client pauses between two calls.
    pub pause_ms: (u64, u64),
    /// How many topics.
    pub topics: usize,
    /// The engines' settings.
    pub settings: Settings,
    /// Calls whose client disconnects, per mille.
    pub cancels: u32,
    /// Items that cannot be stored, per mille.
    pub poison: u32,
    /// The shards' planted bug.
    pub store_bug: Option<StoreBug>,
    /// The catalog's planted bug.
    pub catalog_bug: Option<CatalogBug>,
    /// The callers' planted bug.
    pub caller_bug: Option<CallerBug>,
    /// The disturbance that is most frequent, in runs with a catalog.
    pub focus: Option<Fault>,
    /// The most bytes of new items that a batch of a shard may carry.
    pub batch_bytes: usize,
    /// Enqueues with dedupe keys, per mille.
    pub keys: u32,
    /// Calls after which a client rests for more than a minute, per mille.
    pub rests: u32,
    /// Whether processes pass calls on to each other.
    pub forwards: bool,
    /// Whether some processes treat dedupe keys as the release before does.
    pub older: bool,
    /// Whether consumers ask for topics by prefixes, too.
    pub prefixes: bool,
    /// Whether clocks step.
    pub clocks_step: bool,
    /// Whether the trace is kept.
    pub trace: bool,
}

impl Plan {
    /// The plan of a seed.
    pub fn new(seed: u64) -> Self {
        let kind = Kind::ALL[(seed % Kind::ALL.len() as u64) as usize];
        Self::of(kind, seed)
    }

    /// The plan of a seed, with chosen faults.
    pub fn of(kind: Kind, seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let mut settings = Settings::default();
        let tiny = kind == Kind::Tight || (kind != Kind::Quiet && dice.chance(300));
        if tiny {
            settings.index_bytes = dice.within(2_000, 12_000) as usize;
        }
        if kind == Kind::Quiet && dice.chance(300) {
            settings.index_bytes = dice.within(8_000, 40_000) as usize;
        }
        if dice.chance(300) {
            settings.batch_rows = dice.within(4, 40) as usize;
        }
        // A stepping clock could end a short window at any time.
        let clocks_step = clocks_step(kind, seed);
        if !clocks_step {
            settings.dedupe_window = Duration::from_secs(dice.within(10, 90));
        } else {
            settings.dedupe_window = Duration::from_secs(36_000);
        }
        settings.idle_topic = Duration::from_secs(dice.within(2, 60));
        let quiet = kind == Kind::Quiet;
        let mut plan = Self {
            seed,
            kind,
            shards: *dice.pick(&[1, 1, 2, 4]),
            clients: dice.within(2, 5) as usize,
            steps: dice.within(15, 45) as usize,
            topics: dice.within(1, 4) as usize,
            settings,
            cancels: if quiet { 0 } else { 60 },
            poison: if matches!(kind, Kind::Rollbacks | Kind::Everything) { 60 } else { 0 },
            store_bug: None,
            catalog_bug: None,
            caller_bug: None,
            focus: None,
            batch_bytes: 4 << 20,
            keys: 250,
            rests: 0,
            forwards: !matches!(kind, Kind::Quiet | Kind::Tight) && seed % 2 == 1,
            older: matches!(kind, Kind::Crashes | Kind::TakeOvers | Kind::Moves) && seed % 3 == 2,
            prefixes: seed / 12 % 3 == 1,
            clocks_step,
            trace: false,
            one_server: false,
            servers: 1,
            pause_ms: (0, 400),
        };
        // Drawn last, so that the earlier values of an old seed do not change.
        plan.settings.batches_per_server = dice.within(1, 4) as usize;
        plan.one_server = dice.chance(500);
        if dice.chance(500) {
            plan.tighten(&mut dice);
        }
        plan.rests = if dice.chance(80) { 12 } else { 0 };
        if matches!(kind, Kind::Reshards | Kind::Changes) {
            plan.shards = dice.within(3, 4) as usize;
            plan.keys = 600;
        }
        if seed % 4 < 2 {
            plan.settings.topics_per_turn = 1;
        }
        let retention = if dice.chance(700) { dice.within(1, 20) } else { 0 };
        plan.settings.dead_letter_retention = Duration::from_secs(retention);
        if kind == Kind::Cluster {
            plan.widen(&mut dice);
        }
        plan
    }

    /// Several servers with several shards each, and time for shards to move.
    fn widen(&mut self, dice: &mut Dice) {
        self.shards = dice.within(3, 8) as usize;
        self.servers = dice.within(1, 3) as usize;
        self.forwards = true;
        self.clients = dice.within(2, 3) as usize;
        self.steps = dice.within(20, 60) as usize;
        self.pause_ms = (0, 8_000);
        self.rests = 0;
        self.one_server = false;
        self.settings.followed_bytes = match self.seed % 8 {
            3 => 0,
            // One topic of each tenant.
            7 => 2_600,
            _ => self.settings.followed_bytes,
        };
    }

    /// Whether nodes have room to follow all topics of each other.
    pub fn follows_all(&self) -> bool {
        self.settings.followed_bytes >= 1 << 20
    }

    /// Tiny limits and budgets, each with a chance, so that they meet in all combinations.
    fn tighten(&mut self, dice: &mut Dice) {
        let settings = &mut self.settings;
        let mut tiny = |value: &mut usize, range: (u64, u64)| {
            if dice.chance(400) {
                *value = dice.within(range.0, range.1) as usize;
            }
        };
        tiny(&mut settings.limits.leased_per_topic, (2, 30));
        tiny(&mut settings.limits.leased_per_shard, (4, 60));
        tiny(&mut settings.admit_bytes, (600, 12_000));
        tiny(&mut settings.admit_shard_bytes, (600, 6_000));
        tiny(&mut settings.admit_tenant_bytes, (600, 4_000));
        tiny(&mut settings.polls, (1, 4));
        tiny(&mut settings.index_bytes, (2_000, 12_000));
        tiny(&mut self.batch_bytes, (1_500, 12_000));
        tiny(&mut settings.sweep_rows, (1, 5));
    }

    /// The settings of a process. Every second process keeps dead letters for longer than the others.
    pub fn settings_of(&self, process: usize) -> Settings {
        let mut settings = self.settings.clone();
        settings.dead_letter_retention *= 1 + u32::from(process.is_multiple_of(2));
        settings
    }

    /// Whether no clock steps.
    pub fn exact_time(&self) -> bool {
        !self.clocks_step
    }

    /// Whether no fault affects the order of delivery.
    pub fn strict_order(&self) -> bool {
        matches!(self.kind, Kind::Quiet)
    }

    /// The faults of a shard in this run.
    pub fn faults(&self, dice: &mut Dice) -> Faults {
        let mut faults = Faults::none();
        let much = dice.within(1, 4) as u32;
        if matches!(self.kind, Kind::Tight | Kind::Everything) {
            faults.read_ms = (1, dice.within(5, 80));
        }
        if matches!(self.kind, Kind::Rollbacks | Kind::Everything) {
            faults.rolled_back = 30 * much;
            faults.classes = vec![
                ErrorClass::Replay,
                ErrorClass::Replay,
                ErrorClass::NotPrimary,
                ErrorClass::Unavailable,
                ErrorClass::Disconnected,
                ErrorClass::Unavailable,
                ErrorClass::Disconnected,
            ];
            faults.read_fails = 20 * much;
            faults.resolve_fails = 100;
            faults.slow = 10 * much;
            faults.slow_ms = (100, 2_500);
        }
        if matches!(self.kind, Kind::Unknown | Kind::Everything) {
            faults.lost_before = 15 * much;
            faults.lost_after = 25 * much;
            faults.hangs = 15 * much;
            faults.resolve_fails = 200;
            faults.forgets = 400;
            faults.commit_ms = (1, dice.within(2, 60));
        }
        if matches!(self.kind, Kind::TakeOvers | Kind::Everything) {
            faults.unkilled = 500;
            faults.renewal_fails = 10 * much;
            faults.take_over_fails = 100;
            faults.lost_after = faults.lost_after.max(20);
            faults.hangs = faults.hangs.max(30);
            faults.resolve_fails = 400;
            faults.forgets = 200;
            faults.commit_ms = (1, dice.within(2, 200));
        }
        if matches!(self.kind, Kind::Stalls | Kind::Everything) {
            faults.lost_before = faults.lost_before.max(10 * much);
            faults.lost_after = faults.lost_after.max(15 * much);
            faults.hangs = faults.hangs.max(15 * much);
            faults.answer_ms = (0, dice.within(1, 40));
            faults.reply_ms = (0, dice.within(1, 120));
        }
        if matches!(self.kind, Kind::Moves) {
            faults.reply_ms = (0, dice.within(1, 400));
        }
        if matches!(self.kind, Kind::Crashes | Kind::Moves | Kind::Changes) {
            faults.commit_ms = (1, dice.within(2, 40));
            faults.answer_ms = (0, dice.within(1, 40));
        }
        faults
    }
}

/// Whether clocks step in a run: in each of some kinds, in every fourth of clusters.
fn clocks_step(kind: Kind, seed: u64) -> bool {
    match kind {
        Kind::Clocks | Kind::Everything => true,
        Kind::Cluster => seed % 4 == 3,
        _ => false,
    }
}
