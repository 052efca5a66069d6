//! Answers a poll. With its answer it is forgotten.

use forebay_types::Refusal;

use super::heads;
use crate::{
    api::ReadyState,
    core::{
        Core,
        polls::{LeasedItem, Poll},
        timers::Timer,
    },
    messages::{delivery_guard::DeliveryGuard, event::Event},
};

/// Hands out what is leased for the poll, in the order of its demands.
pub(crate) fn with_items(core: &mut Core, id: u64) {
    let Some(mut poll) = remove(core, id) else { return };
    core.traffic.poll_waited(poll.waited(core.time.monotonic()));
    let mut leased = poll.leases.take().map(|leases| leases.items).unwrap_or_default();
    leased.sort_unstable_by_key(LeasedItem::place);
    let (items, returns) = leased.into_iter().map(|item| (item.delivered, item.on_return)).unzip();
    let (events, namespace) = (core.events.clone(), poll.call.namespace.clone());
    let left = left(core, &poll);
    let guard = DeliveryGuard::new(items, returns, left, move |returns| {
        // If the engine has stopped, the leases time out by themselves.
        let _ = events.send(Event::Undelivered { namespace, returns });
    });
    // A caller that is gone drops the guard, which returns the items.
    poll.reply.send(Ok(guard));
}

/// The ready items that the topic has left, where another node asks. It knows of them then.
fn left(core: &mut Core, poll: &Poll) -> Option<ReadyState> {
    let (fetch, name) = (poll.call.fetch?, poll.names.first()?);
    let left = heads::look(core, name)?;
    core.watchers.heard(fetch.link, name, left);
    Some(left)
}

/// Answers without items. A poll whose leases are under way is answered when they have ended.
pub(crate) fn empty(core: &mut Core, id: u64) {
    if core.polls.get(id).is_some_and(|poll| poll.leases.is_none())
        && let Some(poll) = remove(core, id)
    {
        core.traffic.poll_waited(poll.waited(core.time.monotonic()));
        let left = left(core, &poll);
        poll.reply.send(Ok(DeliveryGuard::empty(left)));
    }
}

/// Refuses.
pub(crate) fn refuse(core: &mut Core, id: u64, refusal: Refusal) {
    if let Some(poll) = remove(core, id) {
        poll.reply.send(Err(refusal));
    }
}

/// Forgets a poll.
pub(crate) fn remove(core: &mut Core, id: u64) -> Option<Poll> {
    let poll = core.polls.remove(id)?;
    core.topics.remove_waiting(&poll.names, id);
    core.timers.cancel(&Timer::Poll(id));
    Some(poll)
}
