//! News of topics of this node's shards, for other nodes.

use std::time::Duration;

use forebay_types::TopicName;

use super::{head::head, merge, prefix};
use crate::{
    api::{HeadPosition, ReadyState},
    core::{Core, policies::Eligible, timers::Timer},
};

/// A topic whose first item has to be read is looked at again after this time, if not before.
const UNKNOWN_AFTER: Duration = Duration::from_millis(20);
/// After this time news are sent for which there was no room on the way to a node.
const FLUSH_AFTER: Duration = Duration::from_millis(5);

/// Offers and tells what has changed.
pub(crate) fn tell(core: &mut Core) {
    let at = core.time.monotonic();
    for name in core.watchers.take_touched(at) {
        match look(core, &name) {
            Some(state) => core.watchers.tell(&name, state, at),
            None => core.watchers.look_again(&name, at.plus(UNKNOWN_AFTER)),
        }
    }
    let (heads, subscriptions) = (core.watchers.flush(), core.remote.flush());
    if heads || subscriptions {
        core.timers.set(at.plus(FLUSH_AFTER), Timer::Flush);
    }
}

/// The ready items of a topic in this node's shards. `None`: a shard's first item has to be read, and is
/// waited for.
pub(crate) fn look(core: &mut Core, name: &TopicName) -> Option<ReadyState> {
    let at = core.time.monotonic();
    if core.policies.eligible(name) != Eligible::All || core.stopping.is_stopping() {
        return Some(ReadyState::default());
    }
    if name.prefix().is_some() {
        return prefix::look(core, name);
    }
    core.list(name);
    if merge::is_outstanding(core, name, at) {
        return None;
    }
    let moment = core.time.moment();
    let parts = core.topics.parts(name);
    let ready = parts
        .iter()
        .filter_map(|part| Some(core.slots.merged(part.shard)?.ready_items(part.topic)))
        .sum::<u64>();
    let first = parts.into_iter().filter_map(|part| head(&mut core.slots, part, moment)).min();
    let head = first.map(|head| HeadPosition { priority: head.priority, rank: head.rank });
    let ready = u32::try_from(ready).unwrap_or(u32::MAX).max(1);
    Some(head.map_or_else(ReadyState::default, |head| ReadyState { head: Some(head), ready, round: 0 }))
}
