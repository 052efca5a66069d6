//! What operators see of the engine.

use std::collections::BTreeMap;

use forebay_types::TopicName;

use crate::{
    api::{ShardStatus, Status, TopicStatus},
    core::{Core, topics::TopicDirectory},
    shard::TopicTotals,
};

/// Topics that one status lists.
const TOPICS_MAX: usize = 1_000;

/// How things are now.
pub(crate) fn serve(core: &mut Core) -> Status {
    let mut topics: BTreeMap<(&str, &str), TopicStatus> = BTreeMap::new();
    let mut shards = Vec::with_capacity(core.slots.len());
    for slot in core.slots.iter() {
        let add_topic = |name, totals| add_topic(&mut topics, &core.topics, name, totals);
        let known = slot.owned().map(|shard| shard.status(add_topic)).unwrap_or_default();
        shards.push(ShardStatus {
            id: slot.id.0,
            state: slot.state,
            breaker: slot.health.phase(),
            clock_offset_micros: core.time.offset(slot.server).unwrap_or(0),
            last_error: slot.health.last_error().to_owned(),
            ..known
        });
    }
    Status {
        shards,
        polls: core.polls.len(),
        admitted_bytes: core.calls.admitted_bytes(),
        topic_count: topics.len(),
        topics: topics.into_values().take(TOPICS_MAX).collect(),
    }
}

/// Adds one shard's part of a topic.
fn add_topic<'a>(
    topics: &mut BTreeMap<(&'a str, &'a str), TopicStatus>,
    directory: &TopicDirectory,
    name: &'a TopicName,
    totals: TopicTotals,
) {
    let topic = topics.entry((&*name.namespace, &*name.topic)).or_insert_with(|| TopicStatus {
        namespace: name.namespace.to_string(),
        topic: name.topic.to_string(),
        waiting: directory.waiting_count(name),
        ..TopicStatus::default()
    });
    topic.ready += totals.ready;
    topic.leased += totals.leased;
    topic.scheduled += totals.scheduled;
    topic.dead += totals.dead;
}
