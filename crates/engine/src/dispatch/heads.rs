//! News of topics of this node's shards, for other nodes.

use std::time::Duration;

use forebay_types::TopicName;

use super::{head::head, merge, prefix};
use crate::{
    api::{HeadPosition, ReadyState},
    core::{Core, policies::Eligible, timers::Timer},
};

/// Topics that one turn looks at.
const LOOKED_AT_PER_TURN: usize = 512;
/// A topic whose first item has to be read is looked at again after this time, if not before.
const UNKNOWN_AFTER: Duration = Duration::from_millis(20);
/// After this time news are sent for which there was no room on the way to a node.
const FLUSH_AFTER: Duration = Duration::from_millis(5);

/// Offers and tells what has changed. To look at topics takes at most `limit`; the rest waits for the next
/// turn.
pub(crate) fn tell(core: &mut Core, limit: Duration) {
    let at = core.time.monotonic();
    core.watchers.begin_turn(at);
    // To look at a topic may be to touch it: the turn ends all the same.
    for _ in 0..LOOKED_AT_PER_TURN {
        let Some(name) = core.watchers.next_touched() else { break };
        // Nobody follows it any more: a look could even read items for nothing.
        if !core.watchers.follows(&name) {
            continue;
        }
        match look(core, &name) {
            Some(state) => core.watchers.tell(&name, state, at),
            None => core.watchers.look_again(&name, at.plus(UNKNOWN_AFTER)),
        }
        if core.time.monotonic() >= at.plus(limit) {
            break;
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use forebay_types::Monotonic;
    use tokio::sync::mpsc::channel;

    use super::*;
    use crate::{
        api::{Subscription, TopicHead},
        core::testing::SlowClock,
    };

    #[test]
    fn topics_that_many_nodes_follow_are_looked_at_in_several_turns_by_tenant() {
        let mut core = Core::for_test_with(Arc::new(SlowClock::default()));
        let (heads, mut told) = channel::<Vec<TopicHead>>(16);
        core.watchers.begin(1, heads);
        let names = (0..100).map(|number| TopicName::new("many", format!("t{number}")));
        let subscription = |name| Subscription { name, wanted: Some(1), payer: None };
        core.watchers.subscribe(1, names.chain([TopicName::new("zero", "t")]).map(subscription).collect());
        tell(&mut core, Duration::from_millis(10));
        let first = told.try_recv().unwrap();
        assert!(first.len() < 20 && first.iter().any(|head| head.name.namespace.as_ref() == "zero"));
        assert_eq!(core.watchers.next_look(), Some(Monotonic::default()), "the next turn comes at once");
        let mut rest = 0;
        for _ in 0..50 {
            tell(&mut core, Duration::from_millis(10));
            rest += told.try_recv().map_or(0, |heads| heads.len());
        }
        assert_eq!(first.len() + rest, 101);
    }
}
