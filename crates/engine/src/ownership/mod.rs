//! Consequences for the node of a take-over, a hand-over, and the loss of a shard.

pub(crate) mod hand_over;
pub(crate) mod shard_set;

use std::time::Duration;

use forebay_store::{ErrorClass, Fence, StoreError};
use forebay_types::ShardId;

use crate::{
    api::{Duty, OwnerAnswer, OwnerQuestion, ShardSight, ShardState},
    calls::dedupe,
    claim::{Reply, reply},
    clock::Moment,
    commit::answers,
    core::{
        Core,
        slot::{ReadableShard, Slot},
    },
    index::ShardIndex,
    io::reads::Reads,
    messages::{
        event::ShardEvents,
        shard::{ShardOrder, TakenShard, Waits},
    },
    planted::{Bug, on},
    shard::{LoadedShard, OwnedShard, TIMEOUT_GRACE_MAX, TIMEOUT_GRACE_MIN},
};

/// A fence that is further ahead of node time is reported, and raises its own shard's ranks alone.
const FENCE_AHEAD_MAX: Duration = Duration::from_secs(1);

/// A shard was taken over: it is served from now on.
pub(crate) fn taken_over(core: &mut Core, index: ShardIndex, term: u64, taken_over: TakenShard) {
    if core.slots[index].holding.is_some() {
        lost(core, index, true);
    }
    // While it was loaded, this node has told a candidate that it does not own the shard.
    let Fence { epoch, incarnation, .. } = taken_over.fence;
    if !core.slots[index].denied.allows(epoch, incarnation) {
        let _ = core.slots[index].tasks.send(ShardOrder::Dropped { term });
        return;
    }
    let (id, moment) = (core.slots[index].id, core.time.moment());
    let Moment { now, at } = moment;
    let TakenShard { fence, image, reader, tasks, batch_bytes, concerns, losses, began, outage } = taken_over;
    let loaded = LoadedShard {
        fence,
        image,
        batch_bytes,
        began,
        // Acks that were on their way come before the ends of leases.
        timeouts_after: at.plus(if on(Bug::NoGrace) {
            Duration::ZERO
        } else {
            outage.clamp(TIMEOUT_GRACE_MIN, TIMEOUT_GRACE_MAX)
        }),
        next_record: core.homes.next_record(id, now),
    };
    let mut shard = OwnedShard::new(id, core.settings.clone(), loaded, at);
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
    (slot.owner, slot.silent, slot.server_fails) = (String::new(), false, false);
    slot.fitness.tried(true, at);
    slot.health.taken_over(moment);
    slot.health.set_concerns(concerns);
    slot.health.has_lost(losses, at);
    let events = ShardEvents { shard: index, term, events: core.events.clone() };
    slot.holding = Some(Box::new(ReadableShard { shard, reads: Reads::new(reader, events, tasks) }));
    if core.stopping.is_stopping() {
        let _ = slot.tasks.send(ShardOrder::Stop);
    }
    let duty = slot.duty.borrow().clone();
    core.share_index();
    core.begin_walk(index);
    core.report_served();
    // It was taken away from this node while it was being taken over.
    if let Duty::Leave { successor } = duty {
        hand_over::begin(core, index, successor);
    }
}

/// The shards as the node sees them.
pub(crate) fn sights(core: &Core) -> Vec<ShardSight> {
    let at = core.time.monotonic();
    let sight = |slot: &Slot| ShardSight {
        id: slot.id,
        server: slot.health.server().to_owned(),
        wanted: slot.duty.borrow().is_own(),
        owned: slot.holding.is_some(),
        owner: slot.owner.clone(),
        silent: slot.silent,
        prepared: slot.prepared,
        looked_at: slot.state != ShardState::Starting,
        answers: !matches!(slot.state, ShardState::Starting | ShardState::Unreachable)
            && slot.health.silent_since().is_none(),
        stuck: slot.fitness.is_for_others(at),
    };
    core.slots.iter().map(sight).collect()
}

/// A set of shards became known that every shard has to record.
pub(crate) fn record_topology(core: &mut Core) {
    let now = core.time.now();
    for index in core.slots.indexes() {
        let next = core.homes.next_record(core.slots[index].id, now);
        if let Some(shard) = core.slots.owned_mut(index) {
            shard.set_next_record(next);
        }
    }
}

/// Another node owns the shard.
pub(crate) fn waits(core: &mut Core, index: ShardIndex, term: u64, waits: Waits) {
    let Waits { owner, silent, prepared } = waits;
    let at = core.time.monotonic();
    let slot = &mut core.slots[index];
    slot.prepared = prepared;
    slot.fitness.tried(true, at);
    let is_new = (slot.silent, &slot.owner) != (silent, &owner);
    slot.silent = silent;
    slot.owner.clone_from(&owner);
    set_state(core, index, term, ShardState::Waiting);
    if is_new {
        core.report_served();
    }
    let slot = &mut core.slots[index];
    let wanted = slot.duty.borrow().is_own();
    slot.health.note("another node owns the shard".to_owned());
    slot.health.waits_for(owner, wanted, at);
}

/// A shard's task can't take the shard for now.
pub(crate) fn unreachable(core: &mut Core, index: ShardIndex, term: u64, error: &StoreError) {
    let at = core.time.monotonic();
    set_state(core, index, term, ShardState::Unreachable);
    let Slot { health, fitness, .. } = &mut core.slots[index];
    // Another node may have a program that can use it.
    fitness.tried(error.class != ErrorClass::Schema, at);
    health.note(error.to_string());
    if error.class == ErrorClass::Disconnected {
        health.silent(&error.message, at);
    }
    if error.class.is_of_server() {
        log_server(core, index, error);
    }
}

/// Logs what keeps all shards of a server from being taken over: once, until all of them answer again.
fn log_server(core: &mut Core, index: ShardIndex, error: &StoreError) {
    let slot = &core.slots[index];
    if slot.server_fails {
        return;
    }
    let (server, name) = (slot.server, slot.health.server());
    if !core.slots.iter().any(|slot| slot.server == server && slot.server_fails) {
        tracing::warn!(server = name, %error, "cannot take over shards of {name}: {error}; retrying");
    }
    core.slots[index].server_fails = true;
}

/// A shard's task says how it stands, ten times a second while it does not own the shard. Only what is new is
/// told on: that looks at all shards.
fn set_state(core: &mut Core, index: ShardIndex, term: u64, state: ShardState) {
    let slot = &mut core.slots[index];
    slot.term = term;
    slot.server_fails &= state == ShardState::Unreachable;
    if std::mem::replace(&mut slot.state, state) != state {
        core.report_served();
    }
}

/// A shard was given up as asked.
pub(crate) fn on_released(core: &mut Core, index: ShardIndex) {
    core.slots[index].state = ShardState::Waiting;
    lost(core, index, false);
}

/// A shard's task has ended as asked, and has given the shard up.
pub(crate) fn on_stopped(core: &mut Core, index: ShardIndex) {
    core.slots[index].state = ShardState::Stopped;
    lost(core, index, false);
}

/// Whether this node owns a shard, for a candidate that saw no sign of life of its claim.
///
/// "No" is a resignation: an owner that can't trust its claim any more drops the shard before it says so. So
/// it answers nobody for the shard after the candidate has taken it.
pub(crate) fn owns(core: &mut Core, question: OwnerQuestion) -> OwnerAnswer {
    let OwnerQuestion { shard: id, epoch, incarnation, server_slow } = question;
    let at = core.time.monotonic();
    let Some(index) = core.slots.index_of(id) else { return OwnerAnswer::Resigned };
    let slot = &mut core.slots[index];
    let tenure = slot.owned().filter(|shard| shard.is_tenure_of(epoch, incarnation));
    match reply(tenure.map(|shard| shard.is_trusted(at)), server_slow) {
        Reply::Owns => return OwnerAnswer::Owns,
        Reply::Unsure => return OwnerAnswer::Unsure,
        Reply::Deny => {
            slot.denied.note(epoch, incarnation);
            return OwnerAnswer::Resigned;
        }
        Reply::StepDown => {}
    }
    slot.health.note("this node could not confirm its claim, and another one asked for the shard".to_owned());
    let _ = slot.tasks.send(ShardOrder::Dropped { term: slot.term });
    // Whether COMMIT of the batch in flight was sent is known to its task alone.
    lost(core, index, true);
    OwnerAnswer::Resigned
}

/// A batch failed again and again: the shard's task takes it over anew. `sent`: COMMIT of the batch was sent,
/// so its outcome is unknown.
pub(crate) fn given_up(core: &mut Core, index: ShardIndex, why: String, sent: bool) {
    let slot = &mut core.slots[index];
    slot.state = ShardState::Unreachable;
    slot.health.note(why);
    lost(core, index, sent);
}

/// A shard's batch is stuck, although its server commits for others: another node may do better.
pub(crate) fn stuck(core: &mut Core, index: ShardIndex) {
    let at = core.time.monotonic();
    core.slots[index].fitness.stuck(at);
    given_up(
        core,
        index,
        "its batch was not committed, although its server commits for others".to_owned(),
        true,
    );
}

/// A shard is no longer ours. `sent`: COMMIT of the batch in flight was sent, so its outcome is unknown.
pub(crate) fn lost(core: &mut Core, index: ShardIndex, sent: bool) {
    let at = core.time.monotonic();
    let slot = &mut core.slots[index];
    let hand_over = slot.hand_over.take();
    let Some(holding) = slot.holding.take() else { return };
    let (abandoned, topics) = holding.shard.abandon();
    if slot.state == ShardState::Stopped || hand_over.is_some_and(|hand_over| hand_over.ordered) {
        slot.health.released(at, abandoned.epoch);
    } else {
        slot.health.lost(at, abandoned.epoch);
    }
    if slot.state == ShardState::Owned {
        slot.state = ShardState::Waiting;
    }
    let server = slot.server;
    core.share_index();
    core.report_served();
    if !core.slots.iter().any(|slot| slot.server == server && slot.holding.is_some()) {
        core.time.forget(server);
    }
    core.begin_leaving(index, topics);
    core.lookups.drop_home(index);
    core.questions.drop_shard(index);
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
