//! Causes faults at the shards and processes while the clients run.

use std::{collections::BTreeMap, sync::PoisonError, time::Duration};

use forebay_engine::{Duty, Intake, TaskName};
use forebay_types::{ShardId, Timestamp};

use super::{plan::Kind, process::Node, tasks::Still, world::World};
use crate::fake::{Dice, Faults, Life};

/// An hour, in microseconds.
const HOUR: u64 = 3_600_000_000;

/// So soon the shards of a process that stands still are served by another one, once that one has looked at
/// them.
const SERVED_AFTER: Duration = Duration::from_secs(5);

/// How long a fault waits for a batch that it may meet.
const MEET_COMMIT_MS: u64 = 300;

/// Causes faults until its task is aborted.
pub async fn run_faults(world: &World, mut dice: Dice) {
    loop {
        let span = dice.millis((200, 2_500));
        tokio::time::sleep(span).await;
        match world.plan.kind {
            Kind::Quiet | Kind::Tight | Kind::Cluster => {}
            Kind::Rollbacks => shard_trouble(world, &mut dice).await,
            Kind::Unknown => unknown_trouble(world, &mut dice).await,
            Kind::Crashes => crash(world, &mut dice).await,
            Kind::TakeOvers => take_over(world, &mut dice).await,
            Kind::Clocks => disturb_clocks(world, &mut dice).await,
            Kind::Stalls => stall(world, &mut dice).await,
            Kind::Reshards => reshard(world, &mut dice).await,
            Kind::Moves => move_shards(world, &mut dice).await,
            Kind::Changes => change_shards(world, &mut dice).await,
            Kind::Everything => match dice.below(9) {
                0 => shard_trouble(world, &mut dice).await,
                1 => unknown_trouble(world, &mut dice).await,
                2 => crash(world, &mut dice).await,
                3 => take_over(world, &mut dice).await,
                4 => stall(world, &mut dice).await,
                5 => reshard(world, &mut dice).await,
                6 => move_shards(world, &mut dice).await,
                7 => change_shards(world, &mut dice).await,
                _ => disturb_clocks(world, &mut dice).await,
            },
        }
    }
}

/// Sets every shard's initial faults.
pub fn begin(world: &World, dice: &mut Dice) {
    for db in &world.dbs {
        let faults = world.plan.faults(dice);
        db.lock().faults = faults;
    }
}

/// Ends all faults.
pub fn heal(world: &World) {
    world.journal.note(format_args!("all faults end"));
    for db in &world.dbs {
        let state = &mut *db.lock();
        state.faults = Faults::none();
        state.clock_offset = 0;
    }
    for node in world.alive() {
        node.process.set(Life::Running);
        node.clock.set_offset(0);
        world.go_on(&node);
    }
}

/// Makes a shard slow, unavailable, full or short of connections for a while.
async fn shard_trouble(world: &World, dice: &mut Dice) {
    let db = dice.pick(&world.dbs).clone();
    let what = dice.below(5);
    let before = db.lock().faults.clone();
    world.journal.note(format_args!("shard {} has fault {what}", db.id));
    {
        let faults = &mut db.lock().faults;
        match what {
            0 => faults.disk_full = true,
            1 => faults.down = true,
            2 => (faults.disk_full, faults.disk_full_for_leases) = (true, true),
            3 => faults.readers_busy = true,
            _ => (faults.slow, faults.slow_ms) = (900, (1_000, 3_000)),
        }
    }
    let span = dice.millis((300, 4_000));
    tokio::time::sleep(span).await;
    world.journal.note(format_args!("shard {} has recovered", db.id));
    db.lock().faults = before;
}

/// Makes a shard lose many COMMITs for a while.
async fn unknown_trouble(world: &World, dice: &mut Dice) {
    let db = dice.pick(&world.dbs).clone();
    let before = db.lock().faults.clone();
    {
        let faults = &mut db.lock().faults;
        (faults.lost_before, faults.lost_after, faults.hangs) = (150, 250, 150);
    }
    let span = dice.millis((100, 1_500));
    tokio::time::sleep(span).await;
    db.lock().faults = before;
}

/// Kills or stops a process and starts another.
async fn crash(world: &World, dice: &mut Dice) {
    let Some(node) = world.alive().last().cloned() else { return };
    if dice.chance(250) {
        stop(world, &node).await;
    } else {
        meet_commit(world, dice).await;
        world.kill(&node);
    }
    let span = dice.millis((0, 1_500));
    tokio::time::sleep(span).await;
    let offset = first_offset(world, dice);
    world.start(dice.next(), offset);
    let span = dice.millis((1_000, 6_000));
    tokio::time::sleep(span).await;
}

/// Mostly waits until a batch is on its way, for a moment: what happens then is what is most in doubt.
async fn meet_commit(world: &World, dice: &mut Dice) {
    if dice.chance(900) {
        for _ in 0..MEET_COMMIT_MS {
            if world.dbs.iter().any(|db| db.lock().is_committing()) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// Cuts a process off from its shards, lets another take them over, and reconnects the first.
async fn take_over(world: &World, dice: &mut Dice) {
    let Some(node) = world.alive().last().cloned() else { return };
    meet_commit(world, dice).await;
    world.journal.note(format_args!("process {} is disconnected from its shards", node.process.number));
    node.process.set(Life::CutOff);
    let span = dice.millis((0, 1_000));
    tokio::time::sleep(span).await;
    let second = world.alive().len() < 2;
    if second {
        world.start(dice.next(), 0);
    }
    let range = if dice.chance(200) { (500, 2_500) } else { (2_500, 9_000) };
    let span = dice.millis(range);
    tokio::time::sleep(span).await;
    world.journal.note(format_args!("process {} is reconnected to its shards", node.process.number));
    node.process.set(Life::Running);
    let span = dice.millis((500, 3_000));
    tokio::time::sleep(span).await;
    if dice.chance(500) {
        world.kill(&node);
    }
}

/// Lets a process, or tasks of one shard, stand still. Another process may take its shards over meanwhile.
async fn stall(world: &World, dice: &mut Dice) {
    let alive = world.alive();
    if alive.is_empty() {
        return;
    }
    let node = dice.pick(&alive).clone();
    let shard = *dice.pick(&node.shards);
    let (commits, renewals) = (Still::Task(TaskName::Shard(shard)), Still::Task(TaskName::Renewals(shard)));
    let what = match dice.below(7) {
        0..3 => vec![Still::Process],
        3 => vec![commits],
        4 => vec![renewals],
        5 => vec![Still::Task(TaskName::EventLoop)],
        _ => vec![commits, renewals],
    };
    meet_commit(world, dice).await;
    world.stand_still(&node, &what);
    if alive.len() < 2 && dice.chance(800) {
        let span = dice.millis((0, 500));
        tokio::time::sleep(span).await;
        world.start(dice.next(), 0);
    }
    // A process of which only one shard's renewals stand still keeps the shard for as long as it says so.
    let range = *dice.pick(&[(100, 1_500), (1_500, 11_000), (2_500, 20_000), (11_000, 20_000)]);
    let span = dice.millis(range);
    tokio::time::sleep(span).await;
    let whole = [Still::Process, Still::Task(TaskName::EventLoop)];
    if world.plan.kind == Kind::Stalls && span > SERVED_AFTER && what.iter().any(|it| whole.contains(it)) {
        served_elsewhere(world, &node);
    }
    world.go_on(&node);
    let span = dice.millis((500, 3_000));
    tokio::time::sleep(span).await;
    if dice.chance(400) {
        world.kill(&node);
    }
}

/// SHARD-SERVED: a process that stands still has lost its shards, if there is another one.
fn served_elsewhere(world: &World, node: &Node) {
    let other = world.alive().iter().any(|other| other.address != node.address);
    for db in world.dbs.iter().filter(|_| other) {
        let state = db.lock();
        if state.tables.address == node.address {
            let what = format!("shard {} belongs to a process that stands still", db.id);
            drop(state);
            world.blame("SHARD-SERVED", what);
        }
    }
}

/// Assigns each shard to some process. Now and then one of them dies meanwhile.
async fn move_shards(world: &World, dice: &mut Dice) {
    if world.alive().len() < 2 {
        world.start(dice.next(), 0);
    }
    let alive = world.alive();
    let mut duties = vec![BTreeMap::new(); alive.len()];
    for db in &world.dbs {
        let chosen = dice.below(alive.len() as u64) as usize;
        let address = alive[chosen].address.clone();
        world.journal.note(format_args!("shard {} is for process {}", db.id, alive[chosen].process.number));
        let successor = if dice.chance(900) { address } else { String::new() };
        for (at, duties) in duties.iter_mut().enumerate() {
            let leave = Duty::Leave { successor: successor.clone() };
            duties.insert(db.id, if at == chosen { Duty::Own } else { leave });
        }
    }
    if dice.chance(500) {
        meet_commit(world, dice).await;
    }
    for (node, duties) in alive.iter().zip(duties) {
        node.engine.set_duties(duties);
        if dice.chance(300) {
            // The others hear of it later.
            let span = dice.millis((0, 1_500));
            tokio::time::sleep(span).await;
        }
    }
    if dice.chance(100) {
        let node = dice.pick(&alive).clone();
        world.kill(&node);
    }
    let span = dice.millis((0, 3_000));
    tokio::time::sleep(span).await;
}

/// Restarts all processes with another set of shards: some are added, some are missing until later.
async fn reshard(world: &World, dice: &mut Dice) {
    let before = world.configured();
    let mut after = Vec::new();
    // A set that keeps none of the last one's shards could not be recognised as a change.
    let kept = dice.pick(&before).0;
    for db in &world.dbs {
        if db.id == kept || dice.chance(600) {
            after.push((db.id, Intake::Open));
        }
    }
    world.configure(after);
    for node in world.alive() {
        if dice.chance(500) {
            stop(world, &node).await;
        } else {
            world.kill(&node);
        }
    }
    let offset = first_offset(world, dice);
    world.start(dice.next(), offset);
    let span = dice.millis((1_000, 8_000));
    tokio::time::sleep(span).await;
}

/// Adds, drains or removes a shard while processes run. Each of them hears of it at a time of its own, and
/// some only with the next change.
async fn change_shards(world: &World, dice: &mut Dice) {
    if world.alive().len() < 3 && dice.chance(600) {
        let offset = first_offset(world, dice);
        world.start(dice.next(), offset);
    }
    let mut listed = world.configured();
    let missing = world.dbs.iter().filter(|db| listed.iter().all(|(id, _)| *id != db.id));
    let missing: Vec<ShardId> = missing.map(|db| db.id).collect();
    let open = listed.iter().filter(|(_, intake)| *intake == Intake::Open).count();
    let picked = dice.below(listed.len() as u64) as usize;
    match listed[picked] {
        _ if !missing.is_empty() && dice.chance(500) => listed.push((*dice.pick(&missing), Intake::Open)),
        (_, Intake::Open) if open > 1 => listed[picked].1 = Intake::Closed,
        (_, Intake::Open) => {}
        (id, Intake::Closed) if holds_nothing(world, id) => drop(listed.remove(picked)),
        (_, Intake::Closed) if dice.chance(500) => listed[picked].1 = Intake::Open,
        (_, Intake::Closed) => {}
    }
    world.configure(listed);
    let mut alive = world.alive();
    while !alive.is_empty() {
        let node = alive.remove(dice.below(alive.len() as u64) as usize);
        if dice.chance(750) {
            world.tell(&node);
        }
        if dice.chance(600) {
            let span = dice.millis((0, 1_500));
            tokio::time::sleep(span).await;
        }
    }
    if dice.chance(500) {
        move_shards(world, dice).await;
    }
    let span = dice.millis((0, 6_000));
    tokio::time::sleep(span).await;
}

/// Whether a drained shard may be removed: its owner knows that it is drained, and nothing in it matters to
/// anybody any more.
pub fn holds_nothing(world: &World, id: ShardId) -> bool {
    let Some(db) = world.dbs.iter().find(|db| db.id == id) else { return false };
    let tables = &db.lock().tables;
    let now = world.journal.now();
    let window = world.plan.settings.longest_dedupe_window();
    let kept = |(at, _): &(Timestamp, Vec<u8>)| at.plus(window) > now;
    !tables.topology_history.shards.contains(&id)
        && tables.items.is_empty()
        && tables.dead.is_empty()
        && !tables.generations.values().flat_map(BTreeMap::values).any(kept)
}

/// How far a clock that steps is off, in microseconds.
fn step(dice: &mut Dice) -> i64 {
    let hour = HOUR as i64;
    *dice.pick(&[hour, -hour, hour / 60, -hour / 60, 0])
}

/// How far the clock of a new process is off: where clocks step, some are wrong from the beginning.
pub fn first_offset(world: &World, dice: &mut Dice) -> i64 {
    if world.plan.exact_time() || dice.chance(700) { 0 } else { step(dice) }
}

/// Steps a server's or a node's clock.
pub fn step_clock(world: &World, dice: &mut Dice) {
    let by = step(dice);
    if dice.chance(500) {
        let picked = dice.pick(&world.dbs);
        world.journal.note(format_args!("the clock of shard {} is {by} µs off", picked.id));
        let server = picked.lock().server.clone();
        for db in &world.dbs {
            let state = &mut *db.lock();
            if state.server == server {
                state.clock_offset = by;
            }
        }
    } else if let Some(node) = world.alive().last() {
        world.journal.note(format_args!("the clock of process {} is {by} µs off", node.process.number));
        node.clock.set_offset(by);
    }
}

/// A clock steps, and now and then somebody dies after that.
async fn disturb_clocks(world: &World, dice: &mut Dice) {
    step_clock(world, dice);
    if dice.chance(300) {
        crash(world, dice).await;
    }
}

/// Stops a process gracefully and checks how long that takes.
pub async fn stop(world: &World, node: &Node) {
    let number = node.process.number;
    let told = world.journal.note(format_args!("process {number} begins to stop"));
    world.told.lock().unwrap_or_else(PoisonError::into_inner).push((number, told));
    let start = world.journal.elapsed();
    let stopped = tokio::select! {
        biased;
        () = node.process.died() => true,
        stopped = tokio::time::timeout(Duration::from_secs(25), node.engine.stop()) => stopped.is_ok(),
    };
    let span = world.journal.elapsed().saturating_sub(start);
    // The callers receive the last answers.
    tokio::time::sleep(Duration::from_millis(1)).await;
    let done = world.journal.note(format_args!("process {number} has stopped after {span:?}: {stopped}"));
    if world.plan.kind == Kind::Crashes {
        let stops = &mut *world.stops.lock().unwrap_or_else(PoisonError::into_inner);
        stops.push((number, told, done));
    }
    let healthy = world.dbs.iter().all(|db| !db.lock().faults.down);
    if !stopped && healthy && node.process.life() == Life::Running {
        world.blame("CLEAN-DRAIN", format!("process {number} did not stop within 25 s"));
    }
    world.kill(node);
}
