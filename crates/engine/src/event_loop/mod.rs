//! The engine's one task: the only writer of everything the node knows of its shards. It reads no database
//! and waits for nothing but its next event. This file is the index: it passes each event to its verb.
//!
//! Exact priority order over a node's shards needs all their heads in one place. That is why one task owns
//! the memory of all of them, and a shard's own task only its connections.

mod inbox;
mod maintain;
mod shard_events;
mod time_step;

use std::time::Duration;

use forebay_types::Monotonic;
use tokio::sync::mpsc::UnboundedReceiver;

use self::inbox::Inbox;
use crate::{
    calls::{
        ack, active_topics, change_items, dedupe, dequeue, enqueue, extend_lease, find_keys, forgotten,
        look_leases, look_operations, look_standing, look_topics, nack, order_operation, peer_news, policies,
        status, stop, watch,
    },
    commit::{answers, scheduler},
    core::{Core, timers::Timer},
    dispatch::{delivery, fetched, heads, prefetch, prefix, serve, sources, undelivered},
    messages::{event::Event, pulse::LoopPulse, tenant_budget::paid_at_once_by},
    ownership::{self, hand_over, shard_set},
    planted,
};

/// Events taken in at once.
const RECEIVED_MAX: usize = 1_024;
/// Once reports, calls, timers, polls or batches have taken so long in one turn, the rest of them waits for
/// the next one. Together they take less than 5 ms.
const WORK_PER_TURN_MAX: Duration = Duration::from_micros(750);
/// The same for what other nodes are to be told: of polls that wait here, and of items.
const NEWS_PER_TURN_MAX: Duration = Duration::from_micros(250);
/// The longest sleep without an event.
const SLEEP_MAX: Duration = Duration::from_secs(3_600);

/// The loop: take in what came, act, sleep until something comes or is due. Ends when the engine has stopped.
pub(crate) async fn run(mut core: Core, mut events: UnboundedReceiver<Event>, pulse: LoopPulse) {
    let mut received = Vec::with_capacity(RECEIVED_MAX);
    let mut inbox = Inbox::default();
    loop {
        let wake = if inbox.is_empty() { next_wake(&core) } else { Some(Monotonic::default()) };
        let pause = wake.map_or(SLEEP_MAX, |wake| wake.since(core.time.monotonic()));
        if pause.is_zero() {
            while received.len() < RECEIVED_MAX
                && let Ok(event) = events.try_recv()
            {
                received.push(event);
            }
        } else {
            tokio::select! {
                biased;
                count = events.recv_many(&mut received, RECEIVED_MAX) => if count == 0 { return },
                () = tokio::time::sleep(pause) => {}
            }
        }
        let began = core.time.monotonic();
        received.drain(..).for_each(|event| inbox.push(event));
        time_step::take(&mut core);
        take_in(&mut core, &mut inbox);
        advance(&mut core);
        core.turns.add(core.time.monotonic().since(began));
        pulse.beat();
        if stop::has_stopped(&core) {
            // Calls that came too late hear that the node stops: nothing of them happened.
            events.close();
            while let Ok(event) = events.try_recv() {
                inbox.push(event);
            }
            while let Some(event) = inbox.next_report().or_else(|| inbox.next_call()) {
                handle(&mut core, event);
            }
            return;
        }
        // Callers that were answered get their turn before the next batch is built.
        tokio::task::yield_now().await;
    }
}

/// Handles what waits: reports first, since they are what callers wait for, then calls. What comes together
/// is committed together, but a turn ends after a while.
fn take_in(core: &mut Core, inbox: &mut Inbox) {
    let until = core.time.monotonic().plus(WORK_PER_TURN_MAX);
    while let Some(report) = inbox.next_report() {
        handle(core, report);
        if core.time.monotonic() >= until {
            break;
        }
    }
    let until = core.time.monotonic().plus(WORK_PER_TURN_MAX);
    inbox.begin_calls(&core.policies.settings);
    while let Some(call) = inbox.next_call() {
        handle(core, call);
        if core.time.monotonic() >= until {
            break;
        }
    }
}

/// Handles one event.
fn handle(core: &mut Core, event: Event) {
    match event {
        Event::Enqueue { call, content, charge, notice, reply } => {
            planted::panic_if_asked();
            enqueue::serve(core, call, content, charge, notice, reply);
        }
        Event::Dequeue { id, call, charge, payer, reply } => {
            paid_at_once_by(payer, || dequeue::serve(core, id, call, charge, reply));
        }
        Event::PollGone { id, .. } => dequeue::caller_gone(core, id),
        Event::Undelivered { namespace, returns } => {
            undelivered::return_undelivered(core, &namespace, returns);
        }
        Event::Fetched { fetch, address, namespace, answer } => {
            fetched::fetched(core, fetch, &address, &namespace, answer);
        }
        Event::Consumed { fetch, consumed, .. } => fetched::consumed(core, fetch, consumed),
        Event::WatchBegun { link, heads } => core.watchers.begin(link, heads),
        Event::Subscribe { link, subscriptions } => watch::subscribe(core, link, subscriptions),
        Event::WatchEnded { link } => core.watchers.end(link),
        Event::Ack { namespace, acks, notice, reply } => ack::serve(core, namespace, acks, notice, reply),
        Event::Nack { namespace, nacks, notice, reply } => {
            nack::serve(core, namespace, nacks, notice, reply);
        }
        Event::ExtendLease { namespace, extensions, notice, reply } => {
            extend_lease::serve(core, namespace, extensions, notice, reply);
        }
        Event::ActiveTopics { call, reply } => active_topics::serve(core, call, reply),
        Event::LookShards { reply, .. } => look_topics::shards(core, reply),
        Event::LookTopics { slice, reply } => look_topics::topics(core, slice, reply),
        Event::LookForgotten { question, reply } => forgotten::look(core, &question, reply),
        Event::ForgetCounts { namespace, reply } => forgotten::forget(core, &namespace, reply),
        Event::LookStanding { name, reply } => look_standing::serve(core, &name, reply),
        Event::LookOut { question, reply } => look_topics::out(core, &question, reply),
        Event::LookLeases { question, reply } => look_leases::serve(core, &question, reply),
        Event::LookConsumers { call, reply, .. } => look_leases::consumers(core, &call, reply),
        Event::ChangeItems { call, reply } => change_items::serve(core, call, reply),
        Event::Order { order, only, reply, .. } => order_operation::serve(core, order, only, reply),
        Event::LookOperations { namespace, id, reply, .. } => {
            look_operations::serve(core, namespace.as_ref(), id, reply);
        }
        Event::Policies(changes) => policies::set(core, changes),
        Event::LookPolicies { names, reply, .. } => {
            reply.send(Ok(policies::look(core, &names)));
        }
        Event::LookNamespaces { from, limit, reply, .. } => {
            reply.send(Ok(core.policies.namespaces(&from, limit)));
        }
        Event::Duties(duties) => hand_over::set_duties(core, duties),
        Event::Shards(shards) => shard_set::set_shards(core, shards),
        Event::Owns { question, reply } => {
            let _ = reply.send(ownership::owns(core, question));
        }
        Event::FindKeys { question, reply } => find_keys::serve(core, question, reply),
        Event::OwnLoads(reply) => {
            let _ = reply.send(peer_news::own_loads(core));
        }
        Event::PeerNews(news) => peer_news::take_in(core, news),
        Event::Sights(reply) => {
            let _ = reply.send(ownership::sights(core));
        }
        Event::Status(reply) => {
            let _ = reply.send(status::serve(core));
        }
        Event::Stop(reply) => stop::serve(core, reply),
        Event::Shard { shard, term, event } => shard_events::handle(core, shard, term, event),
    }
}

/// Does what has become possible or due: answers, reads, sweeps, batches. It looks at the shards that may
/// have changed, and at no other.
fn advance(core: &mut Core) {
    let node = core.time.moment();
    time_out(core, node.at);
    core.calls.answer_late(node.at);
    core.leave();
    answers::answer_lost(core);
    core.slots.mark_due(node.at);
    let mut changed = core.slots.take_changed();
    for index in &changed {
        dedupe::resume(core, *index);
        hand_over::advance(core, *index, node.at);
        maintain::maintain(core, *index, node);
        prefetch::fetch_heads(&mut core.slots, &mut core.ids, *index);
    }
    core.walk(WORK_PER_TURN_MAX);
    policies::wake_resumed(core);
    // Before anything else changes: all that has changed is noted.
    active_topics::serve_waiting(core);
    prefix::refresh(core, WORK_PER_TURN_MAX);
    serve::serve_woken(core, WORK_PER_TURN_MAX);
    // Shards that were maintained are among them again.
    changed = core.slots.take_changed();
    let until = core.time.monotonic().plus(WORK_PER_TURN_MAX);
    scheduler::commit_in_turn(core, &changed, until);
    stop::advance(core);
    changed.extend(core.slots.take_changed());
    for index in changed {
        maintain::drain_changed(core, index);
        let wake = maintain::next_wake(core, index, node);
        core.slots.set_wake(index, wake);
    }
    sources::tell_wanted(core, NEWS_PER_TURN_MAX);
    heads::tell(core, NEWS_PER_TURN_MAX);
    // To look at a shard is not to change it.
    core.slots.take_changed();
    #[cfg(feature = "planted-bugs")]
    core.check_in_turn();
}

/// Does what is due by now, or the first of it: thousands of polls may end at one time.
fn time_out(core: &mut Core, now: Monotonic) {
    let until = core.time.monotonic().plus(WORK_PER_TURN_MAX);
    while let Some(timer) = core.timers.pop_due(now) {
        match timer {
            Timer::Poll(id) => delivery::time_out(core, id),
            Timer::Pages | Timer::Flush => {}
            Timer::Fetch(id) => fetched::late(core, id),
            Timer::Topic(name) => {
                core.prefixes.set_stale(&name);
                core.topics.wake(name);
            }
            Timer::Policy(name) => policies::end(core, name),
        }
        if core.time.monotonic() >= until {
            return;
        }
    }
}

/// When [`advance`] has something to do without an event.
fn next_wake(core: &Core) -> Option<Monotonic> {
    if core.topics.has_woken()
        || core.loads.has_changed()
        || core.active.is_busy()
        || core.listing.is_under_way()
        || core.prefixes.has_stale()
        || core.policies.has_resumed()
        || core.stopping.has_polls()
        || !core.lost.is_empty()
    {
        return Some(Monotonic::default());
    }
    let late = core.calls.next_late();
    let nodes = core.watchers.next_look().into_iter().chain(core.remote.next_visit());
    core.slots.next_wake().into_iter().chain(core.timers.next_wake()).chain(late).chain(nodes).min()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::core::testing::SlowClock;

    #[test]
    fn waits_that_end_at_one_time_are_ended_in_several_turns() {
        let mut core = Core::for_test_with(Arc::new(SlowClock::default()));
        let now = core.time.monotonic();
        for id in 0..100 {
            core.add_poll(id, format!("t{id}").into(), now);
            core.timers.set(now, Timer::Poll(id));
        }
        time_out(&mut core, now);
        assert!((1..100).contains(&core.polls.len()), "{} polls are left", core.polls.len());
        assert!(next_wake(&core).is_some_and(|wake| wake <= now), "the next turn comes at once");
        (0..100).for_each(|_| time_out(&mut core, now));
        assert!(core.polls.is_empty());
    }
}
