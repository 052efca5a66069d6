//! What a resolved batch means to callers and to the topic directory. By then all of it is in memory.

use forebay_types::{ItemId, Reason, Refusal};

use crate::{
    api::{Enqueued, RETRY_AFTER},
    calls::{dedupe, enqueue},
    core::{Core, pending_calls::PendingCalls, topics::TopicPart},
    dispatch::delivery,
    index::ShardIndex,
    planted::{Bug, on},
    shard::{
        Abandoned, Committed, Duplicate, NamedTopic, Undone,
        in_flight::{Planned, PlannedSettle, SettleEffect, StoredItem},
        work::{SettleKind, ShardEnqueue},
    },
};

/// Counts of one batch, reported at once: a counter lookup costs more than most counted operations.
#[derive(Default)]
struct Counts(Vec<(&'static str, u64)>);

impl Counts {
    fn add(&mut self, counter: &'static str, more: u64) {
        match self.0.iter_mut().find(|(name, _)| *name == counter) {
            Some((_, count)) => *count += more,
            None => self.0.push((counter, more)),
        }
    }

    fn report(self) {
        for (counter, count) in self.0.into_iter().filter(|(_, count)| *count > 0) {
            metrics::counter!(counter).increment(count);
        }
    }
}

/// A batch is committed: everybody who waits for it is answered.
pub(crate) fn committed(core: &mut Core, index: ShardIndex, committed: Committed) {
    for NamedTopic { id: topic, name } in committed.new_topics {
        core.topics.add_part(name, TopicPart { shard: index, topic });
    }
    for NamedTopic { id: topic, name } in committed.dropped {
        core.topics.remove_part(&name, TopicPart { shard: index, topic });
        core.active.mark_stale(&name);
    }
    for name in committed.fetched {
        core.topics.wake(name);
    }
    let mut counts = Counts::default();
    counts.add("forebay_expired_total", committed.expired);
    for planned in committed.done {
        done(core, index, planned, &mut counts);
    }
    counts.report();
    let shard = core.slots[index].id;
    for Duplicate { call, index, seq } in committed.duplicates {
        let id = ItemId { shard, seq };
        core.calls.enqueue_done(call, index, Ok(Enqueued { id, duplicate: true }));
    }
    if committed.topology_recorded {
        // Keys whose earlier home this shard is have waited for that.
        dedupe::resume_everywhere(core);
    }
}

/// Answers one thing that the batch did.
fn done(core: &mut Core, index: ShardIndex, planned: Planned, counts: &mut Counts) {
    match planned {
        Planned::Enqueue { part, results } => enqueued(core, index, &part, results, counts),
        Planned::Settle(settle) => settled(&mut core.calls, &settle, counts),
        Planned::Lease { part, leased } if !on(Bug::LeaseBeforeCommit) => {
            delivery::leased(core, index, part, leased);
        }
        Planned::HandOff { part, leased } => delivery::leased(core, index, part, leased),
        Planned::Lease { .. } | Planned::Restore(_) | Planned::MoveLease(_) => {}
    }
}

fn enqueued(
    core: &mut Core,
    index: ShardIndex,
    part: &ShardEnqueue,
    results: Vec<Result<StoredItem, Refusal>>,
    counts: &mut Counts,
) {
    let shard = core.slots[index].id;
    let stored = results.iter().filter(|result| result.is_ok()).count();
    counts.add("forebay_enqueued_total", stored as u64);
    for (item, result) in part.items.iter().zip(results) {
        let id = |stored: StoredItem| ItemId { shard, seq: stored.key.seq };
        let answer = result.map(|stored| Enqueued { id: id(stored), duplicate: false });
        core.calls.enqueue_done(part.call, item.index, answer);
    }
}

fn settled(calls: &mut PendingCalls, settle: &PlannedSettle, counts: &mut Counts) {
    let counter = match (&settle.request.kind, &settle.effect) {
        (SettleKind::Ack, _) => "forebay_acked_total",
        (_, SettleEffect::Deleted) => "forebay_expired_total",
        (_, SettleEffect::DeadLettered) => "forebay_dead_lettered_total",
        (SettleKind::LeaseTimeout, _) => "forebay_lease_timeouts_total",
        (SettleKind::Extend { .. }, _) => "forebay_extended_total",
        (SettleKind::Nack { .. }, _) => "forebay_nacked_total",
    };
    counts.add(counter, 1);
    for request in settle.requests() {
        match settle.effect {
            SettleEffect::Extended(deadline) => calls.extension_done(request, deadline),
            _ => calls.settle_done(request),
        }
    }
}

/// A batch did not happen: what is refused of it is answered, the rest waits again.
pub(crate) fn undone(core: &mut Core, index: ShardIndex, undone: Undone) {
    let refusal = &undone.refusal;
    for name in undone.fetched {
        core.topics.wake(name);
    }
    for poll in undone.handoffs_cancelled {
        delivery::handoff_cancelled(core, index, poll);
    }
    for planned in undone.refused {
        match planned {
            Planned::Enqueue { part, .. } => refuse_enqueue(&mut core.calls, &part, refusal),
            Planned::Lease { part, .. } => delivery::lease_unstorable(core, index, &part, refusal),
            Planned::Settle(settle) => {
                for request in settle.requests() {
                    core.calls.settle_refused(request, refusal.clone());
                }
            }
            Planned::HandOff { part, .. } => delivery::handoff_cancelled(core, index, part.poll),
            Planned::Restore(_) | Planned::MoveLease(_) => {}
        }
    }
    for part in undone.refused_waiting {
        refuse_enqueue(&mut core.calls, &part, refusal);
    }
}

fn refuse_enqueue(calls: &mut PendingCalls, part: &ShardEnqueue, refusal: &Refusal) {
    for item in &part.items {
        calls.enqueue_done(part.call, item.index, Err(refusal.clone()));
    }
}

/// The shard is lost: everything that waited for it is answered, or is stored in another shard. `sent`:
/// COMMIT of the batch in flight was sent, so its outcome is unknown.
pub(crate) fn abandoned(core: &mut Core, index: ShardIndex, abandoned: Abandoned, sent: bool) {
    let (id, refusal) = (core.slots[index].id, core.slots[index].refusal());
    let sent = sent && !on(Bug::UnknownAsFailed);
    let unknown = Refusal::new(
        Reason::OutcomeUnknown,
        format!("shard {id} changed its owner during the commit: the call may or may not have taken effect"),
    )
    .retry_after(RETRY_AFTER);
    for planned in abandoned.in_flight {
        match planned {
            Planned::Enqueue { part, .. } if sent => refuse_enqueue(&mut core.calls, &part, &unknown),
            Planned::Enqueue { part, .. } => enqueue::choose_another_shard(core, part, &refusal),
            Planned::Lease { part, .. } => delivery::lease_lost(core, index, &part),
            Planned::Settle(settle) => {
                let refusal = if sent { &unknown } else { &refusal };
                for request in settle.requests() {
                    core.calls.settle_refused(request, refusal.clone());
                }
            }
            Planned::HandOff { part, .. } => delivery::handoff_cancelled(core, index, part.poll),
            Planned::Restore(_) | Planned::MoveLease(_) => {}
        }
    }
    for request in abandoned.settles {
        core.calls.settle_refused(&request, refusal.clone());
    }
    for part in abandoned.leases {
        delivery::lease_lost(core, index, &part);
    }
    for part in abandoned.enqueues {
        enqueue::choose_another_shard(core, part, &refusal);
    }
}
