//! The engine's one task: the only writer of everything the node knows of its shards. It reads no database
//! and waits for nothing but its next event. This file is the index: it passes each event to its verb.
//!
//! Exact priority order over a node's shards needs all their heads in one place. That is why one task owns
//! the memory of all of them, and a shard's own task only its connections.

mod maintain;
mod shard_events;

use std::time::Duration;

use forebay_types::Monotonic;
use tokio::sync::mpsc::UnboundedReceiver;

#[cfg(feature = "planted-bugs")]
use crate::invariant::broken;
use crate::{
    calls::{ack, active_topics, dequeue, enqueue, extend_lease, nack, status, stop},
    commit::scheduler,
    core::{Core, breaker::SLOW_COMMIT, timers::Timer},
    dispatch::{delivery, prefetch, serve, undelivered},
    messages::event::Event,
};

/// Events taken in before the engine acts on them: what came together is committed together.
const EVENTS_PER_TURN_MAX: usize = 1_024;
/// The longest sleep without an event.
const SLEEP_MAX: Duration = Duration::from_secs(3_600);

/// The loop: take in what came, act, sleep until something comes or is due. Ends when the engine has stopped.
pub(crate) async fn run(mut core: Core, mut inbox: UnboundedReceiver<Event>) {
    let mut events = Vec::with_capacity(EVENTS_PER_TURN_MAX);
    loop {
        let wake = next_wake(&mut core);
        let pause = wake.map_or(SLEEP_MAX, |wake| wake.since(core.time.monotonic()));
        if pause.is_zero() {
            while events.len() < EVENTS_PER_TURN_MAX
                && let Ok(event) = inbox.try_recv()
            {
                events.push(event);
            }
        } else {
            tokio::select! {
                biased;
                count = inbox.recv_many(&mut events, EVENTS_PER_TURN_MAX) => if count == 0 { return },
                () = tokio::time::sleep(pause) => {}
            }
        }
        for event in events.drain(..) {
            handle(&mut core, event);
        }
        advance(&mut core);
        if stop::has_stopped(&core) {
            // Calls that came too late hear that the node stops: nothing of them happened.
            inbox.close();
            while let Ok(event) = inbox.try_recv() {
                handle(&mut core, event);
            }
            return;
        }
        // Whoever was answered gets its turn before the next batch is built.
        tokio::task::yield_now().await;
    }
}

/// Handles one event.
fn handle(core: &mut Core, event: Event) {
    match event {
        Event::Enqueue { call, bytes, reply } => enqueue::serve(core, call, bytes, reply),
        Event::Dequeue { id, call, reply } => dequeue::serve(core, id, call, reply),
        Event::PollGone(id) => dequeue::caller_gone(core, id),
        Event::Undelivered(returns) => undelivered::return_undelivered(&mut core.slots, returns),
        Event::Ack { acks, reply } => ack::serve(core, acks, reply),
        Event::Nack { nacks, reply } => nack::serve(core, nacks, reply),
        Event::ExtendLease { extensions, reply } => extend_lease::serve(core, extensions, reply),
        Event::ActiveTopics { call, reply } => {
            core.slots.indexes().for_each(|index| maintain::drain_changed(core, index));
            active_topics::serve(core, call, reply);
        }
        Event::Status(reply) => {
            let _ = reply.send(status::serve(core));
        }
        Event::Stop(reply) => stop::serve(core, reply),
        Event::Shard { shard, term, event } => shard_events::handle(core, shard, term, event),
    }
}

/// Does what has become possible or due: answers, reads, sweeps, batches.
fn advance(core: &mut Core) {
    let at = core.time.monotonic();
    while let Some(timer) = core.timers.pop_due(at) {
        match timer {
            Timer::Poll(id) => delivery::time_out(core, id),
            Timer::Pages => {}
            Timer::Topic(name) => core.topics.wake(name),
        }
    }
    for index in core.slots.indexes() {
        maintain::maintain(core, index, at);
        prefetch::fetch_heads(&mut core.slots, &mut core.ids, index);
    }
    serve::serve_woken(core);
    active_topics::serve_waiting(core);
    scheduler::commit_in_turn(core, at);
    stop::advance(core);
    #[cfg(feature = "planted-bugs")]
    if let Err(what) = core.check() {
        broken(&what);
    }
}

/// When [`advance`] has something to do without an event.
fn next_wake(core: &mut Core) -> Option<Monotonic> {
    let moment = core.time.moment();
    let timer = core.timers.next_wake();
    let shards = core.slots.indexes().filter_map(|index| {
        let slot = &mut core.slots[index];
        let shard = &mut slot.holding.as_mut()?.shard;
        let breaker = if shard.is_committing() { None } else { slot.health.next_wake() };
        let shard = shard.next_wake(moment, SLOW_COMMIT, slot.deferred);
        breaker.into_iter().chain(shard).min()
    });
    shards.chain(timer).min()
}
