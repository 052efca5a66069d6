//! Calls whose members are answered one by one: enqueue, ack, nack, extension. A call is answered when its
//! last member is.

use std::sync::atomic::Ordering;

use forebay_store::{ItemLocation, StoreError};
use forebay_types::{Fate, Reason, Receipt, Refusal, Timestamp};
use rustc_hash::FxHashMap;

use crate::{
    Enqueued, ExtendOf, NackOf, Settled,
    api::Extended,
    core::Core,
    event::Reply,
    op::{Settle, SettleKind, Slot},
    planted::{Bug, on},
};

/// A call that waits for its members.
struct Gather<T> {
    results: Vec<Option<T>>,
    left: usize,
    reply: Reply<Vec<T>>,
}

impl<T> Gather<T> {
    fn new(count: usize, reply: Reply<Vec<T>>) -> Self {
        Self { results: std::iter::repeat_with(|| None).take(count).collect(), left: count, reply }
    }

    /// Notes one member's answer; returns whether it was the last.
    fn set(&mut self, index: usize, result: T) -> bool {
        debug_assert!(self.results[index].is_none(), "a member is answered once");
        self.results[index] = Some(result);
        self.left -= 1;
        self.left == 0
    }

    fn send(self) {
        // A caller that went away has its own idea of what happened.
        let _ = self.reply.send(Ok(self.results.into_iter().flatten().collect()));
    }
}

/// All calls that are under way.
#[derive(Default)]
pub(crate) struct Calls {
    enqueues: FxHashMap<u64, (Gather<Result<Enqueued, Refusal>>, usize)>,
    settles: FxHashMap<u64, Gather<Settled>>,
    extensions: FxHashMap<u64, Gather<Extended>>,
}

impl Calls {
    /// Every call has been answered.
    pub fn is_empty(&self) -> bool {
        self.enqueues.is_empty() && self.settles.is_empty() && self.extensions.is_empty()
    }

    pub fn enqueue(
        &mut self,
        id: u64,
        count: usize,
        bytes: usize,
        reply: Reply<Vec<Result<Enqueued, Refusal>>>,
    ) {
        self.enqueues.insert(id, (Gather::new(count, reply), bytes));
    }
}

impl Core {
    /// One item of an enqueue call has its answer.
    pub fn enqueue_done(&mut self, call: u64, index: usize, result: Result<Enqueued, Refusal>) {
        let Some((gather, _)) = self.calls.enqueues.get_mut(&call) else { return };
        if gather.set(index, result)
            && let Some((gather, bytes)) = self.calls.enqueues.remove(&call)
        {
            gather.send();
            self.uncharge(bytes);
        }
    }

    pub fn uncharge(&self, bytes: usize) {
        self.admitted.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub fn ack(&mut self, acks: Vec<Receipt>, reply: Reply<Vec<Settled>>) {
        let acks = acks.into_iter().map(|receipt| (receipt, SettleKind::Ack)).collect();
        self.settle_call(acks, reply);
    }

    pub fn nack(&mut self, nacks: Vec<NackOf>, reply: Reply<Vec<Settled>>) {
        let nacks = nacks.into_iter().map(|nack| {
            let NackOf { receipt, action, metadata, reason } = nack;
            (receipt, SettleKind::Nack { action, metadata, reason })
        });
        self.settle_call(nacks.collect(), reply);
    }

    fn settle_call(&mut self, members: Vec<(Receipt, SettleKind)>, reply: Reply<Vec<Settled>>) {
        let id = self.next_id();
        if members.is_empty() {
            let _ = reply.send(Ok(Vec::new()));
            return;
        }
        self.calls.settles.insert(id, Gather::new(members.len(), reply));
        self.queue_settles(id, members);
    }

    pub fn extend_lease(&mut self, extensions: Vec<ExtendOf>, reply: Reply<Vec<Extended>>) {
        let id = self.next_id();
        if extensions.is_empty() {
            let _ = reply.send(Ok(Vec::new()));
            return;
        }
        self.calls.extensions.insert(id, Gather::new(extensions.len(), reply));
        let members = extensions.into_iter().map(|of| (of.receipt, SettleKind::Extend { lease: of.lease }));
        self.queue_settles(id, members.collect());
    }

    fn queue_settles(&mut self, call: u64, members: Vec<(Receipt, SettleKind)>) {
        for (index, (receipt, kind)) in members.into_iter().enumerate() {
            let settle = Settle { receipt, kind, slot: Some(Slot { call, index }) };
            match self.place_of(receipt.item.shard) {
                None => {
                    let message = format!("shard {} is not one of this node's", receipt.item.shard);
                    self.settle_refused(&settle, Refusal::new(Reason::NotOwner, message));
                }
                Some(place) if !self.shards[place].is_merged() => {
                    let refusal = self.shards[place].refusal();
                    self.settle_refused(&settle, refusal);
                }
                Some(place) => {
                    if let Some(owned) = &mut self.shards[place].owned {
                        owned.settles.push_back(settle);
                    }
                }
            }
        }
    }

    /// One member has its answer; an extension's is its new end.
    pub fn settle_done(&mut self, settle: &Settle, deadline: Option<Timestamp>) {
        match deadline {
            Some(deadline) => self.extend_answer(settle, Ok(deadline)),
            None => self.settle_answer(settle, Ok(())),
        }
    }

    pub fn settle_refused(&mut self, settle: &Settle, refusal: Refusal) {
        if matches!(settle.kind, SettleKind::Extend { .. }) {
            self.extend_answer(settle, Err(refusal));
        } else {
            self.settle_answer(settle, Err(refusal));
        }
    }

    fn settle_answer(&mut self, settle: &Settle, result: Settled) {
        let Some(Slot { call, index }) = settle.slot else { return };
        let Some(gather) = self.calls.settles.get_mut(&call) else { return };
        if gather.set(index, result)
            && let Some(gather) = self.calls.settles.remove(&call)
        {
            gather.send();
        }
    }

    fn extend_answer(&mut self, settle: &Settle, result: Extended) {
        let Some(Slot { call, index }) = settle.slot else { return };
        let Some(gather) = self.calls.extensions.get_mut(&call) else { return };
        if gather.set(index, result)
            && let Some(gather) = self.calls.extensions.remove(&call)
        {
            gather.send();
        }
    }

    /// A settlement whose delivery is over: find out where the item is.
    pub fn missed(&mut self, place: usize, settle: Settle) {
        if settle.slot.is_none() {
            return;
        }
        let leases = self.shards[place].owned.as_ref().map(|owned| &owned.leases);
        if leases.is_some_and(|leases| leases.get(settle.receipt.item.seq).is_some()) {
            self.lease_lost(place, &settle, Fate::Leased);
        } else if let Some(reads) = self.reads(place) {
            reads.fate(Box::new(settle));
        } else {
            let refusal = self.shards[place].refusal();
            self.settle_refused(&settle, refusal);
        }
    }

    pub fn fate_known(&mut self, place: usize, settle: Settle, fate: Result<ItemLocation, StoreError>) {
        let leased = self.shards[place]
            .owned
            .as_ref()
            .is_some_and(|o| o.leases.get(settle.receipt.item.seq).is_some());
        match fate {
            _ if leased => self.lease_lost(place, &settle, Fate::Leased),
            Ok(ItemLocation::Waiting) => self.lease_lost(place, &settle, Fate::Waiting),
            Ok(ItemLocation::DeadLetter) => self.lease_lost(place, &settle, Fate::Dead),
            Ok(ItemLocation::Gone) => self.lease_lost(place, &settle, Fate::Gone),
            Err(error) => {
                self.shards[place].last_error = error.to_string();
                let refusal = self.shards[place].refusal();
                self.settle_refused(&settle, refusal);
            }
        }
    }

    /// Nothing is written for this answer, so it is given only while nobody else can own the shard.
    fn lease_lost(&mut self, place: usize, settle: &Settle, fate: Fate) {
        let at = self.time.monotonic();
        let trusted = self.shards[place].owned.as_ref().is_some_and(|owned| owned.trusted(at));
        let refusal = if trusted || on(Bug::LeaseLostUntrusted) {
            Refusal::lease_lost(fate)
        } else {
            self.shards[place].refusal()
        };
        self.settle_refused(settle, refusal);
    }
}
