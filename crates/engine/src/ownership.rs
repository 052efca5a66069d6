//! What a take-over, and the loss of a shard, mean for the node.

use std::time::Duration;

use forebay_store::{ErrorClass, StoreError};
use forebay_types::ShardId;

use crate::{
    api::{Served, ShardState},
    calls::dedupe,
    commit::answers,
    core::{Core, slot::Holding},
    index::ShardIndex,
    io::reads::Reads,
    messages::{
        event::ShardEvents,
        shard::{ShardOrder, TakenOver},
    },
    planted::{Bug, on},
    shard::{Loaded, OwnedShard, TIMEOUT_GRACE_MAX},
};

/// A fence that is further ahead of node time is reported, and raises its own shard's ranks alone.
const FENCE_AHEAD_MAX: Duration = Duration::from_secs(1);

/// A shard was taken over: it is served from now on.
pub(crate) fn taken_over(core: &mut Core, index: ShardIndex, term: u64, taken_over: TakenOver) {
    if core.slots[index].holding.is_some() {
        lost(core, index, true);
    }
    let (now, at) = (core.time.now(), core.time.monotonic());
    let TakenOver { fence, image, reader, tasks, batch_bytes, concerns, began, outage } = taken_over;
    let loaded = Loaded {
        fence,
        image,
        batch_bytes,
        began,
        // Acks that were on their way come before the ends of leases.
        timeouts_after: at.plus(if on(Bug::NoGrace) {
            Duration::ZERO
        } else {
            outage.min(TIMEOUT_GRACE_MAX)
        }),
        new_topology: core.homes.to_record(index, now),
    };
    let id = core.slots[index].id;
    let mut shard = OwnedShard::new(id, core.settings.clone(), core.index_budget(), loaded, at);
    if on(Bug::RanksNotRaised) {
    } else if fence.marks.rank > now.plus(FENCE_AHEAD_MAX).as_micros() {
        shard.set_rank_floor(fence.marks.rank);
    } else {
        core.rank = core.rank.max(fence.marks.rank);
    }
    log_time_ahead(id, fence.marks.time.since(now));
    let slot = &mut core.slots[index];
    slot.term = term;
    slot.state = ShardState::Owned;
    slot.health.taken_over(at);
    slot.health.set_concerns(concerns);
    let events = ShardEvents { shard: index, term, events: core.events.clone() };
    slot.holding =
        Some(Box::new(Holding { shard, reads: Reads { reader, own: events.clone(), events, tasks } }));
    if core.stopping.is_stopping() {
        let _ = slot.tasks.send(ShardOrder::Release);
    }
    core.begin_walk(index);
    report_served(core);
}

/// A set of shards became known that every shard has to record.
pub(crate) fn record_topology(core: &mut Core) {
    let now = core.time.now();
    for index in core.slots.indexes() {
        let Some(topology) = core.homes.to_record(index, now) else { continue };
        if let Some(shard) = core.slots.owned_mut(index) {
            shard.set_new_topology(topology);
        }
    }
}

/// Another node owns the shard.
pub(crate) fn waits(core: &mut Core, index: ShardIndex, term: u64, owner: String) {
    let at = core.time.monotonic();
    set_state(core, index, term, ShardState::Waiting);
    let health = &mut core.slots[index].health;
    health.note("another node owns the shard".to_owned());
    health.waits_for(owner, at);
}

/// A shard's task can't take the shard for now.
pub(crate) fn unreachable(core: &mut Core, index: ShardIndex, term: u64, error: &StoreError) {
    let at = core.time.monotonic();
    set_state(core, index, term, ShardState::Unreachable);
    let health = &mut core.slots[index].health;
    health.note(error.to_string());
    if error.class == ErrorClass::Disconnected {
        health.silent(&error.message, at);
    }
}

/// A shard's task says how it stands, ten times a second while it does not own the shard. Only what is new is
/// told on: that looks at all shards.
fn set_state(core: &mut Core, index: ShardIndex, term: u64, state: ShardState) {
    let slot = &mut core.slots[index];
    slot.term = term;
    if std::mem::replace(&mut slot.state, state) != state {
        report_served(core);
    }
}

/// A shard was given up as asked.
pub(crate) fn on_released(core: &mut Core, index: ShardIndex) {
    core.slots[index].state = ShardState::Stopped;
    lost(core, index, false);
}

/// A batch failed again and again: the shard's task takes it over anew. `sent`: COMMIT of the batch was sent,
/// so its outcome is unknown.
pub(crate) fn given_up(core: &mut Core, index: ShardIndex, why: String, sent: bool) {
    let slot = &mut core.slots[index];
    slot.state = ShardState::Unreachable;
    slot.health.note(why);
    lost(core, index, sent);
}

/// A shard is no longer ours. `sent`: COMMIT of the batch in flight was sent, so its outcome is unknown.
pub(crate) fn lost(core: &mut Core, index: ShardIndex, sent: bool) {
    let at = core.time.monotonic();
    let slot = &mut core.slots[index];
    let Some(holding) = slot.holding.take() else { return };
    let (abandoned, topics) = holding.shard.abandon();
    match slot.state {
        ShardState::Stopped => slot.health.released(at, abandoned.epoch),
        _ => slot.health.lost(at, abandoned.epoch),
    }
    if slot.state == ShardState::Owned {
        slot.state = ShardState::Waiting;
    }
    let server = slot.server;
    report_served(core);
    if !core.slots.iter().any(|slot| slot.server == server && slot.holding.is_some()) {
        core.time.forget(server);
    }
    core.begin_leaving(index, topics);
    core.lookups.drop_home(index);
    answers::abandoned(core, index, abandoned, sent);
    // Enqueues that waited for this shard to record the set of shards are told that it does not answer.
    dedupe::resume_everywhere(core);
}

/// An earlier owner's clock was ahead of this node's, and the shard's time can't go back.
fn log_time_ahead(id: ShardId, ahead: Duration) {
    if ahead > FENCE_AHEAD_MAX {
        let millis = ahead.as_millis();
        tracing::warn!(
            shard.id = id.0,
            millis,
            "the time of shard {id} is {millis} ms ahead of the node's time; check NTP"
        );
    }
}

/// Tells those who follow it how many shards are served.
fn report_served(core: &Core) {
    let mut served = Served::default();
    for slot in core.slots.iter() {
        match slot.state {
            _ if slot.holding.is_some() => served.owned += 1,
            ShardState::Starting => served.starting += 1,
            ShardState::Waiting => served.waiting += 1,
            ShardState::Owned | ShardState::Unreachable | ShardState::Stopped => {}
        }
    }
    core.served.send_if_modified(|told| std::mem::replace(told, served) != served);
}
