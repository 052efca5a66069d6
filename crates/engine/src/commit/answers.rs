//! The answers to callers after a batch is resolved, and its changes to the topic directory. By then all of
//! it is in memory.

use std::time::Duration;

use forebay_store::{OperationKind, OperationRow};
use forebay_types::{ItemId, Namespace, Reason, Refusal};

use super::handled;
use crate::{
    api::{EnqueueOutcome, ItemChange, OperationItems, RETRY_AFTER, SeenCommit, Settlement},
    calls::{dedupe, enqueue},
    core::{
        Core, fates::Fate, lost_shard::LostShard, pending_calls::PendingCalls, topics::TopicPart,
        traffic::Traffic,
    },
    dispatch::delivery,
    index::ShardIndex,
    messages::shard::SLOW_COMMIT,
    planted::{Bug, on},
    shard::{
        Caller, CommittedBatch, Duplicate, Flow, LostShardWork, LostWork, NamedTopic, PageOutcome,
        PlannedAction, PlannedSettle, SettleEffect, StoredItem, UndoneBatch, WaitingWork,
        work::{DeliveryEnd, NOBODY, OrderRequest, ShardEnqueue},
    },
};

/// How long a batch has no answer before its callers are told.
const OVERDUE_AFTER: Duration = SLOW_COMMIT.saturating_mul(2);

/// Members of calls that one turn answers because their shard was lost.
const LOST_MEMBERS_PER_TURN: usize = 500;

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
pub(crate) fn committed(core: &mut Core, index: ShardIndex, committed: CommittedBatch) {
    for NamedTopic { id: topic, name } in committed.new_topics {
        core.topics.add_part(name, TopicPart { shard: index, topic });
    }
    for NamedTopic { id: topic, name } in committed.dropped {
        core.topics.remove_part(&name, TopicPart { shard: index, topic });
        core.touch(&name);
    }
    committed.fetched.iter().for_each(|name| core.touch(name));
    for (name, flow) in committed.flows {
        core.traffic.count(&name, flow);
    }
    let mut counts = Counts::default();
    for (namespace, expired) in committed.expired {
        core.traffic.became(&namespace, Fate::Expired, expired);
    }
    counts.add("forebay_dead_letters_deleted_total", committed.dead_letters_deleted);
    if let Some(did) = committed.operated {
        operated(&mut core.traffic, &did, &mut counts);
    }
    handled::count(core, index, &committed.done);
    let at = core.time.monotonic();
    core.consumers.ended(committed.done.iter().filter_map(ended), at);
    let shard = core.slots[index].id;
    core.calls.answer_of(Some(SeenCommit {
        shard,
        epoch: committed.epoch,
        batch: committed.number,
        rows: committed.rows,
        ended_at: core.time.wall(),
        took: committed.took,
    }));
    for planned in committed.done {
        done(core, index, planned, &mut counts);
    }
    core.calls.answer_of(None);
    counts.report();
    for Duplicate { namespace, call, index, seq, first_at } in committed.duplicates {
        core.traffic.became(&namespace, Fate::Duplicate, 1);
        let id = ItemId { shard, seq };
        core.calls.enqueue_done(
            call,
            index,
            Ok(EnqueueOutcome { id, duplicate: true, first_at: Some(first_at) }),
        );
    }
    if let Some(topology) = committed.topology {
        let (id, now) = (core.slots[index].id, core.time.now());
        core.homes.recorded(id, topology, now);
        // The set may have changed since the batch was built.
        let next = core.homes.next_record(id, now);
        if let Some(shard) = core.slots.owned_mut(index) {
            shard.set_next_record(next);
        }
        // Keys have waited for that.
        dedupe::resume_everywhere(core);
    }
}

/// Counts what an operation did.
fn operated(traffic: &mut Traffic, did: &PageOutcome, counts: &mut Counts) {
    let PageOutcome { kind, namespace, items } = did;
    let fate = match kind {
        OperationKind::Purge => Some(Fate::Purged),
        OperationKind::Redrive => Some(Fate::Redriven),
        OperationKind::Cancel => Some(Fate::Cancelled),
        OperationKind::Update => {
            counts.add("forebay_updated_total", items.changed);
            None
        }
        OperationKind::DeleteDead | OperationKind::ResetLeases => None,
    };
    if let Some(fate) = fate {
        traffic.became(namespace, fate, items.changed);
    }
    let OperationItems { changed, skipped, failed } = *items;
    for (outcome, count) in [("changed", changed), ("skipped", skipped), ("failed", failed)] {
        if count > 0 {
            let labels = [("kind", kind.name()), ("outcome", outcome)];
            metrics::counter!("forebay_operation_items_total", &labels).increment(count);
        }
    }
}

/// Answers one thing that the batch did.
fn done(core: &mut Core, index: ShardIndex, planned: PlannedAction, counts: &mut Counts) {
    match planned {
        PlannedAction::Enqueue { part, results } => enqueued(core, index, &part, results),
        PlannedAction::Settle(settle) => settled(core, &settle, counts),
        PlannedAction::Lease { part, leased } if !on(Bug::LeaseBeforeCommit) => {
            delivery::leased(core, index, part, leased);
        }
        PlannedAction::HandOff { part, leased } => delivery::leased(core, index, part, leased),
        PlannedAction::Order(order) => ordered(core, index, &order.request, order.result),
        PlannedAction::Change(change) => {
            match change.request.change {
                ItemChange::Cancel => core.traffic.became(&change.request.namespace, Fate::Cancelled, 1),
                ItemChange::Update(_) => counts.add("forebay_updated_total", 1),
            }
            core.calls.change_done(&change.request, Ok(change.state));
        }
        PlannedAction::Lease { .. } | PlannedAction::Restore(_) | PlannedAction::MoveLease(_) => {}
    }
}

/// An order to an operation was done, or can't be.
fn ordered(
    core: &mut Core,
    index: ShardIndex,
    request: &OrderRequest,
    result: Result<OperationRow, Refusal>,
) {
    let shard = core.slots[index].id;
    core.orders.done(request.call, shard, result);
}

fn enqueued(
    core: &mut Core,
    index: ShardIndex,
    part: &ShardEnqueue,
    results: Vec<Result<StoredItem, Refusal>>,
) {
    let shard = core.slots[index].id;
    for (item, result) in part.items.iter().zip(results) {
        let id = |stored: StoredItem| ItemId { shard, seq: stored.key.seq };
        let answer = result.map(|stored| EnqueueOutcome::new(id(stored)));
        core.calls.enqueue_done(part.call, item.index, answer);
    }
}

/// The namespace, the consumer and the end of a delivery that its consumer, or nobody, ended.
fn ended(planned: &PlannedAction) -> Option<(&Namespace, &str, Flow)> {
    let PlannedAction::Settle(settle) = planned else { return None };
    let flow = match settle.request.kind.end()? {
        DeliveryEnd::Acked => [0, 0, 1, 0, 0],
        DeliveryEnd::Failed => [0, 0, 0, 1, 0],
        DeliveryEnd::Returned => return None,
    };
    Some((&settle.request.namespace, &settle.lease.consumer, flow))
}

fn settled(core: &mut Core, settle: &PlannedSettle, counts: &mut Counts) {
    for fate in Fate::of_end(&settle.request.kind, &settle.effect) {
        core.traffic.became(&settle.request.namespace, fate, 1);
    }
    if matches!(settle.effect, SettleEffect::Extended(_)) {
        counts.add("forebay_extended_total", 1);
    }
    for request in settle.requests() {
        match settle.effect {
            SettleEffect::Extended(deadline) => core.calls.extension_done(request, deadline),
            SettleEffect::Scheduled(done) => core.calls.settle_done(request, done),
            _ => core.calls.settle_done(request, Settlement::default()),
        }
    }
}

/// A batch did not happen: what is refused of it is answered, the rest waits again.
pub(crate) fn undone(core: &mut Core, index: ShardIndex, undone: UndoneBatch) {
    let refusal = &undone.refusal;
    undone.fetched.iter().for_each(|name| core.touch(name));
    for poll in undone.handoffs_cancelled {
        delivery::handoff_cancelled(core, index, poll);
    }
    for planned in undone.refused {
        match planned {
            PlannedAction::Enqueue { part, .. } => refuse_enqueue(&mut core.calls, &part, refusal),
            PlannedAction::Lease { part, .. } => delivery::lease_unstorable(core, index, &part, refusal),
            PlannedAction::Settle(settle) => {
                for request in settle.requests() {
                    core.calls.settle_refused(request, refusal.clone());
                }
            }
            PlannedAction::HandOff { part, .. } => delivery::handoff_cancelled(core, index, part.poll),
            PlannedAction::Order(order) => ordered(core, index, &order.request, Err(refusal.clone())),
            PlannedAction::Change(change) => core.calls.change_done(&change.request, Err(refusal.clone())),
            PlannedAction::Restore(_) | PlannedAction::MoveLease(_) => {}
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
pub(crate) fn abandoned(core: &mut Core, index: ShardIndex, abandoned: LostShardWork, sent: bool) {
    let (id, refusal) = (core.slots[index].id, core.slots[index].refusal());
    let unknown = || {
        let message = format!(
            "shard {id} changed its owner during the commit: the call may or may not have taken effect"
        );
        Refusal::new(Reason::OutcomeUnknown, message).retry_after(RETRY_AFTER)
    };
    let unknown = (sent && !on(Bug::UnknownAsFailed)).then(unknown);
    core.lost.push_back(LostShard { index, refusal, unknown, work: abandoned.work });
    answer_lost(core);
}

/// The batch in flight has had no answer for long. Nobody waits for it any more: its callers hear that nobody
/// knows the outcome, and what waits behind it goes elsewhere, or is refused.
pub(crate) fn overdue(core: &mut Core, index: ShardIndex) {
    let (id, refusal) = (core.slots[index].id, core.slots[index].refusal());
    let message = format!(
        "shard {id} has not said within {OVERDUE_AFTER:?} whether it has committed: the call may or may not \
         take effect"
    );
    let unknown = Refusal::new(Reason::OutcomeUnknown, message).retry_after(RETRY_AFTER);
    let Some(shard) = core.slots.owned_mut(index) else { return };
    let (callers, waiting) = (shard.detach_callers(), shard.take_waiting());
    for caller in callers {
        match caller {
            Caller::Enqueue(call, indexes) => {
                indexes.into_iter().for_each(|at| core.calls.enqueue_done(call, at, Err(unknown.clone())));
            }
            Caller::Settle { slot, extends } => core.calls.refuse_settle(slot, extends, unknown.clone()),
            Caller::Poll(poll) => delivery::lease_overdue(core, index, poll),
            Caller::Order(call) => core.orders.done(call, id, Err(unknown.clone())),
            Caller::Change(request) => core.calls.change_done(&request, Err(unknown.clone())),
        }
    }
    let WaitingWork { leases, work } = waiting;
    leases.into_iter().for_each(|part| delivery::lease_behind(core, index, part));
    core.lookups.drop_home(index);
    if !work.is_empty() {
        let work = Box::new(work.into_iter());
        core.lost.push_back(LostShard { index, refusal, unknown: None, work });
        answer_lost(core);
    }
}

/// Answers a slice of what waited for shards that were lost.
pub(crate) fn answer_lost(core: &mut Core) {
    let mut left = LOST_MEMBERS_PER_TURN;
    while left > 0
        && let Some(mut lost) = core.lost.pop_front()
    {
        let Some(work) = lost.work.next() else { continue };
        left = left.saturating_sub(work.members());
        lost_work(core, &lost, work);
        core.lost.push_front(lost);
    }
}

/// Answers one thing that waited for a shard that was lost.
fn lost_work(core: &mut Core, lost: &LostShard, work: LostWork) {
    let LostShard { index, refusal, unknown, .. } = lost;
    match work {
        // Its caller was told already that nobody knows the outcome.
        LostWork::InFlight(PlannedAction::Enqueue { part, .. }) if part.call == NOBODY => {}
        LostWork::InFlight(PlannedAction::Enqueue { part, .. }) => match unknown {
            Some(unknown) => refuse_enqueue(&mut core.calls, &part, unknown),
            None => enqueue::choose_another_shard(core, part, refusal),
        },
        LostWork::Enqueue(part) => enqueue::choose_another_shard(core, part, refusal),
        LostWork::InFlight(PlannedAction::Settle(settle)) => {
            for request in settle.requests() {
                core.calls.settle_refused(request, unknown.as_ref().unwrap_or(refusal).clone());
            }
        }
        LostWork::Settle(request) => core.calls.settle_refused(&request, refusal.clone()),
        LostWork::InFlight(PlannedAction::Lease { part, .. }) | LostWork::Lease(part) => {
            delivery::lease_lost(core, *index, &part);
        }
        LostWork::InFlight(PlannedAction::HandOff { part, .. }) => {
            delivery::handoff_cancelled(core, *index, part.poll);
        }
        LostWork::InFlight(PlannedAction::Order(order)) => {
            let refusal = unknown.as_ref().unwrap_or(refusal).clone();
            ordered(core, *index, &order.request, Err(refusal));
        }
        LostWork::Order(request) => ordered(core, *index, &request, Err(refusal.clone())),
        LostWork::InFlight(PlannedAction::Change(change)) => {
            let refusal = unknown.as_ref().unwrap_or(refusal).clone();
            core.calls.change_done(&change.request, Err(refusal));
        }
        LostWork::Change(request) => core.calls.change_done(&request, Err(refusal.clone())),
        LostWork::InFlight(PlannedAction::Restore(_) | PlannedAction::MoveLease(_)) => {}
    }
}

#[cfg(test)]
mod tests {
    use forebay_types::{Monotonic, Receipt, Seq, ShardId};
    use tokio::sync::oneshot::error::TryRecvError;

    use super::*;
    use crate::{
        messages::reply::Reply,
        shard::work::{ReplySlot, SettleKind, SettleRequest},
    };

    #[test]
    fn what_waited_for_a_lost_shard_is_answered_in_slices() {
        let mut core = Core::for_test();
        let members = 2 * LOST_MEMBERS_PER_TURN + 1;
        let (reply, mut answer) = Reply::channel();
        core.calls.begin_settle(1, members, reply, Monotonic::default());
        let item = ItemId { shard: ShardId(1), seq: Seq(1) };
        let work = (0..members).map(move |index| {
            let receipt = Receipt { item, delivery: 1, nonce: 1 };
            let slot = Some(ReplySlot { call: 1, index });
            LostWork::Settle(SettleRequest { namespace: "ns".into(), receipt, kind: SettleKind::Ack, slot })
        });
        abandoned(&mut core, ShardIndex(0), LostShardWork { epoch: 1, work: Box::new(work) }, true);
        answer_lost(&mut core);
        assert_eq!((core.lost.len(), answer.try_recv().unwrap_err()), (1, TryRecvError::Empty));
        answer_lost(&mut core);
        let answers = answer.try_recv().unwrap().unwrap();
        assert!(core.lost.is_empty() && answers.len() == members);
        assert_eq!(answers[0].as_ref().unwrap_err().reason, Reason::ShardUnavailable, "it was not begun");
    }
}
