//! What operators see of the engine.

use forebay_types::{Monotonic, TopicName};

use crate::{
    api::{MissingHome, ShardStatus, Status, TopicStatus},
    core::{Core, topics::TopicPart},
    shard::{OwnedShard, TopicTotals},
};

/// Topics that one status lists.
const TOPICS_MAX: usize = 1_000;

/// How things are now.
pub(crate) fn serve(core: &mut Core) -> Status {
    let turns = core.turns;
    core.turns.longest_nanos = 0;
    let moment = core.time.moment();
    let since = |at: Option<Monotonic>| at.map(|at| moment.now.minus(moment.at.since(at)).as_micros());
    let Core { slots, time, .. } = &mut *core;
    let shards = slots.iter().map(|slot| ShardStatus {
        id: slot.id.0,
        server: slot.health.server().to_owned(),
        state: slot.state,
        owner: slot.health.owner().to_owned(),
        silent_since_micros: since(slot.health.silent_since()),
        breaker: slot.health.phase(),
        breaker_since_micros: since(slot.health.breaker_since()),
        clock_offset_micros: time.offset(slot.server).unwrap_or(0),
        last_error: slot.health.last_error().to_owned(),
        ..slot.owned().map(OwnedShard::status).unwrap_or_default()
    });
    let shards = shards.collect();
    let missing = core.homes.missing(moment.now).into_iter();
    Status {
        shards,
        missing_homes: missing
            .map(|(shard, until)| MissingHome { shard: shard.0, until_micros: until.as_micros() })
            .collect(),
        polls: core.polls.len(),
        admitted_bytes: core.calls.admitted_bytes(),
        topic_count: core.topics.len(),
        topics: core.topics.all().take(TOPICS_MAX).map(|name| topic(core, name)).collect(),
        turns,
    }
}

fn topic(core: &Core, name: &TopicName) -> TopicStatus {
    let mut sum = TopicTotals::default();
    for TopicPart { shard, topic } in core.topics.parts(name) {
        sum += core.slots.owned(shard).and_then(|shard| shard.totals(topic)).unwrap_or_default();
    }
    TopicStatus {
        namespace: name.namespace.to_string(),
        topic: name.topic.to_string(),
        ready: sum.ready,
        leased: sum.leased,
        scheduled: sum.scheduled,
        dead: sum.dead,
        waiting: core.topics.waiting_count(name),
    }
}
