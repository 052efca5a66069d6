//! GetActiveTopics: topics that have a ready item, in the order of their heads.

use std::{collections::BTreeSet, time::Duration};

use forebay_types::{Namespace, Reason, Refusal, Timestamp, TopicName};

use crate::{
    api::{ActiveTopic, ActiveTopics, ActiveTopicsCall, RETRY_AFTER, TopicPosition},
    core::{
        Core,
        active_index::{ActiveIndex, WaitingPage},
        timers::Timer,
    },
    dispatch::{head::head, prefetch},
    messages::event::Reply,
};

/// How long a page waits for heads that have not been read yet.
const HEADS_TIMEOUT: Duration = Duration::from_secs(1);

/// Serves the call. Changes of the shards' topics are noted already.
pub(crate) fn serve(core: &mut Core, call: ActiveTopicsCall, reply: Reply<ActiveTopics>) {
    if refresh(core, &call.namespace) {
        let _ = reply.send(Ok(page(core, &call)));
        return;
    }
    let until = core.time.monotonic().plus(HEADS_TIMEOUT);
    core.active.pages.push(WaitingPage { call, reply, until });
    core.timers.set(until, Timer::Pages);
}

/// Answers the pages whose heads have been read since, and those that have waited long enough.
pub(crate) fn serve_waiting(core: &mut Core) {
    let at = core.time.monotonic();
    for WaitingPage { call, reply, until } in std::mem::take(&mut core.active.pages) {
        if refresh(core, &call.namespace) {
            let _ = reply.send(Ok(page(core, &call)));
        } else if until <= at || core.stopping.is_stopping() {
            let message = "some topics have not been read yet";
            let refusal = Refusal::new(Reason::ShardUnavailable, message).retry_after(RETRY_AFTER);
            let _ = reply.send(Err(refusal));
        } else if !reply.is_closed() {
            core.active.pages.push(WaitingPage { call, reply, until });
        }
    }
}

fn page(core: &Core, call: &ActiveTopicsCall) -> ActiveTopics {
    let Some(index) = core.active.get(&call.namespace) else { return ActiveTopics::default() };
    let mut rest =
        index.after(call.after.clone()).filter(|position| position.topic.starts_with(&call.prefix));
    let topics = rest.by_ref().take(call.limit);
    let topics = topics.map(|position| active_topic(core, &call.namespace, position)).collect();
    ActiveTopics { topics, more: rest.next().is_some() }
}

fn active_topic(core: &Core, namespace: &Namespace, position: &TopicPosition) -> ActiveTopic {
    let name = TopicName { namespace: namespace.clone(), topic: position.topic.clone() };
    let mut topic = ActiveTopic { position: position.clone(), ready: 0, leased: 0, scheduled: 0 };
    for part in core.topics.parts(&name) {
        let totals = core.slots.owned(part.shard).and_then(|shard| shard.totals(part.topic));
        let totals = totals.unwrap_or_default();
        topic.ready += totals.ready;
        topic.leased += totals.leased;
        topic.scheduled += totals.scheduled;
    }
    topic
}

/// Brings the order of a namespace up to date. Returns whether every head is known.
fn refresh(core: &mut Core, namespace: &Namespace) -> bool {
    let mut index = core.active.take(namespace).unwrap_or_else(|| {
        ActiveIndex::of(core.topics.of_namespace(namespace, None).map(|name| name.topic.clone()))
    });
    let moment = core.time.moment();
    let mut unknown = BTreeSet::new();
    for topic in index.take_stale() {
        let name = TopicName { namespace: namespace.clone(), topic: topic.clone() };
        let parts = core.topics.parts(&name);
        if prefetch::is_head_unknown(&mut core.slots, &mut core.ids, &parts, moment) {
            unknown.insert(topic);
            continue;
        }
        let head = parts.into_iter().filter_map(|part| head(&mut core.slots, part, moment)).min();
        let position = head.map(|head| TopicPosition {
            best_priority: head.priority,
            oldest_ready_at: Timestamp::from_micros(head.rank),
            topic: topic.clone(),
        });
        index.set(topic, position);
    }
    let known = unknown.is_empty();
    index.set_stale(unknown);
    if core.topics.count_of(namespace) > 0 || !known {
        core.active.put(namespace.clone(), index);
    }
    known
}
