//! A batch that has had no answer for long. Its callers are told that nobody knows its outcome, and what
//! waits behind it leaves the shard: callers shall not wait for a server that stands still. The batch itself
//! goes on, and what the engine wants itself waits.

use super::{
    OwnedShard,
    abandoned::{LostWork, work_of},
    in_flight::Planned,
    work::{ChangeRequest, NOBODY, ReplySlot, SettleKind, ShardLease},
};

/// A caller that waits for the batch in flight.
pub(crate) enum Caller {
    /// An enqueue call, for these of its items.
    Enqueue(u64, Vec<usize>),
    /// An ack, a nack, or an extension if `extends`.
    Settle {
        /// The member that the answer is for.
        slot: ReplySlot,
        /// It is an extension.
        extends: bool,
    },
    /// A poll, for leases.
    Poll(u64),
    /// An order to an operation.
    Order(u64),
    /// A change of an item.
    Change(ChangeRequest),
}

/// The work that waited behind a batch in flight.
pub(crate) struct Waiting {
    /// Reserved items on their way to a lease.
    pub leases: Vec<ShardLease>,
    /// The rest. It has not begun.
    pub work: Vec<LostWork>,
}

impl OwnedShard {
    /// Detaches the callers that wait for the batch in flight. They hear no more of it.
    pub fn detach_callers(&mut self) -> Vec<Caller> {
        let mut callers = Vec::new();
        for planned in self.in_flight.iter_mut().flat_map(|batch| &mut batch.planned) {
            match planned {
                Planned::Enqueue { part, .. } => {
                    let call = std::mem::replace(&mut part.call, NOBODY);
                    let indexes = part.items.iter().map(|item| item.index).collect();
                    callers.extend((call != NOBODY).then_some(Caller::Enqueue(call, indexes)));
                }
                Planned::Settle(settle) => {
                    let extends = matches!(settle.request.kind, SettleKind::Extend { .. });
                    let asked = std::iter::once(&mut settle.request).chain(&mut settle.repeats);
                    let slots = asked.filter_map(|request| request.slot.take());
                    callers.extend(slots.map(|slot| Caller::Settle { slot, extends }));
                }
                Planned::Lease { part, .. } | Planned::HandOff { part, .. } => {
                    let poll = std::mem::replace(&mut part.poll, NOBODY);
                    callers.extend((poll != NOBODY).then_some(Caller::Poll(poll)));
                }
                Planned::Order(order) => {
                    let call = std::mem::replace(&mut order.request.call, NOBODY);
                    callers.extend((call != NOBODY).then_some(Caller::Order(call)));
                }
                Planned::Change(change) if change.request.slot.call != NOBODY => {
                    callers.push(Caller::Change(change.request.clone()));
                    change.request.slot.call = NOBODY;
                }
                Planned::Change(_) | Planned::Restore(_) | Planned::MoveLease(_) => {}
            }
        }
        callers
    }

    /// Takes the work that callers wait for behind the batch in flight. It leaves the shard: nothing of it
    /// happens here.
    pub fn take_waiting(&mut self) -> Waiting {
        let (asked, own): (Vec<_>, Vec<_>) =
            self.settles.drain().into_iter().partition(|request| request.slot.is_some());
        own.into_iter().for_each(|request| self.settles.push(request));
        let mut work: Vec<LostWork> = asked.into_iter().map(LostWork::Settle).collect();
        work.extend(self.locates.take().into_iter().map(LostWork::Settle));
        work.extend(self.operations.take_orders().into_iter().map(LostWork::Order));
        work.extend(self.changes.take().into_iter().map(LostWork::Change));
        // Enqueues in line first: the ones that hold their keys must not wake them.
        let in_line: Vec<_> = self.keys.take_waiting().collect();
        for part in &in_line {
            self.budget.release(&part.namespace, part.charge());
        }
        let held: Vec<_> = self.enqueues.drain().into_iter().chain(self.keys.take_lookups()).collect();
        held.iter().for_each(|part| self.free(part));
        work.extend(held.into_iter().chain(in_line).map(LostWork::Enqueue));
        let mut leases: Vec<ShardLease> = work_of(std::mem::take(&mut self.leasing)).collect();
        leases.extend(std::mem::take(&mut self.awaiting_bodies).into_values());
        Waiting { leases, work }
    }
}
