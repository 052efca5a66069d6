//! A seeded simulation of the engine: fake shards, random clients, faults, crashes, and a checker.
//!
//! Everything happens on one thread under paused time and follows from one number, so that a run that fails
//! can be repeated: see [`Plan`] and [`run`].

mod chaos;
mod client;
mod clock;
mod drain;
mod history;
mod node;
mod payload;
mod plan;
mod tamper;
mod world;

pub mod check;

use std::{
    cell::Cell,
    sync::{Arc, Once, PoisonError},
};

use forebay_types::DeliveryPolicy;
use tokio::task::JoinSet;

pub use clock::SimClock;
pub use history::{Answer, Call, Known, Sent, What};
pub use payload::{payload, tag_of};
pub use plan::{Kind, Plan};
pub use tamper::Tamper;

use crate::fake::{Change, Dice, Sights};
use check::{Case, Finding, ShardLog};
use world::World;

/// What came of a run.
#[derive(Debug)]
pub struct Report {
    /// What was wrong.
    pub findings: Vec<Finding>,
    /// A digest of everything that happened.
    pub hash: u64,
    /// The trace, if it was kept.
    pub lines: Vec<String>,
    /// How often a run saw what it is about.
    pub seen: Seen,
}

/// How often runs saw what they are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Seen {
    /// Calls.
    pub calls: u64,
    /// Deliveries.
    pub deliveries: u64,
    /// What the shards saw.
    pub shards: Sights,
    /// Leases that ran out.
    pub ran_out: u64,
    /// Settlements answered LEASE_LOST.
    pub lease_lost: u64,
    /// Items that went to the dead letters.
    pub buried: u64,
    /// Items that expired.
    pub expired: u64,
    /// Items that were found to be there already.
    pub duplicates: u64,
    /// Members whose outcome was told as unknown.
    pub told_unknown: u64,
    /// Calls whose answer never came.
    pub lost: u64,
    /// Extensions that stand.
    pub extended: u64,
    /// Items delivered at most once.
    pub at_most_once: u64,
}

impl Seen {
    /// Adds another run's.
    pub fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.deliveries += other.deliveries;
        self.ran_out += other.ran_out;
        self.lease_lost += other.lease_lost;
        self.buried += other.buried;
        self.expired += other.expired;
        self.duplicates += other.duplicates;
        self.told_unknown += other.told_unknown;
        self.lost += other.lost;
        self.extended += other.extended;
        self.at_most_once += other.at_most_once;
        let (sum, shards) = (&mut self.shards, &other.shards);
        sum.unknown += shards.unknown;
        sum.unknown_done += shards.unknown_done;
        sum.take_over_in_flight += shards.take_over_in_flight;
        sum.poisoned += shards.poisoned;
        sum.fenced += shards.fenced;
        sum.raced += shards.raced;
        sum.replayed += shards.replayed;
    }

    /// What was not seen at all, of what a set of runs has to see.
    pub fn missing(&self) -> Vec<&'static str> {
        let all = [
            ("a take-over with a batch in flight", self.shards.take_over_in_flight),
            ("an unknown commit that was done", self.shards.unknown_done),
            ("an unknown commit that was not done", self.shards.unknown - self.shards.unknown_done),
            ("a batch refused by the fence", self.shards.fenced),
            ("a batch with a row that can't be stored", self.shards.poisoned),
            ("a batch rolled back", self.shards.replayed),
            ("a prefetch that raced a commit", self.shards.raced),
            ("an expired lease", self.ran_out),
            ("a stale receipt", self.lease_lost),
            ("a dead letter", self.buried),
            ("an expired item", self.expired),
            ("a duplicate", self.duplicates),
            ("an unknown outcome", self.told_unknown),
            ("a lost call", self.lost),
            ("an extension", self.extended),
            ("a delivery at most once", self.at_most_once),
        ];
        all.into_iter().filter(|(_, count)| *count == 0).map(|(name, _)| name).collect()
    }
}

thread_local! {
    static PANICS: Cell<u64> = const { Cell::new(0) };
}

/// Runs a plan from beginning to end and checks it.
pub fn run(plan: Plan) -> Report {
    count_panics();
    let panics = PANICS.get();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without I/O needs nothing");
    let world = runtime.block_on(act(plan));
    drop(runtime);
    let mut wrong = std::mem::take(&mut *world.wrong.lock().unwrap_or_else(PoisonError::into_inner));
    if PANICS.get() > panics {
        wrong.push(("PANIC", "a task panicked: see above".to_owned()));
    }
    judge(&world, wrong)
}

/// Panics in tasks of the engine are seen by nobody: count them.
fn count_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            PANICS.set(PANICS.get() + 1);
            before(info);
        }));
    });
}

async fn act(plan: Plan) -> Arc<World> {
    let mut dice = Dice::new(plan.seed ^ 0x5eed);
    let world = Arc::new(World::new(plan, &mut dice).await);
    let node = world.start(dice.next(), 0);
    if world.plan.strict_order() {
        node.engine.ready().await;
    }
    chaos::begin(&world, &mut dice);
    let trouble = {
        let (world, dice) = (world.clone(), dice.fork());
        tokio::spawn(async move { chaos::reign(&world, dice).await })
    };
    let mut clients = JoinSet::new();
    for _ in 0..world.plan.clients {
        let (world, dice) = (world.clone(), dice.fork());
        clients.spawn(async move { client::live(&world, dice).await });
    }
    clients.join_all().await;
    trouble.abort();
    drop(trouble.await);
    drain::drain(&world, dice.fork()).await;
    world
}

fn judge(world: &World, wrong: Vec<Finding>) -> Report {
    let mut shards = Vec::new();
    let mut findings = wrong;
    let mut seen = Seen::default();
    for db in &world.dbs {
        let state = &mut *db.lock();
        findings.append(&mut state.wrong);
        let shard = Seen { shards: state.sights, ..Seen::default() };
        seen.add(&shard);
        let (log, owners) = (std::mem::take(&mut state.log), std::mem::take(&mut state.owners));
        shards.push(ShardLog { id: db.id, log, owners });
    }
    let calls = std::mem::take(&mut *world.calls.lock().unwrap_or_else(PoisonError::into_inner));
    let deaths = std::mem::take(&mut *world.deaths.lock().unwrap_or_else(PoisonError::into_inner));
    let stops = std::mem::take(&mut *world.stops.lock().unwrap_or_else(PoisonError::into_inner));
    let case = Case {
        exact_time: world.plan.exact_time(),
        strict: world.plan.strict_order(),
        healthy: matches!(world.plan.kind, Kind::Quiet | Kind::Crashes),
        dedupe_window: world.plan.settings.dedupe_window,
        calls,
        shards,
        deaths,
        stops,
    };
    look_back(&case, &mut seen);
    findings.extend(check::check(&case));
    Report { findings, hash: world.journal.hash(), lines: world.journal.lines(), seen }
}

/// Counts what a run saw.
fn look_back(case: &Case, seen: &mut Seen) {
    for call in &case.calls {
        seen.calls += 1;
        match &call.what {
            What::Enqueue { items, answer, .. } => {
                for at in 0..items.len() {
                    let result = answer.member(at);
                    seen.duplicates += u64::from(matches!(result, Some(Ok(done)) if done.duplicate));
                    let unknown = matches!(result, Some(Err(_))) && answer.known(at) == Known::Maybe;
                    seen.told_unknown += u64::from(unknown);
                }
                seen.lost += u64::from(matches!(answer, Answer::Lost));
            }
            What::Dequeue { answer: Answer::Done(items), .. } => {
                seen.deliveries += items.len() as u64;
                let once = items.iter().filter(|item| item.policy == DeliveryPolicy::AtMostOnce);
                seen.at_most_once += once.count() as u64;
            }
            What::Dequeue { .. } => seen.lost += 1,
            What::Ack { answer, .. } | What::Nack { answer, .. } => {
                if let Answer::Done(results) = answer {
                    let lost = |result: &&forebay_engine::Settled| {
                        result.as_ref().err().is_some_and(|refusal| refusal.fate.is_some())
                    };
                    seen.lease_lost += results.iter().filter(lost).count() as u64;
                }
            }
            What::Extend { answer, .. } => {
                if let Answer::Done(results) = answer {
                    seen.extended += results.iter().filter(|result| result.is_ok()).count() as u64;
                }
            }
        }
    }
    for batch in case.shards.iter().flat_map(|shard| &shard.log) {
        for change in &batch.changes {
            match change {
                Change::Closed(entry) => seen.ran_out += u64::from(entry.deadline <= batch.done.at),
                Change::Buried(_) => seen.buried += 1,
                Change::Deleted(row) => {
                    let over = row.expires_at.is_some_and(|end| end <= batch.done.at);
                    seen.expired += u64::from(over);
                }
                _ => {}
            }
        }
    }
}
