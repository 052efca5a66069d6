//! One function for each thing that a shard's task reports. This is the only place where what an earlier
//! term reports is dropped.

use forebay_store::{ReadyRow, ShardTopology, StoreError, Sweep};
use forebay_types::{Monotonic, Seq, Timestamp, TopicId};

use crate::{
    api::RETRY_AFTER,
    calls::{dedupe, settle},
    commit::answers,
    core::{Core, slot::Slot},
    dispatch::delivery,
    index::ShardIndex,
    messages::shard::{ScanResult, ShardEvent},
    ownership,
    shard::OwnedShard,
};

/// A server whose clock is further off is reported.
const CLOCK_OFFSET_MICROS_MAX: u64 = 1_000_000;

/// Handles what a shard's task reported in a term.
pub(super) fn handle(core: &mut Core, index: ShardIndex, term: u64, event: ShardEvent) {
    let slot = &core.slots[index];
    let current = slot.term == term && slot.holding.is_some();
    match event {
        // These begin a term, or end one.
        ShardEvent::NotOwned { state, why } => ownership::not_owned(core, index, term, state, why),
        ShardEvent::Observed { lists } => observed(core, index, &lists),
        ShardEvent::TakenOver(taken_over) => ownership::taken_over(core, index, term, *taken_over),
        ShardEvent::Released => ownership::released(core, index),
        // Whoever asked still waits for an answer.
        ShardEvent::ItemLocated { request, .. } if !current => settle::not_located(core, index, &request),
        // The rest concerns a shard that was lost since.
        _ if !current => {}
        ShardEvent::Committed { last } => committed(core, index, last),
        ShardEvent::Unstorable { why, bad } => unstorable(core, index, &why, &bad),
        ShardEvent::DiskFull => disk_full(core, index),
        ShardEvent::Trouble(why) => trouble(core, index, why),
        ShardEvent::Lost { sent } => ownership::lost(core, index, sent),
        ShardEvent::Renewed { began, server_time } => renewed(core, index, began, server_time),
        ShardEvent::Prefetched { topic, read, rows } => prefetched(core, index, topic, read, rows),
        ShardEvent::Bodies { read, bodies } => delivery::bodies_read(core, index, read, bodies),
        ShardEvent::Scanned { sweep, read, found } => scanned(core, index, sweep, read, found),
        ShardEvent::DedupeHits { read, hits } => dedupe::looked_up(core, index, read, hits),
        ShardEvent::ItemLocated { request, location } => {
            settle::located(core, index, &request, location);
        }
        ShardEvent::Generations { live } => generations(core, index, live),
    }
}

/// The slot and its shard, in the term that is current.
fn current(core: &mut Core, index: ShardIndex) -> Option<&mut OwnedShard> {
    core.slots.owned_mut(index)
}

fn observed(core: &mut Core, index: ShardIndex, lists: &[ShardTopology]) {
    let now = core.time.now();
    core.homes.saw(index, lists, now);
}

fn committed(core: &mut Core, index: ShardIndex, last: u64) {
    let at = core.time.monotonic();
    let Some(committed) = current(core, index).and_then(|shard| shard.committed(last, at)) else { return };
    let slot = &mut core.slots[index];
    slot.breaker.committed(at, committed.took);
    metrics::histogram!("forebay_commit_seconds", "shard" => slot.id.to_string())
        .record(committed.took.as_secs_f64());
    answers::committed(core, index, committed);
}

fn unstorable(core: &mut Core, index: ShardIndex, why: &str, bad: &[Seq]) {
    metrics::counter!("forebay_poisoned_batches_total").increment(1);
    if let Some(undone) = current(core, index).and_then(|shard| shard.unstorable(why, bad)) {
        answers::undone(core, index, undone);
    }
}

fn disk_full(core: &mut Core, index: ShardIndex) {
    let at = core.time.monotonic();
    if let Some(undone) = current(core, index).and_then(|shard| shard.disk_full(at)) {
        answers::undone(core, index, undone);
    }
}

fn trouble(core: &mut Core, index: ShardIndex, why: String) {
    let at = core.time.monotonic();
    core.slots[index].strike(why, at);
}

fn renewed(core: &mut Core, index: ShardIndex, began: Monotonic, server_time: Option<Timestamp>) {
    if let Some(shard) = current(core, index) {
        shard.renewed(began);
    }
    let Some(server_time) = server_time else { return };
    let slot = &mut core.slots[index];
    core.time.vote(slot.server, server_time);
    let offset = core.time.offset(slot.server).unwrap_or(0);
    log_clock(slot, offset);
}

fn log_clock(slot: &mut Slot, offset: i64) {
    let off = offset.unsigned_abs() > CLOCK_OFFSET_MICROS_MAX;
    if off && !slot.clock_off {
        let (id, millis) = (slot.id, offset / 1_000);
        tracing::warn!(
            shard.id = id.0,
            offset_micros = offset,
            "the clock of shard {id}'s server is {millis} ms off the node's time; check NTP"
        );
    }
    slot.clock_off = off;
}

fn prefetched(
    core: &mut Core,
    index: ShardIndex,
    topic: TopicId,
    read: u64,
    rows: Result<Vec<ReadyRow>, StoreError>,
) {
    let at = core.time.monotonic();
    if let Err(error) = &rows {
        core.slots[index].strike(error.to_string(), at);
    }
    let fetched = current(core, index).map(|shard| shard.prefetched(topic, read, rows.ok()));
    for name in fetched.into_iter().flatten() {
        core.topics.wake(name);
    }
}

fn scanned(
    core: &mut Core,
    index: ShardIndex,
    sweep: Sweep,
    read: u64,
    found: Result<ScanResult, StoreError>,
) {
    let at = core.time.monotonic();
    if let Err(error) = &found {
        core.slots[index].strike(error.to_string(), at);
    }
    let Some(shard) = current(core, index) else { return };
    match found {
        Ok(ScanResult { rows, next }) => shard.scanned(sweep, read, rows, next),
        Err(_) => shard.scan_failed(sweep, read, at),
    }
}

fn generations(core: &mut Core, index: ShardIndex, live: Result<Vec<u64>, StoreError>) {
    let retry_at = core.time.monotonic().plus(RETRY_AFTER);
    if let Err(error) = &live {
        core.slots[index].last_error = error.to_string();
    }
    if let Some(shard) = current(core, index) {
        shard.generations_changed(live.ok(), retry_at);
    }
    dedupe::retry_waiting(core, index);
}
