//! Reports of a shard's task, and how they are handled. This is the only place where reports of an earlier
//! term are dropped.

use std::time::Duration;

use forebay_store::{ShardTopology, StoreError};
use forebay_types::{Monotonic, ShardId, Timestamp};

use crate::{
    api::RETRY_AFTER,
    calls::{change_items, dedupe, find_keys, settle},
    clock::NodeTime,
    commit::answers,
    core::{Core, health::Health, slot::Slot},
    dispatch::delivery,
    index::{ServerIndex, ShardIndex},
    invariant::broken,
    messages::shard::{ScanResult, ShardEvent, ShardOrder, Verdict},
    ownership,
    shard::{CommittedBatch, OwnedShard, UndoneBatch},
};

/// A server whose clock is further off is reported.
const CLOCK_OFFSET_MICROS_MAX: u64 = 1_000_000;

/// The message to operators about a shard that leaves questions without an answer.
const NO_ANSWER: &str = "no answer within a second";

/// Handles what a shard's task reported in a term.
pub(super) fn handle(core: &mut Core, index: ShardIndex, term: u64, event: ShardEvent) {
    // Its task is about to end.
    if core.slots.is_removed(index) {
        return;
    }
    match event {
        // These begin a term, or end one.
        ShardEvent::Waits(waits) => ownership::waits(core, index, term, waits),
        ShardEvent::Unreachable(error) => ownership::unreachable(core, index, term, &error),
        ShardEvent::Observed { topology } => observed(core, index, topology),
        ShardEvent::TakenOver(taken_over) => ownership::taken_over(core, index, term, *taken_over),
        ShardEvent::Released => ownership::on_released(core, index),
        ShardEvent::Stopped => ownership::on_stopped(core, index),
        // A shard answers, or does not, whether it is owned or not.
        ShardEvent::Silent if core.slots[index].term <= term => {
            let at = core.time.monotonic();
            core.slots[index].health.late(NO_ANSWER, at);
        }
        ShardEvent::Answered => {
            let at = core.time.monotonic();
            core.slots[index].health.answers(at);
        }
        event if core.slots[index].is_current(term) => current(core, index, event),
        // The rest concerns a shard that was lost since.
        _ => {}
    }
}

/// Handles what concerns the shard that is owned now.
fn current(core: &mut Core, index: ShardIndex, event: ShardEvent) {
    let at = core.time.monotonic();
    let Slot { term, health, holding, tasks, .. } = &mut core.slots[index];
    let Some(holding) = holding else { return broken("a current term has a shard") };
    let shard = &mut holding.shard;
    match event {
        ShardEvent::Resolved { verdict, took } => resolved(core, index, verdict, took),
        ShardEvent::Slow => health.slow(at),
        ShardEvent::Overdue => answers::overdue(core, index),
        ShardEvent::RenewalFailed(error) => health.renewal_failed(&error, at),
        ShardEvent::Trouble(why) => health.strike(why, at),
        ShardEvent::NoRoom(why) => health.note(why),
        ShardEvent::Concerns(concerns) => health.set_concerns(concerns),
        ShardEvent::NotPrimary => {
            let _ = tasks.send(ShardOrder::TakeAnew { term: *term });
        }
        ShardEvent::ClaimLost => ownership::lost(core, index, false),
        ShardEvent::Renewed { began, server_time } => renewed(core, index, began, server_time),
        ShardEvent::Prefetched { topic, read, rows } => {
            let fetched = shard.prefetched(topic, read, or_strike(rows, health, at));
            fetched.iter().for_each(|name| core.touch(name));
        }
        ShardEvent::Bodies { read, bodies } => {
            let failed = shard.bodies_read(read, or_strike(bodies, health, at), at);
            if let Some(lease) = failed {
                delivery::lease_failed(core, index, lease);
            }
        }
        ShardEvent::Scanned { sweep, read, found } => match or_strike(found, health, at) {
            Some(ScanResult { rows, next }) => shard.scanned(sweep, read, rows, next),
            None => shard.scan_failed(sweep, read, at),
        },
        ShardEvent::OperationRead { read, items } => {
            shard.operation_read(read, or_strike(items, health, at), at);
        }
        ShardEvent::TalliesRead { read, rows } => {
            shard.tallies_read(read, or_note(rows, health), at);
        }
        ShardEvent::ChangesRead { read, items } => {
            let items = or_strike(items, health, at);
            change_items::read(core, index, read, items);
        }
        ShardEvent::DedupeHits { read, hits } if core.questions.is_open(read) => {
            find_keys::found(core, index, read, hits);
        }
        ShardEvent::DedupeHits { read, hits } => dedupe::looked_up(core, index, read, hits),
        ShardEvent::KeysFoundElsewhere { read, hits } => dedupe::told(core, index, read, hits),
        ShardEvent::ItemsLocated { read, locations } => {
            let locations = or_strike(locations, health, at);
            settle::located(core, index, read, locations);
        }
        ShardEvent::Generations { live, error } => generations(shard, health, live, error, at),
        ShardEvent::Waits(_)
        | ShardEvent::Unreachable(_)
        | ShardEvent::Silent
        | ShardEvent::Answered
        | ShardEvent::Observed { .. }
        | ShardEvent::TakenOver(_)
        | ShardEvent::Released
        | ShardEvent::Stopped => broken("the events around a term are handled before"),
    }
}

/// Generations of the dedupe table were created and dropped.
fn generations(
    shard: &mut OwnedShard,
    health: &mut Health,
    live: Vec<u64>,
    error: Option<StoreError>,
    at: Monotonic,
) {
    let retry_at = error.map(|error| {
        health.note(error.to_string());
        at.plus(RETRY_AFTER)
    });
    shard.generations_changed(live, retry_at);
    shard.resume_keys();
}

/// The batch in flight is resolved, after so long.
fn resolved(core: &mut Core, index: ShardIndex, verdict: Verdict, took: Duration) {
    let at = core.time.monotonic();
    let Some(shard) = core.slots.owned_mut(index) else { return broken("a current term has a shard") };
    match verdict {
        Verdict::Committed { last } => {
            let committed = shard.committed(last, at, took);
            self::committed(core, index, committed);
        }
        Verdict::Unstorable { why, bad, duplicate } => {
            metrics::counter!("forebay_poisoned_batches_total").increment(1);
            let undone = match duplicate {
                true => shard.duplicate(&why, at),
                false => shard.unstorable(&why, &bad, at),
            };
            self::undone(core, index, undone);
        }
        Verdict::DiskFull => {
            let undone = shard.disk_full(at);
            self::undone(core, index, undone);
        }
        Verdict::Foreign { sent } => ownership::lost(core, index, sent),
        Verdict::GivenUp { why, sent } => ownership::given_up(core, index, why, sent),
        Verdict::Stuck => ownership::stuck(core, index),
    }
}

/// The claim was renewed.
fn renewed(core: &mut Core, index: ShardIndex, began: Monotonic, server_time: Option<Timestamp>) {
    let at = core.time.monotonic();
    let Slot { id, server, term, health, holding, tasks, .. } = &mut core.slots[index];
    if holding.as_mut().is_some_and(|holding| holding.shard.renewed(began)) {
        let _ = tasks.send(ShardOrder::TakeAnew { term: *term });
    }
    health.answers(at);
    if let Some(server_time) = server_time {
        core.time.vote(*server, server_time, began);
    }
    look_at_clock(&mut core.time, *id, *server, health);
}

fn observed(core: &mut Core, index: ShardIndex, topology: ShardTopology) {
    let (id, now) = (core.slots[index].id, core.time.now());
    if core.homes.recorded(id, topology, now) {
        ownership::record_topology(core);
    }
}

/// The batch in flight is committed.
fn committed(core: &mut Core, index: ShardIndex, committed: Option<CommittedBatch>) {
    let Some(committed) = committed else { return broken("a batch that is committed was in flight") };
    let at = core.time.monotonic();
    let slot = &mut core.slots[index];
    slot.health.committed(at, committed.took);
    metrics::histogram!("forebay_commit_seconds", "shard" => slot.id.to_string())
        .record(committed.took.as_secs_f64());
    answers::committed(core, index, committed);
    settle::resolved(core, index, true);
}

/// The batch in flight did not happen.
fn undone(core: &mut Core, index: ShardIndex, undone: Option<UndoneBatch>) {
    let at = core.time.monotonic();
    core.slots[index].health.undone(at);
    match undone {
        Some(undone) => {
            answers::undone(core, index, undone);
            settle::resolved(core, index, false);
        }
        None => broken("a batch that is undone was in flight"),
    }
}

/// The result of a read; `None` if it failed.
fn or_strike<T>(result: Result<T, StoreError>, health: &mut Health, at: Monotonic) -> Option<T> {
    result.map_err(|error| health.read_failed(&error, at)).ok()
}

/// The result of a read that deliveries don't need. `None` if it failed, which is no reason to leave the
/// shard out.
fn or_note<T>(result: Result<T, StoreError>, health: &mut Health) -> Option<T> {
    result.map_err(|error| health.note(format!("read of counts: {error}"))).ok()
}

/// Says once that the clock of a shard's server, or this machine's, is off.
fn look_at_clock(time: &mut NodeTime, id: ShardId, server: ServerIndex, health: &mut Health) {
    let offset = time.offset(server);
    if !health.set_clock_off(offset.unsigned_abs() > CLOCK_OFFSET_MICROS_MAX) {
        return;
    }
    let millis = offset / 1_000;
    if time.follows_servers() {
        tracing::warn!(
            shard.id = id.0,
            offset_micros = offset,
            "the clock of shard {id}'s server is {millis} ms off the node's time; check NTP"
        );
    } else {
        tracing::warn!(
            shard.id = id.0,
            offset_micros = offset,
            "the clock of this machine is {millis} ms off the node's time: somebody has set it, or it slept"
        );
    }
}
