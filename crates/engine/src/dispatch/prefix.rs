//! Items of all topics that begin alike. The order of a prefix says whose turn it is; what is handed out are
//! the heads of the topics themselves. Another node counts as one source: it has turns of its own.

use std::time::Duration;

use forebay_types::{Topic, TopicName};

use super::{
    merge::{AskedTopic, PickedItems, add_fetch, pick_topic},
    prefetch::{self, BestHead},
    sources::BestSource,
};
use crate::{
    api::{HeadPosition, ReadyState},
    clock::Moment,
    core::{
        Core,
        policies::Eligible,
        prefixes::{ReadyTopic, Turn},
        timers::Timer,
    },
    planted::{Bug, on},
};

/// Topics of one prefix that are looked at before others have their turn.
const SLICE: usize = 64;
/// Slices of one turn.
const SLICES_PER_TURN: usize = 64;
/// Topics among them whose heads were not read when they were looked at before.
const UNREAD_SLICE: usize = 16;
/// A topic whose head has to be read is looked at again after this time, if not before.
const UNREAD_AFTER: Duration = Duration::from_millis(20);
/// Topics of one poll that have their turn without an item to give.
const IN_VAIN_MAX: usize = 16;

/// Takes the best items of a prefix: of one priority, of each topic in turn. `best`: the best that another
/// node has. Of nodes with equal priorities each has its part by the items of its round.
pub(super) fn pick_prefix(
    core: &mut Core,
    mut asked: AskedTopic<'_>,
    mut best: Option<BestSource>,
    moment: Moment,
    picked: &mut PickedItems,
) {
    let (prefix, mut in_vain) = (asked.name, 0);
    // The priority for which this node was chosen, and stays so for this poll.
    let mut own_turn = None;
    while asked.max_items > 0 {
        let order = core.prefixes.get(prefix);
        let (own, turn) = (order.and_then(|order| order.best()), order.and_then(|order| order.next()));
        let rng = &mut core.rng;
        let is_decided = own.is_some_and(|(priority, _)| own_turn == Some(priority));
        if let Some(source) = best.take_if(|best| !is_decided && best.has_turn(own, rng)) {
            let before = source.before(own.map(|(priority, _)| HeadPosition::of_prefix(priority)));
            if add_fetch(&mut core.remote, &mut asked, source, before, picked) {
                return;
            }
            continue;
        }
        let Some(turn) = turn else { return };
        own_turn = Some(turn.priority);
        if asked.before.is_some_and(|bound| bound.priority < turn.priority) && !on(Bug::FetchBoundIgnored) {
            return;
        }
        let behind = HeadPosition { priority: turn.priority, rank: i64::MAX };
        let before = Some(asked.before.map_or(behind, |bound| bound.min(behind)));
        let name = TopicName { namespace: prefix.namespace.clone(), topic: turn.topic.clone() };
        let max_items = turn.items.unwrap_or(asked.max_items).min(asked.max_items);
        let count = picked.count;
        // It may have been paused since it was looked at.
        if core.policies.eligible(&name) == Eligible::All || on(Bug::PausedInPrefix) {
            pick_topic(core, AskedTopic { name: &name, max_items, before, ..asked }, None, moment, picked);
        }
        let taken = picked.count - count;
        asked.max_items -= taken;
        in_vain += usize::from(taken == 0);
        took(core, prefix, turn, taken);
        let is_refused = taken == 0 && picked.refusal.is_some();
        if picked.full || is_refused || in_vain == IN_VAIN_MAX {
            return;
        }
        prefetch::top_up(&mut core.slots, &mut core.ids, core.topics.parts(&name));
    }
}

/// A topic has had its turn, and has given so many items.
fn took(core: &mut Core, prefix: &TopicName, turn: Turn, taken: usize) {
    // Most topics have one item, and it costs less to forget one than to look for what else it has: that is
    // done once the turn of the event loop ends.
    if taken as u64 >= turn.ready {
        core.prefixes.set(prefix, &turn.topic, None);
        return core.prefixes.mark(prefix, turn.topic);
    }
    if let Some(order) = core.prefixes.get_mut(prefix) {
        order.took(&turn.topic, if taken == 0 { usize::MAX } else { taken });
    }
    visit(core, prefix, turn.topic);
}

/// Puts a topic where it belongs in the order of a prefix. Begins to read a head that is not known.
fn visit(core: &mut Core, prefix: &TopicName, topic: Topic) {
    let name = TopicName { namespace: prefix.namespace.clone(), topic };
    let best = prefetch::best_head(core, &name);
    let ready = match &best {
        BestHead::Known(Some(head)) => {
            let parts = core.topics.parts(&name);
            let ready =
                parts.iter().filter_map(|part| Some(core.slots.merged(part.shard)?.ready_items(part.topic)));
            let weight = core.policies.settings.weight_of_topic(&name);
            Some(ReadyTopic { priority: head.priority, ready: ready.sum::<u64>().max(1), weight })
        }
        BestHead::Known(None) | BestHead::Unknown => None,
    };
    if let Some(order) = core.prefixes.get_mut(prefix) {
        match best {
            BestHead::Known(_) => order.visits.is_known(&name.topic),
            BestHead::Unknown => order.visits.set_unread(name.topic.clone()),
        }
    }
    core.prefixes.set(prefix, &name.topic, ready);
}

/// Looks at topics that have changed, for so long at most. The rest has the next turn.
pub(crate) fn refresh(core: &mut Core, limit: Duration) {
    let at = core.time.monotonic();
    let until = at.plus(limit);
    let (topics, watchers) = (&core.topics, &core.watchers);
    let unused =
        core.prefixes.take_unused(at, |name| topics.waiting_count(name) > 0 || watchers.follows(name));
    if !unused.is_empty() {
        tokio::task::spawn_blocking(move || drop(unused));
    }
    for _ in 0..SLICES_PER_TURN {
        let Some(name) = core.prefixes.next_stale() else { break };
        refresh_slice(core, &name);
        if core.time.monotonic() >= until {
            break;
        }
    }
}

/// Looks at some topics of a prefix.
fn refresh_slice(core: &mut Core, name: &TopicName) {
    let Some(order) = core.prefixes.get_mut(name) else { return };
    let slice = |after: Option<&Topic>| {
        core.topics.of_prefix(name, after).take(SLICE).map(|name| name.topic.clone()).collect()
    };
    let topics = order.visits.next(SLICE, UNREAD_SLICE, slice);
    for topic in topics {
        visit(core, name, topic);
    }
    let Some(order) = core.prefixes.get(name) else { return };
    if order.best().is_some() {
        core.topics.wake_if_waiting(name);
    }
    core.watchers.touch(name);
    if order.visits.has_stale() {
        core.prefixes.set_stale(name);
    } else if order.visits.has_unread() {
        let at = core.time.monotonic();
        core.timers.set(at.plus(UNREAD_AFTER), Timer::Topic(name.clone()));
    }
}

/// Whether nothing of a prefix is known, but there may be something.
pub(super) fn is_outstanding(core: &Core, name: &TopicName) -> bool {
    let order = core.prefixes.get(name);
    order.is_some_and(|order| order.best().is_none() && !order.visits.is_current())
}

/// Whether nothing of a prefix is ready.
pub(super) fn is_empty(core: &Core, name: &TopicName) -> bool {
    core.prefixes.get(name).is_some_and(|order| order.best().is_none() && order.visits.is_current())
}

/// The ready items of a prefix in this node's shards. `None`: they are not known yet.
pub(super) fn look(core: &Core, name: &TopicName) -> Option<ReadyState> {
    if is_outstanding(core, name) {
        return None;
    }
    let number = |number| u32::try_from(number).unwrap_or(u32::MAX);
    let order = core.prefixes.get(name)?;
    let state = order.best().map(|(priority, round)| ReadyState {
        head: Some(HeadPosition::of_prefix(priority)),
        ready: number(order.ready()),
        round: number(round),
    });
    Some(state.unwrap_or_default())
}
