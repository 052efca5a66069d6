//! Which shards may commit now. However short a batch is, it costs its server the statements around it, a
//! fence and a COMMIT. So the shards of one server take turns with small batches, and what waits for its
//! turn makes the next batch longer.
//!
//! A full batch gains nothing by waiting and is sent at once. So does one of a server that has few in flight.
//! How many are few depends on what waits: a batch of a handful of rows is mostly overhead and waits for any
//! other, as long as every shard still has its turn soon. Nobody waits for a batch that is in flight for
//! long: it may be stuck with its shard alone.

use std::time::Duration;

use forebay_types::Monotonic;

use crate::{
    api::Settings,
    calls::settle,
    core::Core,
    dispatch::{delivery, serve, waiting_polls::waiting_polls},
    index::ShardIndex,
    messages::shard::ShardOrder,
    planted::{Bug, on},
    shard::{BuildContext, Built, OwnedShard},
};

/// A batch of fewer rows costs its server less than the statements around it do.
const SMALL_BATCH_ROWS: usize = 64;
/// Target time for one round over all shards of a server.
const ROUND_TARGET: Duration = Duration::from_millis(5);

/// What a server's shards have to do.
#[derive(Debug, Clone, Copy, Default)]
struct ServerLoad {
    /// Batches in flight.
    in_flight: usize,
    /// How long it would take if each shard that has something to do had its turn, one after the other.
    round: Duration,
}

/// Builds the next batches. The shard after the one that was served last comes first, so none is passed over.
pub(crate) fn commit_in_turn(core: &mut Core, at: Monotonic) {
    let mut loads = vec![ServerLoad::default(); core.slots.len()];
    for slot in core.slots.iter() {
        let Some(shard) = slot.owned() else { continue };
        let load = &mut loads[slot.server.0];
        load.in_flight += usize::from(shard.busy_until(at).is_some());
        load.round += shard.turn_takes();
    }
    let (first, count) = (core.turn.0, core.slots.len());
    for index in (first..count).chain(0..first).map(ShardIndex) {
        let slot = &mut core.slots[index];
        let load = &mut loads[slot.server.0];
        slot.deferred = match &slot.holding {
            Some(holding) => is_deferred(&holding.shard, *load, &core.settings),
            None => false,
        };
        if !slot.deferred && commit(core, index) {
            load.in_flight += 1;
            core.turn = ShardIndex((index.0 + 1) % count);
        }
    }
}

/// Whether the shard's server has enough to do, and what waits does not fill a batch.
fn is_deferred(shard: &OwnedShard, server: ServerLoad, settings: &Settings) -> bool {
    if server.in_flight == 0 {
        return false;
    }
    let rows = shard.waiting_rows();
    let most = settings.batches_per_server;
    let at_once = match rows < SMALL_BATCH_ROWS {
        true => most.min(1 + (server.round.as_micros() / ROUND_TARGET.as_micros()) as usize),
        false => most,
    };
    server.in_flight >= at_once && !shard.fills_a_batch(rows)
}

/// Builds a shard's next batch and sends it off. Returns whether there is one.
fn commit(core: &mut Core, index: ShardIndex) -> bool {
    if core.slots.owned(index).is_none_or(OwnedShard::is_committing) {
        return false;
    }
    let waiting = waiting_polls(core, index);
    let moment = core.time.moment();
    let Core { slots, topics, rng, .. } = core;
    let Some(shard) = slots.owned_mut(index) else { return false };
    let topics_of = |namespace: &str| topics.count_of(namespace);
    let Built { batch, atomic, rows, stale, handed_off } =
        shard.build(BuildContext { moment, rng, topics_of: &topics_of, waiting });
    if on(Bug::LeaseBeforeCommit) {
        lease_before_commit(core, index);
    }
    let sent = batch.is_some();
    let slot = &core.slots[index];
    if let Some(batch) = batch {
        metrics::histogram!("forebay_batch_rows").record(rows as f64);
        let _ = slot.tasks.send(ShardOrder::Commit { term: slot.term, batch: Box::new(batch), atomic });
    }
    for poll in handed_off {
        serve::handed_off(core, poll);
    }
    for request in stale {
        settle::locate(core, index, request);
    }
    sent
}

/// The planted bug: items are handed out before their lease is committed.
fn lease_before_commit(core: &mut Core, index: ShardIndex) {
    let leases = core.slots.owned(index).map(OwnedShard::planned_leases);
    for (part, leased) in leases.into_iter().flatten() {
        delivery::leased(core, index, part, leased);
    }
}
