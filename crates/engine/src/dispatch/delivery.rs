//! From committed leases to one answer. A poll is answered when every shard has answered, or when the rest
//! is late.

use std::time::Duration;

use forebay_types::{ItemId, Monotonic, Receipt, Refusal, ShardId, Timestamp};

use super::{
    answer, pick,
    serve::{find_items, find_known_items},
    undelivered,
};
use crate::{
    api::DeliveredItem,
    core::{
        Core,
        polls::{LeasedItem, LeasesUnderWay, Share},
        timers::Timer,
    },
    index::ShardIndex,
    messages::delivery_guard::ReturnAction,
    planted::{Bug, on},
    shard::{
        LeaseOutcome,
        work::{ReservedItem, ShardLease},
    },
};

/// A lease can't be made: its items go back, and the poll does without them.
pub(crate) fn lease_failed(core: &mut Core, index: ShardIndex, part: ShardLease) {
    let poll = part.poll;
    if let Some(shard) = core.slots.owned_mut(index) {
        shard.unreserve(part.items);
    }
    share_ended(core, Share::Shard(index), poll, Vec::new());
}

/// A lease was refused, or its shard is lost. Its items are not in its hands any more.
pub(crate) fn lease_refused(core: &mut Core, index: ShardIndex, part: &ShardLease) {
    share_ended(core, Share::Shard(index), part.poll, Vec::new());
}

/// The shard of a lease is lost. Others may have something for the poll, even if it would not wait.
pub(crate) fn lease_lost(core: &mut Core, index: ShardIndex, part: &ShardLease) {
    if let Some(leases) = core.polls.leases_mut(part.poll) {
        leases.look_again = true;
    }
    share_ended(core, Share::Shard(index), part.poll, Vec::new());
}

/// The batch of a lease has had no answer for long: the poll does without it. If it is committed later, it is
/// returned.
pub(crate) fn lease_overdue(core: &mut Core, index: ShardIndex, poll: u64) {
    if let Some(leases) = core.polls.leases_mut(poll) {
        leases.look_again = true;
    }
    share_ended(core, Share::Shard(index), poll, Vec::new());
}

/// A lease that waits behind such a batch is not made: its items go back.
pub(crate) fn lease_behind(core: &mut Core, index: ShardIndex, part: ShardLease) {
    let poll = part.poll;
    if let Some(shard) = core.slots.owned_mut(index) {
        shard.unreserve(part.items);
    }
    lease_overdue(core, index, poll);
}

/// A lease can't be stored. The poll would find the same items again at once, so it is refused, unless other
/// shards have items for it.
pub(crate) fn lease_unstorable(core: &mut Core, index: ShardIndex, part: &ShardLease, refusal: &Refusal) {
    match core.polls.leases_mut(part.poll) {
        Some(leases) if leases.items.is_empty() && leases.left <= 1 => {
            answer::refuse(core, part.poll, refusal.clone());
        }
        _ => lease_refused(core, index, part),
    }
}

/// A batch that was to hand items to a poll did not happen: the poll waits again.
pub(crate) fn handoff_cancelled(core: &mut Core, index: ShardIndex, poll: u64) {
    share_ended(core, Share::Shard(index), poll, Vec::new());
}

/// The at-most-once items of a share expired before its batch was built: the answer does not wait for it any
/// more than for others.
pub(crate) fn nothing_consumed(core: &mut Core, index: ShardIndex, poll: u64) {
    let at = core.time.monotonic();
    let Some(leases) = core.polls.leases_mut(poll) else { return };
    leases.at_most_once.remove(&Share::Shard(index));
    if leases.is_late(at) {
        answer_with_items(core, poll);
    }
}

/// Leases were committed: their items may be handed out.
pub(crate) fn leased(core: &mut Core, index: ShardIndex, part: ShardLease, leased: Vec<LeaseOutcome>) {
    let poll = part.poll;
    if core.polls.get(poll).is_none() {
        return undelivered::return_lease(&mut core.slots, index, part, &leased);
    }
    if leased.iter().any(|leased| matches!(leased, LeaseOutcome::Expired))
        && let Some(leases) = core.polls.leases_mut(poll)
    {
        leases.look_again = true;
    }
    let node = core.time.moment();
    let now = core.slots.owned_mut(index).map_or(node, |shard| shard.moment(node)).now;
    let mut items = Vec::with_capacity(part.items.len());
    let (part_items, part) = (part.items, ShardLease { items: Vec::new(), ..part });
    let mut waits = Vec::with_capacity(part_items.len());
    for (reserved, leased) in part_items.into_iter().zip(leased) {
        let lease = part.span(&reserved.item);
        match leased {
            LeaseOutcome::Lease { deadline, delivery, nonce } if deadline.since(now) < lease / 2 => {
                // The commit took so long that the consumer would have too little time.
                let item = ItemId { shard: core.slots[index].id, seq: reserved.key.seq };
                undelivered::release(&mut core.slots, index, Receipt { item, delivery, nonce });
            }
            leased => {
                let ready = Timestamp::from_micros(reserved.key.rank);
                let item = hand_out(core, index, reserved, &leased, lease);
                waits.extend(item.iter().map(|item| (item.delivered.topic.clone(), now.since(ready))));
                items.extend(item);
            }
        }
    }
    if let Some(poll) = core.polls.get(poll) {
        let namespace = &poll.call.namespace;
        core.traffic.delivered(namespace, &waits);
        core.latencies.waited(namespace, &waits, node.at);
        poll.reply.saw(core.calls.commit());
    }
    share_ended(core, Share::Shard(index), poll, items);
}

/// An item as the caller is given it, and how it is returned. `None`: it expired.
fn hand_out(
    core: &Core,
    index: ShardIndex,
    reserved: ReservedItem,
    leased: &LeaseOutcome,
    lease: Duration,
) -> Option<LeasedItem> {
    let (id, term) = (core.slots[index].id, core.slots[index].term);
    let (demand, ends_at) = (reserved.demand, None);
    match leased {
        LeaseOutcome::Expired => None,
        LeaseOutcome::Consumed => {
            let delivered = delivered(id, &reserved, None, None, Duration::ZERO);
            let on_return = ReturnAction::Restore { shard: index, term, item: Box::new(reserved) };
            Some(LeasedItem { demand, delivered, on_return, ends_at })
        }
        LeaseOutcome::Lease { delivery, nonce, deadline } => {
            let item = ItemId { shard: id, seq: reserved.key.seq };
            let receipt = Receipt { item, delivery: *delivery, nonce: *nonce };
            let delivered = delivered(id, &reserved, Some(receipt), Some(*deadline), lease);
            Some(LeasedItem { demand, delivered, on_return: ReturnAction::Release(receipt), ends_at })
        }
    }
}

fn delivered(
    shard: ShardId,
    reserved: &ReservedItem,
    receipt: Option<Receipt>,
    lease_expires_at: Option<Timestamp>,
    lease: Duration,
) -> DeliveredItem {
    let attributes = &reserved.item.attributes;
    DeliveredItem {
        id: ItemId { shard, seq: reserved.key.seq },
        receipt,
        topic: reserved.name.clone(),
        priority: reserved.key.priority,
        rank: reserved.key.rank,
        body: reserved.item.body.clone().unwrap_or_default(),
        attempt: attributes.deliveries + 1,
        failures: attributes.failures,
        enqueued_at: attributes.enqueued_at,
        lease_expires_at,
        lease,
        expires_at: attributes.expires_at,
        policy: attributes.policy,
    }
}

/// A fetch for a poll found nothing: it looks elsewhere, unless it has done so for too long.
pub(super) fn found_nothing(core: &mut Core, id: u64) {
    let again = core.polls.found_nothing(id, core.time.monotonic());
    if let Some(leases) = core.polls.leases_mut(id) {
        leases.look_again |= again;
    }
}

/// One share has ended. Answers the poll if that was the last, or the rest is late.
pub(super) fn share_ended(core: &mut Core, share: Share, id: u64, items: Vec<LeasedItem>) {
    let at = core.time.monotonic();
    let late_at = at.plus(core.settings.head_timeout);
    let Some(leases) = core.polls.leases_mut(id) else { return };
    leases.left -= 1;
    leases.at_most_once.remove(&share);
    if !items.is_empty() && leases.late_at.is_none() {
        leases.late_at = Some(late_at);
        if leases.left > 0 {
            core.timers.set(late_at, Timer::Poll(id));
        }
    }
    leases.items.extend(items);
    if leases.left > 0 && !leases.is_late(at) {
        return;
    }
    if leases.items.is_empty() {
        let again = leases.look_again;
        return wait_again(core, id, again);
    }
    answer_with_items(core, id);
}

/// Nothing came of a poll's leases: it waits on, at its old place. With `again` it is served at once if
/// there is something else, even if it would not wait.
fn wait_again(core: &mut Core, id: u64, again: bool) {
    let (at, stopping) = (core.time.monotonic(), core.stopping.is_stopping());
    core.polls.set_leases(id, None);
    if again && !stopping && find_items(core, id, at) {
        return;
    }
    let Some(poll) = core.polls.get(id) else { return };
    if poll.until <= at || stopping {
        return answer::empty(core, id);
    }
    let (until, names) = (poll.until, poll.names.clone());
    core.timers.set(until, Timer::Poll(id));
    for name in names.iter() {
        core.topics.add_waiting(name.clone(), id);
        core.remote.mark_changed(name);
        // A poll before it in the line has looked, or will be woken.
        if core.topics.waiting(name).next() == Some(id) {
            core.topics.wake(name.clone());
        }
    }
}

/// Deliveries and items that ended while the answer waited for other shards are not handed out.
fn drop_ended(core: &mut Core, id: u64) {
    let node = core.time.moment();
    let Some(leases) = core.polls.leases_mut(id) else { return };
    let items = std::mem::take(&mut leases.items);
    let mut kept = Vec::with_capacity(items.len());
    let mut expired = Vec::new();
    for item in items {
        let delivered = &item.delivered;
        let index = core.slots.index_of(delivered.id.shard);
        let (mut now, mut open) = (node.now, true);
        // Where the shard was lost, its next owner keeps the lease until its end.
        if let Some(shard) = index.and_then(|index| core.slots.owned_mut(index)) {
            now = shard.moment(node).now;
            open = delivered.receipt.is_none_or(|receipt| shard.is_open(&receipt));
        }
        let ended = delivered.lease_expires_at.is_some_and(|deadline| deadline <= now);
        // Of another node's item neither its lease nor its expiry is a time of this node.
        let over = match item.ends_at {
            Some(end) => end <= node.at,
            None => delivered.expires_at.is_some_and(|end| end <= now) && !on(Bug::ExpiryIgnored),
        };
        if over {
            expired.push(item.on_return);
        } else if open && (item.ends_at.is_some() || !ended) {
            kept.push(item);
        }
    }
    let Some(poll) = core.polls.get(id) else { return };
    let namespace = poll.call.namespace.clone();
    if let Some(leases) = core.polls.leases_mut(id) {
        leases.items = kept;
    }
    // An at-most-once item has left the shard already, and stays away.
    expired.retain(|action| matches!(action, ReturnAction::Release(_)));
    undelivered::return_undelivered(core, &namespace, expired);
}

fn answer_with_items(core: &mut Core, id: u64) {
    drop_ended(core, id);
    let Some(LeasesUnderWay { left, items, late_at, .. }) = core.polls.leases_mut(id) else { return };
    if items.is_empty() {
        *late_at = None;
        if *left == 0 {
            wait_again(core, id, true);
        }
        return;
    }
    metrics::counter!("forebay_late_shares_total").increment(*left as u64);
    answer::with_items(core, id);
}

/// A poll's timer: its wait is over, or the rest of its answer is late.
pub(crate) fn time_out(core: &mut Core, id: u64) {
    let at = core.time.monotonic();
    let Some(poll) = core.polls.get(id) else { return };
    match &poll.leases {
        None if poll.until <= at => end_wait(core, id, at),
        Some(leases) if leases.is_late(at) => answer_with_items(core, id),
        // An earlier timer of a poll that waits again, or whose answer is not late yet.
        None | Some(_) => {}
    }
}

/// A poll's wait is over. Heads that are not known yet are waited for a little longer. After that it gets
/// what is known.
fn end_wait(core: &mut Core, id: u64, at: Monotonic) {
    if find_items(core, id, at) {
        return;
    }
    let Some(poll) = core.polls.get(id) else { return };
    let (end, call, names) =
        (poll.until.plus(core.settings.head_timeout), poll.call.clone(), poll.names.clone());
    if at < end && pick::is_any_outstanding(core, &call, &names, at) {
        return core.timers.set(end, Timer::Poll(id));
    }
    if !find_known_items(core, id, at) {
        answer::empty(core, id);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{
        api::{Demand, DequeueCall},
        core::polls::Poll,
        messages::reply::Reply,
        shard::work::ReadyItem,
    };
    use forebay_types::{Body, DeliveryPolicy, ItemAttributes, Key, Seq, TopicId, TopicName};

    /// A node with one shard that it does not own, and a poll of two topics that waits for `wait`.
    fn core_with_poll(wait: Duration, leases: Option<LeasesUnderWay>) -> Core {
        let mut core = Core::for_test();
        let at = core.time.monotonic();
        let demands = ["t", "u"].map(|topic| Demand { topic: topic.into(), max_items: 1 }).into();
        let call =
            DequeueCall { namespace: "ns".into(), demands, wait, max_bytes: 1, ..DequeueCall::default() };
        let reply = Reply::channel().0;
        core.polls.insert(1, Poll { leases, ..Poll::new(call, reply, at.plus(wait)) });
        core
    }

    #[test]
    fn an_earlier_timer_does_not_end_a_poll_that_waits_again() {
        let mut core = core_with_poll(Duration::from_secs(60), None);
        time_out(&mut core, 1);
        assert!(core.polls.get(1).is_some(), "its wait is not over");
        let mut core = core_with_poll(Duration::ZERO, None);
        time_out(&mut core, 1);
        assert!(core.polls.get(1).is_none(), "its wait is over");
    }

    #[test]
    fn a_poll_that_waits_again_has_nobody_before_it_look_again() {
        let leases = LeasesUnderWay::new(1, BTreeSet::new());
        let mut core = core_with_poll(Duration::from_secs(60), Some(leases));
        core.topics.add_waiting(TopicName::new("ns", "t"), 0);
        core.topics.add_waiting(TopicName::new("ns", "u"), 2);
        handoff_cancelled(&mut core, ShardIndex(0), 1);
        assert_eq!(core.topics.waiting(&TopicName::new("ns", "t")).collect::<Vec<_>>(), [0, 1]);
        let woken = (core.topics.next_woken(), core.topics.next_woken());
        assert_eq!(woken, (Some(TopicName::new("ns", "u")), None));
    }

    #[test]
    fn the_timer_of_a_poll_goes_with_it() {
        let mut core = core_with_poll(Duration::from_secs(60), None);
        let (at, late) = (core.time.monotonic(), Duration::from_secs(60));
        core.timers.set(at.plus(late), Timer::Poll(1));
        answer::empty(&mut core, 1);
        assert_eq!(core.timers.next_wake(), None);
    }

    #[test]
    fn an_at_most_once_item_that_expired_holds_up_nobody() {
        let leases = LeasesUnderWay::new(2, BTreeSet::from([Share::Shard(ShardIndex(0))]));
        let mut core = core_with_poll(Duration::from_secs(60), Some(leases));
        let attributes = ItemAttributes {
            enqueued_at: Timestamp::MIN,
            expires_at: Some(Timestamp::MIN),
            lease_ms: 1,
            max_attempts: 1,
            policy: DeliveryPolicy::AtMostOnce,
            deliveries: 0,
            failures: 0,
            redrives: 0,
            updated_by: 0,
            waits: forebay_types::Waits::Unsaid,
        };
        let item = ReadyItem { attributes, bytes: 0, body: Some(Body::default()) };
        let key = Key { priority: 0, rank: 0, seq: Seq(1) };
        let items = vec![ReservedItem { demand: 0, topic: TopicId(1), name: "t".into(), key, item }];
        let part = ShardLease {
            poll: 1,
            namespace: "ns".into(),
            lease: None,
            consumer: String::new(),
            is_fetch: false,
            items,
        };
        leased(&mut core, ShardIndex(0), part, vec![LeaseOutcome::Expired]);
        let leases = core.polls.leases_mut(1).expect("the other shard has not answered");
        assert!(leases.left == 1 && leases.at_most_once.is_empty());
        leases.late_at = Some(Monotonic::default());
        assert!(leases.is_late(Monotonic::default()), "the other shard is not waited for");
    }
}
