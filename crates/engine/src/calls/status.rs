//! The engine's status, for operators.

use forebay_types::{Monotonic, Side, Timestamp, TopicName};

use crate::{
    api::{Intake, MissingHome, ShardStatus, Status, TOPIC_BYTES},
    clock::Moment,
    core::Core,
    dispatch::head::head,
    shard::OwnedShard,
};

/// Topics that one status looks at for the oldest item.
const TOPICS_MAX: usize = 1_000;

/// How things are now.
pub(crate) fn serve(core: &mut Core) -> Status {
    let turns = core.turns;
    core.turns.longest_nanos = 0;
    let moment = core.time.moment();
    let since = |at: Option<Monotonic>| at.map(|at| moment.now.minus(moment.at.since(at)).as_micros());
    let Core { slots, time, homes, .. } = &mut *core;
    let shards = slots.iter().map(|slot| ShardStatus {
        id: slot.id.0,
        server: slot.health.server().to_owned(),
        state: slot.state,
        draining: slot.intake == Intake::Closed,
        keys_until_micros: homes.keys_until(slot.id, moment.now).map(Timestamp::as_micros),
        owner: slot.health.owner().to_owned(),
        owned_since_micros: slot.health.owned_since().map(Timestamp::as_micros),
        silent_since_micros: since(slot.health.silent_since()),
        breaker: slot.health.phase(),
        breaker_since_micros: since(slot.health.breaker_since()),
        clock_offset_micros: time.offset(slot.server),
        concerns: slot.health.concerns().to_vec(),
        losses: slot.health.losses(moment.at),
        last_error: slot.health.last_error().to_owned(),
        ..slot.owned().map(OwnedShard::status).unwrap_or_default()
    });
    let shards = shards.collect();
    look_for_oldest(core, moment);
    let missing = core.homes.missing(moment.now).into_iter();
    Status {
        shards,
        missing_homes: missing
            .map(|(shard, until)| MissingHome { shard: shard.0, until_micros: until.as_micros() })
            .collect(),
        oldest_ready_micros: core.oldest_ready.known().map(Timestamp::as_micros),
        givers: core.givers(),
        polls: core.polls.len(),
        paused_enqueue: core.policies.paused(Side::Enqueue),
        paused_dequeue: core.policies.paused(Side::Dequeue),
        admitted_bytes: core.calls.admitted_bytes(),
        topic_count: core.topics.len(),
        topic_bytes: core.topics.rows() * TOPIC_BYTES,
        followed_bytes: core.remote.bytes(),
        subscription_bytes: core.watchers.bytes(),
        missing_sources: core.missing_sources(moment.at),
        turns,
        clock_stepped_micros: u64::try_from(core.time.stepped().as_micros()).unwrap_or(u64::MAX),
    }
}

/// Looks at the first items of a slice of the topics.
fn look_for_oldest(core: &mut Core, moment: Moment) {
    let Core { topics, slots, oldest_ready, .. } = core;
    let names: Vec<&TopicName> = topics.all_after(oldest_ready.after()).take(TOPICS_MAX).collect();
    let last = names.last().filter(|_| names.len() == TOPICS_MAX).map(|name| (*name).clone());
    let parts = names.into_iter().flat_map(|name| topics.parts(name));
    let heads = parts.filter_map(|part| head(slots, part, moment));
    oldest_ready.looked_at(heads.map(|head| Timestamp::from_micros(head.rank)), last);
}
