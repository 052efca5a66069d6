//! Runs a plan and checks it.

use std::{
    cell::Cell,
    sync::{Arc, Once, PoisonError, atomic::Ordering},
};

use forebay_engine::planted::make_older;
use tokio::task::JoinSet;

use super::{
    chaos,
    check::{self, Finding, RunRecord, ShardLog},
    client, cluster,
    coverage::Coverage,
    drain,
    plan::{Kind, Plan},
    world::{World, address},
};
use crate::fake::Dice;

/// More processes than a run has.
const PROCESSES_MAX: usize = 500;

/// The result of a run.
#[derive(Debug)]
pub struct Report {
    /// The invariants that it broke.
    pub findings: Vec<Finding>,
    /// A digest of everything that happened.
    pub hash: u64,
    /// The trace, if the plan keeps it.
    pub lines: Vec<String>,
    /// Which situations it met.
    pub coverage: Coverage,
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
    // As in an upgrade that goes back and forth.
    let older = (1..=PROCESSES_MAX).filter(|number| plan.older && number % 3 != 0).map(address);
    make_older(older.collect());
    let world = runtime.block_on(simulate(plan));
    drop(runtime);
    let mut violations =
        std::mem::take(&mut *world.violations.lock().unwrap_or_else(PoisonError::into_inner));
    if PANICS.get() > panics {
        violations.push(("PANIC", "a task panicked: see above".to_owned()));
    }
    report(&world, violations)
}

/// Panics in tasks of the engine are seen by nobody, so they are counted.
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

async fn simulate(plan: Plan) -> Arc<World> {
    let mut dice = Dice::new(plan.seed ^ 0x5eed);
    let world = Arc::new(World::new(plan, &mut dice).await);
    let in_cluster = world.plan.kind == Kind::Cluster;
    if in_cluster {
        chaos::begin(&world, &mut dice);
        cluster::begin(&world, &mut dice).await;
    } else {
        let offset = chaos::first_offset(&world, &mut dice);
        let node = world.start(dice.next(), offset);
        if world.plan.strict_order() {
            node.engine.ready().await;
        }
        chaos::begin(&world, &mut dice);
    }
    let faults = {
        let (world, dice) = (world.clone(), dice.fork());
        tokio::spawn(async move {
            match in_cluster {
                true => cluster::run_faults(&world, dice).await,
                false => chaos::run_faults(&world, dice).await,
            }
        })
    };
    let watch = {
        let world = world.clone();
        tokio::spawn(async move { client::watch(&world).await })
    };
    let mut clients = JoinSet::new();
    for _ in 0..world.plan.clients {
        let (world, dice) = (world.clone(), dice.fork());
        clients.spawn(async move { client::live(&world, dice).await });
    }
    clients.join_all().await;
    for task in [faults, watch] {
        task.abort();
        drop(task.await);
    }
    drain::drain(&world, dice.fork()).await;
    world
}

fn report(world: &World, violations: Vec<Finding>) -> Report {
    let mut shards = Vec::new();
    let mut findings = violations;
    let mut coverage = Coverage::default();
    for db in &world.dbs {
        let state = &mut *db.lock();
        findings.append(&mut state.violations);
        let shard = Coverage { shards: state.coverage, ..Coverage::default() };
        coverage.add(&shard);
        let (log, owners) = (std::mem::take(&mut state.log), std::mem::take(&mut state.owners));
        let (releases, tried) = (std::mem::take(&mut state.releases), std::mem::take(&mut state.tried));
        shards.push(ShardLog { id: db.id, log, owners, releases, tried });
    }
    coverage.told_shards = world.told_shards.load(Ordering::Relaxed);
    coverage.found_elsewhere = world.found_elsewhere();
    let calls = std::mem::take(&mut *world.calls.lock().unwrap_or_else(PoisonError::into_inner));
    let deaths = std::mem::take(&mut *world.deaths.lock().unwrap_or_else(PoisonError::into_inner));
    let stops = std::mem::take(&mut *world.stops.lock().unwrap_or_else(PoisonError::into_inner));
    let told = std::mem::take(&mut *world.told.lock().unwrap_or_else(PoisonError::into_inner));
    let stalls = std::mem::take(&mut *world.stalls.lock().unwrap_or_else(PoisonError::into_inner));
    let mut nodes = world.nodes().clone();
    nodes.sort_by_key(|node| node.process.number);
    let configured = nodes.into_iter().map(|node| node.shards).collect();
    let record = RunRecord {
        forwards: world.plan.forwards,
        exact_time: world.plan.exact_time(),
        strict: world.plan.strict_order(),
        healthy: matches!(world.plan.kind, Kind::Quiet | Kind::Crashes),
        sent_once: matches!(world.plan.kind, Kind::Quiet | Kind::Crashes | Kind::Clocks),
        shards_change: matches!(world.plan.kind, Kind::Changes | Kind::Everything | Kind::Cluster),
        older: world.plan.older,
        stalls,
        configured,
        settings: world.plan.settings.clone(),
        calls,
        shards,
        deaths,
        stops,
        told,
    };
    coverage.measure(&record);
    let forwarded = world.forwarded.lock().unwrap_or_else(PoisonError::into_inner).clone();
    coverage.forwarded = forwarded.answered;
    coverage.forward_lost = forwarded.lost;
    coverage.forward_unreached = forwarded.unreached;
    findings.extend(check::check(&record));
    if world.plan.kind == Kind::Cluster {
        let met = &mut *world.cluster().coverage();
        [met.moves, met.moves_checked, met.failovers] =
            check::check_moves(&record, &world.cluster().log(), &mut findings);
        coverage.cluster = *met;
    }
    Report { findings, hash: world.journal.hash(), lines: world.journal.lines(), coverage }
}
