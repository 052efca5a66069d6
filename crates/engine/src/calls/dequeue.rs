//! Dequeue: a poll is served at once, waits, or is answered empty.

use forebay_types::{Monotonic, Reason, Refusal, Topic, TopicName, is_prefix};

use crate::{
    api::{DequeueCall, RETRY_AFTER, Reach},
    core::{Core, polls::Poll, refusals::draining, timers::Timer},
    dispatch::{answer, pick, serve::find_items, undelivered},
    messages::{delivery_guard::DeliveryGuard, reply::Reply, tenant_budget::Charge},
    planted::{Bug, on},
};

/// Serves the call.
pub(crate) fn serve(
    core: &mut Core,
    id: u64,
    call: DequeueCall,
    charge: Option<Charge>,
    reply: Reply<DeliveryGuard>,
) {
    let at = core.time.monotonic();
    if let Some(refusal) = refusal(core, &call, at) {
        reply.send(Err(refusal));
        return;
    }
    let wait = match () {
        () if on(Bug::WaitsLong) => call.wait * 4,
        () if on(Bug::WaitsBriefly) => call.wait / 2,
        () => call.wait,
    };
    let until = at.plus(wait);
    let waits = !call.wait.is_zero();
    let poll = Poll { _charge: charge, ..Poll::new(call, reply, until) };
    let (call, names) = (poll.call.clone(), poll.names.clone());
    match call.fetch {
        Some(fetch) => names.iter().for_each(|name| core.watchers.fetches(fetch.link, name)),
        None => {
            core.consumers.asks(&call, core.time.now());
            if core.slots.reach() == Reach::All {
                names.iter().for_each(|name| core.remote.ask(name, at));
            }
        }
    }
    core.polls.insert(id, poll);
    // A poll that waits already comes first, also for items that this turn of the event loop has just made
    // ready.
    let in_line = waits && names.iter().any(|name| core.waiting_count(name) > 0);
    if !in_line && find_items(core, id, at) {
        return;
    }
    // A head that has not been read yet counts as outstanding, not as empty: even a call that does not wait
    // otherwise waits for it.
    let outstanding = !waits && pick::is_any_outstanding(core, &call, &names, at);
    if !waits && !outstanding {
        return answer::empty(core, id);
    }
    let until = if waits { until } else { until.plus(core.settings.head_timeout) };
    core.timers.set(until, Timer::Poll(id));
    for name in names.iter() {
        core.topics.add_waiting(name.clone(), id);
        core.remote.mark_changed(name);
        if in_line {
            core.topics.wake(name.clone());
        }
    }
}

/// Why the call is refused, if it is.
fn refusal(core: &mut Core, call: &DequeueCall, at: Monotonic) -> Option<Refusal> {
    if core.stopping.is_stopping() {
        return Some(draining());
    }
    if !call.wait.is_zero() && core.polls.len() >= core.settings.polls && !on(Bug::NoPollLimit) {
        let message = format!("{} long polls already wait at this node", core.polls.len());
        return Some(Refusal::new(Reason::Overloaded, message).retry_after(RETRY_AFTER));
    }
    if !core.slots.is_any_merged() && (call.fetch.is_some() || !core.remote.has_nodes()) {
        let message = "no shard of this node is available";
        return Some(Refusal::new(Reason::ShardUnavailable, message).retry_after(RETRY_AFTER));
    }
    let name = |topic: &Topic| TopicName { namespace: call.namespace.clone(), topic: topic.clone() };
    let prefixes = call.demands.iter().map(|demand| &demand.topic).filter(|topic| is_prefix(topic));
    prefixes.map(name).find_map(|name| core.prefixes.ask(&name, at).err())
}

/// The caller went away: what is leased for it already is returned.
pub(crate) fn caller_gone(core: &mut Core, id: u64) {
    let Some(poll) = answer::remove(core, id) else { return };
    if let Some(leases) = poll.leases {
        let returns = leases.items.into_iter().map(|item| item.on_return).collect();
        undelivered::return_undelivered(core, &poll.call.namespace, returns);
    }
}
