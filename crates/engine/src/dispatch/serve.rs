//! Finds items for a poll and leases them. Polls of a topic are served first come, first served.

use std::{
    collections::{BTreeSet, VecDeque},
    time::Duration,
};

use forebay_types::{Monotonic, Namespace, TopicName};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    answer, fetch,
    pick::{Pick, pick},
};
use crate::{
    core::{
        Core,
        polls::{LeasesUnderWay, Share},
    },
    index::ShardIndex,
    invariant::broken,
    messages::tenant_budget::paid_at_once_by,
    planted::{Bug, on},
    shard::work::ShardLease,
};

/// The most items that are leased for a poll in one piece.
const LEASE_ITEMS_MAX: usize = 250;

/// Woken topics of one turn. To collect them takes time, too.
const WOKEN_PER_TURN_MAX: usize = 128;

/// Serves the polls of topics that have something new, for so long at most; the rest has the next turn.
/// Tenants take turns. A poll may wait for several of these topics: whoever of a tenant came first to any of
/// them is first. One that found nothing looked at all of its topics, and need not do so again.
pub(crate) fn serve_woken(core: &mut Core, limit: Duration) {
    let at = core.time.monotonic();
    let mut found_nothing = FxHashSet::default();
    let mut tenants = take_woken(core);
    // Counted from here on, and one is served: a turn that only collected topics, and woke them again, would
    // serve nobody.
    let (until, mut served) = (core.time.monotonic().plus(limit), None);
    while let Some(mut first) = tenants.pop_front() {
        let Some((id, name)) = pop(&mut first) else { continue };
        if let Some(served) = &served
            && core.time.monotonic() >= until
        {
            core.topics.served_last(Namespace::clone(served));
            core.topics.wake(name);
            return first
                .into_iter()
                .chain(tenants.into_iter().flatten())
                .for_each(|(_, name)| core.topics.wake(name));
        }
        served = Some(name.namespace.clone());
        // The poll may have been served for another topic since.
        if first_waiting(core, &name) == Some(id)
            && (found_nothing.contains(&id) || !find_items(core, id, at))
        {
            found_nothing.insert(id);
            core.remote.mark_changed(&name);
        } else {
            match first_waiting(core, &name) {
                Some(next) if next == id => broken("a poll that was served waits no more"),
                next => first.extend(next.map(|next| (next, name))),
            }
        }
        tenants.push_back(first);
    }
}

/// Takes woken topics, each with the poll that came first to it. Those of a tenant are together, and tenants
/// in the order of their turns.
fn take_woken(core: &mut Core) -> VecDeque<BTreeSet<(u64, TopicName)>> {
    let (mut tenants, mut numbers) = (VecDeque::<BTreeSet<_>>::new(), FxHashMap::default());
    for _ in 0..WOKEN_PER_TURN_MAX {
        let Some(name) = core.topics.next_woken() else { break };
        let Some(id) = first_waiting(core, &name) else { continue };
        let number = *numbers.entry(name.namespace.clone()).or_insert(tenants.len());
        if number == tenants.len() {
            tenants.push_back(BTreeSet::new());
        }
        tenants[number].insert((id, name));
    }
    tenants
}

/// The poll that is to be served first of those that wait for a topic.
fn first_waiting(core: &Core, name: &TopicName) -> Option<u64> {
    let mut waiting = core.topics.waiting(name);
    if on(Bug::LastWaiterFirst) { waiting.last() } else { waiting.next() }
}

/// The next poll, with the topic that was woken.
fn pop(first: &mut BTreeSet<(u64, TopicName)>) -> Option<(u64, TopicName)> {
    if on(Bug::LastWaiterFirst) { first.pop_last() } else { first.pop_first() }
}

/// Tries to find items for a poll. Returns whether it waits no more: its leases are under way, or it was
/// answered.
pub(crate) fn find_items(core: &mut Core, id: u64, at: Monotonic) -> bool {
    find(core, id, at, false)
}

/// The same for a poll that waits for no head any more: of the others it takes what they have.
pub(crate) fn find_known_items(core: &mut Core, id: u64, at: Monotonic) -> bool {
    find(core, id, at, true)
}

fn find(core: &mut Core, id: u64, at: Monotonic, last: bool) -> bool {
    let Some(poll) = core.polls.get(id) else { return true };
    if poll.reply.is_closed() {
        answer::remove(core, id);
        return true;
    }
    let (call, names, guesses_from) = (poll.call.clone(), poll.names.clone(), poll.guesses_from);
    let payer = poll.payer.clone();
    match paid_at_once_by(payer, || pick(core, &call, &names, guesses_from, at, last)) {
        Pick::Nothing => false,
        Pick::Refused(refusal) => {
            answer::refuse(core, id, refusal);
            true
        }
        Pick::Found(shards, fetches) => {
            let is_fetch = call.fetch.is_some();
            let mut leases: Vec<(ShardIndex, ShardLease)> = Vec::with_capacity(shards.len());
            let mut at_most_once = BTreeSet::new();
            for (shard, mut items) in shards {
                // A lease as large as a batch would keep all others out of it. At-most-once items are waited
                // for, so those of a shard stay together.
                let whole = !is_fetch && items.iter().any(|reserved| reserved.item.is_at_most_once());
                at_most_once.extend(whole.then_some(Share::Shard(shard)));
                let piece = if whole { items.len() } else { LEASE_ITEMS_MAX };
                while !items.is_empty() {
                    let rest = items.split_off(items.len().min(piece));
                    let (namespace, consumer) = (call.namespace.clone(), call.consumer.clone());
                    let items = std::mem::replace(&mut items, rest);
                    let lease = call.lease;
                    let lease = ShardLease { poll: id, namespace, lease, consumer, is_fetch, items };
                    leases.push((shard, lease));
                }
            }
            core.topics.remove_waiting(&names, id);
            let shares = leases.len() + fetches.len();
            core.polls.set_leases(id, Some(LeasesUnderWay::new(shares, at_most_once)));
            for planned in fetches {
                fetch::begin(core, id, &call, planned);
            }
            for (shard, lease) in leases {
                queue(core, shard, lease);
            }
            true
        }
    }
}

/// A poll is handed items of a batch that was just built: it waits no more.
pub(crate) fn handed_off(core: &mut Core, id: u64) {
    let Some(poll) = core.polls.get(id) else { return };
    let names = poll.names.clone();
    core.polls.set_leases(id, Some(LeasesUnderWay::new(1, BTreeSet::new())));
    core.topics.remove_waiting(&names, id);
}

/// Queues a lease of reserved items, once their bodies are there.
fn queue(core: &mut Core, shard: ShardIndex, lease: ShardLease) {
    let read = core.ids.next();
    let Some(holding) = &mut core.slots[shard].holding else {
        return broken("items are reserved in a shard that is owned");
    };
    let missing = holding.shard.lease(lease, read);
    if !missing.is_empty() {
        holding.reads.bodies(read, missing);
    }
}

#[cfg(test)]
mod tests {
    use std::{ops::Range, sync::Arc};

    use forebay_types::TopicName;
    use tokio::sync::mpsc::channel;

    use super::*;
    use crate::{
        api::{Demand, DequeueCall, HeadPosition, PeerLink, ReadyState, TopicHead},
        core::{polls::Poll, testing::SlowClock, timers::Timer},
        messages::reply::Reply,
    };

    #[tokio::test]
    async fn a_poll_without_a_place_for_its_fetch_looks_again() {
        let mut core = Core::for_test();
        let (name, at) = (TopicName::new("ns", "t"), core.time.monotonic());
        let (subscriptions, _sent) = channel(1);
        core.remote.link("a:1".to_owned(), PeerLink { number: 1, subscriptions });
        core.remote.ask(&name, at);
        let state = ReadyState { head: Some(HeadPosition { priority: 0, rank: 0 }), ready: 1, round: 0 };
        core.remote.take_in("a:1", &TopicHead { name: name.clone(), state, offered: 0 });
        let node = core.remote.sources(&name, at, &mut None)[0].node;
        let place = |core: &Core| core.remote.node(node).unwrap().place(&"ns".into());
        let places: Vec<_> = std::iter::from_fn(|| place(&core)).collect();
        let (reply, _answer) = Reply::channel();
        let demands = vec![Demand { topic: name.topic.clone(), max_items: 1 }];
        let call = DequeueCall { namespace: "ns".into(), demands, max_bytes: 1, ..DequeueCall::default() };
        core.polls.insert(7, Poll::new(call, reply, at));
        assert!(!find_items(&mut core, 7, at));
        // Nothing else wakes it.
        let again = core.timers.next_wake().unwrap();
        assert_eq!(core.timers.pop_due(again), Some(Timer::Topic(name)));
        drop(places);
        assert!(find_items(&mut core, 7, again), "the fetch is under way");
    }

    #[test]
    fn woken_polls_that_take_long_are_served_in_several_turns() {
        let mut core = Core::for_test_with(Arc::new(SlowClock::default()));
        for id in 0..100 {
            let name = TopicName::new("ns", format!("t{id}"));
            core.add_poll(id, name.topic.clone(), Monotonic::default());
            core.topics.add_waiting(name.clone(), id);
            core.topics.wake(name);
        }
        serve_woken(&mut core, Duration::from_millis(30));
        assert!((50..90).contains(&core.polls.len()), "{} polls are left", core.polls.len());
        (0..4).for_each(|_| serve_woken(&mut core, Duration::from_millis(30)));
        assert!(core.polls.is_empty() && !core.topics.has_woken());
    }

    /// Polls with a woken topic each wait: so many of each tenant, the first tenant's first.
    fn waiting_for_woken(tenants: &[(&str, usize)]) -> Core {
        let mut core = Core::for_test_with(Arc::new(SlowClock::default()));
        let namespaces = tenants.iter().flat_map(|(namespace, polls)| vec![*namespace; *polls]);
        for (id, namespace) in (0..).zip(namespaces) {
            let name = TopicName::new(namespace, format!("t{id}"));
            let demands = vec![Demand { topic: name.topic.clone(), max_items: 1 }];
            let namespace = name.namespace.clone();
            let call = DequeueCall { namespace, demands, max_bytes: 1, ..DequeueCall::default() };
            core.polls.insert(id, Poll::new(call, Reply::channel().0, Monotonic::default()));
            core.topics.add_waiting(name.clone(), id);
            core.topics.wake(name);
        }
        core
    }

    /// How many of these polls wait.
    fn left(core: &Core, polls: Range<u64>) -> usize {
        polls.filter(|id| core.polls.get(*id).is_some()).count()
    }

    #[test]
    fn tenants_take_turns_within_a_turn() {
        let mut core = waiting_for_woken(&[("many", 200), ("few", 1), ("zero", 1)]);
        serve_woken(&mut core, Duration::from_millis(10));
        assert_eq!(left(&core, 200..202), 0);
        assert!(left(&core, 0..200) > 150, "there was no time for more");
    }

    #[test]
    fn a_turn_begins_with_the_tenant_that_is_next() {
        let mut core = waiting_for_woken(&[("a", 100), ("b", 100)]);
        (0..4).for_each(|_| serve_woken(&mut core, Duration::ZERO));
        assert_eq!([left(&core, 0..100), left(&core, 100..200)], [98, 98]);
    }

    #[test]
    fn a_turn_serves_a_poll_however_little_time_there_is() {
        let mut core = Core::for_test_with(Arc::new(SlowClock::default()));
        for id in 0..3 {
            let name = TopicName::new("ns", format!("t{id}"));
            core.add_poll(id, name.topic.clone(), Monotonic::default());
            core.topics.add_waiting(name.clone(), id);
            core.topics.wake(name);
        }
        for left in [2, 1, 0] {
            serve_woken(&mut core, Duration::ZERO);
            assert_eq!(core.polls.len(), left);
        }
    }
}
