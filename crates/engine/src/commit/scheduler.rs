//! Which shards may commit now. However short a batch is, it costs its server the statements around it, a
//! fence and a COMMIT. So the shards of one server take turns with small batches, and what waits for its
//! turn makes the next batch longer.
//!
//! A full batch gains nothing by waiting and is sent at once. So does one of a server that has few in flight.
//! How many are few depends on what waits: a batch of a handful of rows is mostly overhead and waits for any
//! other, as long as every shard still has its turn soon. Nobody waits for a batch that is in flight for
//! long: it may be stuck with its shard alone. `core/server_loads.rs` keeps the accounts.

use forebay_types::Monotonic;

use crate::{
    calls::{change_items, settle},
    clock::Moment,
    core::{
        Core,
        server_loads::{BatchSize, ShardLoad},
    },
    dispatch::{delivery, serve, waiting_polls::waiting_polls},
    index::ShardIndex,
    invariant::broken,
    messages::shard::ShardOrder,
    planted::{Bug, on},
    shard::{BuildContext, BuiltBatch, OwnedShard},
};

/// A batch of fewer rows costs its server less than the statements around it do.
const SMALL_BATCH_ROWS: usize = 64;

/// Builds the next batches, of which those of the `changed` shards may have become possible. It stops after
/// `until`; what is left has its turn at once.
pub(crate) fn commit_in_turn(core: &mut Core, changed: &[ShardIndex], until: Monotonic) {
    let node = core.time.moment();
    for index in changed {
        update_load(core, *index, node);
    }
    while let Some(index) = core.loads.next(core.settings.batches_per_server) {
        let done = commit(core, index);
        update_load(core, index, node);
        // Work that left the queues without a row may have held up a call that needs a batch to itself.
        if done == BuildOutcome::Nothing && core.loads.is_waiting(index) {
            return broken("a shard that wants to commit has something to commit");
        }
        if core.time.monotonic() >= until {
            return;
        }
    }
}

/// Brings the account of a shard's server up to date.
fn update_load(core: &mut Core, index: ShardIndex, node: Moment) {
    let slot = &mut core.slots[index];
    let server = slot.server;
    let load = match &slot.hand_over {
        // Its task was told to release it: a further batch would come too late.
        Some(hand_over) if hand_over.ordered => None,
        _ => slot.holding.as_mut().map(|holding| load(&mut holding.shard, node)),
    };
    core.loads.update(index, server, load.unwrap_or_default());
}

fn load(shard: &mut OwnedShard, node: Moment) -> ShardLoad {
    let rows = shard.next_batch_rows(node);
    let size = |rows: usize| match rows {
        _ if shard.fills_a_batch(rows) => BatchSize::Full,
        rows if rows < SMALL_BATCH_ROWS => BatchSize::Small,
        _ => BatchSize::Large,
    };
    ShardLoad { busy: shard.busy_until(node.at).is_some(), takes: shard.turn_takes(), wants: rows.map(size) }
}

/// The result of building a shard's next batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BuildOutcome {
    /// A batch was sent off.
    Sent,
    /// Only work that needs no row left the queues.
    Answered,
    /// Nothing waited.
    Nothing,
}

/// Builds a shard's next batch and sends it off.
fn commit(core: &mut Core, index: ShardIndex) -> BuildOutcome {
    if core.slots.owned(index).is_none_or(OwnedShard::is_committing) {
        return BuildOutcome::Nothing;
    }
    let waiting = waiting_polls(core, index);
    let moment = core.time.moment();
    let Core { slots, topics, rng, settings, policies, .. } = core;
    let Some(shard) = slots.owned_mut(index) else { return BuildOutcome::Nothing };
    let topics_of = |namespace: &str| topics.count_of(namespace);
    let topics_left = settings.topics_max().saturating_sub(topics.rows());
    let context =
        BuildContext { moment, rng, topics_of: &topics_of, topics_left, waiting, set: &policies.settings };
    let BuiltBatch { batch, atomic, rows, stale, nothing_consumed, not_changed, handed_off } =
        shard.build(context);
    if on(Bug::LeaseBeforeCommit) {
        lease_before_commit(core, index);
    }
    let done = match batch.is_some() {
        true => BuildOutcome::Sent,
        false if stale.is_empty() && not_changed.is_empty() => BuildOutcome::Nothing,
        false => BuildOutcome::Answered,
    };
    let slot = &core.slots[index];
    if let Some(batch) = batch {
        metrics::histogram!("forebay_batch_rows").record(rows as f64);
        let _ = slot.tasks.send(ShardOrder::Commit { term: slot.term, batch: Box::new(batch), atomic });
    }
    for poll in handed_off {
        serve::handed_off(core, poll);
    }
    for poll in nothing_consumed {
        delivery::nothing_consumed(core, index, poll);
    }
    for request in stale {
        settle::locate(core, index, request);
    }
    for (request, told) in not_changed {
        change_items::not_changed(core, index, &request, told);
    }
    done
}

/// The planted bug: items are handed out before their lease is committed.
fn lease_before_commit(core: &mut Core, index: ShardIndex) {
    let leases = core.slots.owned(index).map(OwnedShard::planned_leases);
    for (part, leased) in leases.into_iter().flatten() {
        delivery::leased(core, index, part, leased);
    }
}
