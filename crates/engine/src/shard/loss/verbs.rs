//! Work leaves the shard: all of it once the shard is lost, and that of callers while a batch is overdue.

use super::{
    abandoned::{LostShardWork, LostWork},
    overdue::{Caller, WaitingWork},
    topics::LostTopics,
};
use crate::shard::{
    OwnedShard,
    commit::in_flight::PlannedAction,
    work::{FairQueue, NOBODY, SettleKind, ShardLease, Work},
};

impl OwnedShard {
    /// The shard is lost. Returns everything that waited for it, and its topics, which leave the node's
    /// directory in slices. There may be much of both, so it is not even gathered here.
    pub fn abandon(mut self) -> (LostShardWork, LostTopics) {
        let in_flight = self.commit.in_flight.take().map(|batch| batch.planned).unwrap_or_default();
        let settles = work_of(self.intake.settles).chain(self.intake.locates.take());
        let leases = work_of(self.intake.leasing).chain(self.intake.awaiting_bodies.into_values());
        let (waiting, looked_up) = (self.intake.keys.take_waiting(), self.intake.keys.take_lookups());
        let enqueues = work_of(self.intake.enqueues).chain(waiting).chain(looked_up);
        let work = in_flight.into_iter().map(LostWork::InFlight);
        let work = work.chain(settles.map(LostWork::Settle));
        let orders = self.upkeep.operations.take_orders().into_iter().map(LostWork::Order);
        let changes = self.intake.changes.take().into_iter().map(LostWork::Change);
        let work = work.chain(orders).chain(changes);
        let work = work.chain(leases.map(LostWork::Lease)).chain(enqueues.map(LostWork::Enqueue));
        let abandoned = LostShardWork { epoch: self.tenure.epoch, work: Box::new(work) };
        (abandoned, LostTopics::new(self.contents.topics, self.contents.leases))
    }

    /// Detaches the callers that wait for the batch in flight. They hear no more of it.
    pub fn detach_callers(&mut self) -> Vec<Caller> {
        let mut callers = Vec::new();
        for planned in self.commit.in_flight.iter_mut().flat_map(|batch| &mut batch.planned) {
            match planned {
                PlannedAction::Enqueue { part, .. } => {
                    let call = std::mem::replace(&mut part.call, NOBODY);
                    let indexes = part.items.iter().map(|item| item.index).collect();
                    callers.extend((call != NOBODY).then_some(Caller::Enqueue(call, indexes)));
                }
                PlannedAction::Settle(settle) => {
                    let extends = matches!(settle.request.kind, SettleKind::Extend { .. });
                    let asked = std::iter::once(&mut settle.request).chain(&mut settle.repeats);
                    let slots = asked.filter_map(|request| request.slot.take());
                    callers.extend(slots.map(|slot| Caller::Settle { slot, extends }));
                }
                PlannedAction::Lease { part, .. } | PlannedAction::HandOff { part, .. } => {
                    let poll = std::mem::replace(&mut part.poll, NOBODY);
                    callers.extend((poll != NOBODY).then_some(Caller::Poll(poll)));
                }
                PlannedAction::Order(order) => {
                    let call = std::mem::replace(&mut order.request.call, NOBODY);
                    callers.extend((call != NOBODY).then_some(Caller::Order(call)));
                }
                PlannedAction::Change(change) if change.request.slot.call != NOBODY => {
                    callers.push(Caller::Change(change.request.clone()));
                    change.request.slot.call = NOBODY;
                }
                PlannedAction::Change(_) | PlannedAction::Restore(_) | PlannedAction::MoveLease(_) => {}
            }
        }
        callers
    }

    /// Takes the work that callers wait for behind the batch in flight. It leaves the shard: nothing of it
    /// happens here.
    pub fn take_waiting(&mut self) -> WaitingWork {
        let (asked, own): (Vec<_>, Vec<_>) =
            self.intake.settles.drain().into_iter().partition(|request| request.slot.is_some());
        own.into_iter().for_each(|request| self.intake.settles.push(request));
        let mut work: Vec<LostWork> = asked.into_iter().map(LostWork::Settle).collect();
        work.extend(self.intake.locates.take().into_iter().map(LostWork::Settle));
        work.extend(self.upkeep.operations.take_orders().into_iter().map(LostWork::Order));
        work.extend(self.intake.changes.take().into_iter().map(LostWork::Change));
        // Enqueues in line first: the ones that hold their keys must not wake them.
        let in_line: Vec<_> = self.intake.keys.take_waiting().collect();
        for part in &in_line {
            self.intake.budget.release(&part.namespace, part.charge());
        }
        let held: Vec<_> =
            self.intake.enqueues.drain().into_iter().chain(self.intake.keys.take_lookups()).collect();
        held.iter().for_each(|part| self.free(part));
        work.extend(held.into_iter().chain(in_line).map(LostWork::Enqueue));
        let mut leases: Vec<ShardLease> = work_of(std::mem::take(&mut self.intake.leasing)).collect();
        leases.extend(std::mem::take(&mut self.intake.awaiting_bodies).into_values());
        WaitingWork { leases, work }
    }
}

/// Everything that waits in a queue, one by one.
fn work_of<T: Work>(mut queue: FairQueue<T>) -> impl Iterator<Item = T> {
    std::iter::from_fn(move || queue.pop(|_| true)).map(|turn| turn.work)
}
