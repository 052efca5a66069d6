//! The common part of ack, nack and lease extension: each member is queued at the shard that its receipt
//! names. If its delivery is over, the caller is told where the item is.

use forebay_store::ItemLocation;
use forebay_types::{Fate, Namespace, Reason, Receipt, Refusal};

use crate::{
    api::{MemberPlaces, MisplacedMember, Notice, SettlementResult},
    core::Core,
    index::ShardIndex,
    messages::reply::Reply,
    planted::{Bug, on},
    shard::work::{ReplySlot, SettleKind, SettleRequest},
};

/// One member of a call.
pub(super) struct Member {
    /// The delivery.
    pub receipt: Receipt,
    /// The settlement that is asked for.
    pub kind: SettleKind,
}

/// Begins an ack or nack call.
pub(super) fn begin(
    core: &mut Core,
    namespace: Namespace,
    members: Vec<Member>,
    notice: Option<Notice>,
    reply: Reply<Vec<SettlementResult>>,
) {
    let id = core.ids.next();
    if members.is_empty() {
        reply.send(Ok(Vec::new()));
        return;
    }
    let at = core.time.monotonic();
    core.calls.begin_settle(id, members.len(), reply, at);
    queue(core, id, namespace, members, notice);
}

/// Queues a call's members at their shards.
pub(super) fn queue(
    core: &mut Core,
    call: u64,
    namespace: Namespace,
    members: Vec<Member>,
    notice: Option<Notice>,
) {
    let Core { slots, calls, .. } = core;
    let mut misplaced = Vec::new();
    for (index, Member { receipt, kind }) in members.into_iter().enumerate() {
        let (namespace, slot) = (namespace.clone(), Some(ReplySlot { call, index }));
        let request = SettleRequest { namespace, receipt, kind, slot };
        let id = receipt.item.shard;
        let Some(shard) = slots.index_of(id) else {
            let message = format!("this node does not serve shard {id}");
            calls.settle_refused(&request, Refusal::new(Reason::NotOwner, message));
            continue;
        };
        // Also while the breaker is open: what waits is committed before the leases can end. But what comes
        // while the shard is handed over is for its next owner.
        let handed_over = slots[shard].hand_over.is_some();
        let Some(owned) = slots.owned_mut(shard).filter(|_| !handed_over) else {
            let refusal = slots[shard].refusal();
            misplaced.extend(MisplacedMember::of(index, &refusal));
            calls.settle_refused(&request, refusal);
            continue;
        };
        if let Err(refused) = owned.ask_settle(request) {
            let (request, refusal) = *refused;
            let refusal = if slots[shard].is_merged() { refusal } else { slots[shard].refusal() };
            calls.settle_refused(&request, refusal);
        }
    }
    if let Some(notice) = notice {
        // Without a listener nobody is interested.
        let _ = notice.send(MemberPlaces { misplaced, ..MemberPlaces::default() });
    }
}

/// A settlement whose delivery is over: finds out where the item is.
pub(crate) fn locate(core: &mut Core, index: ShardIndex, request: SettleRequest) {
    if request.slot.is_none() {
        return;
    }
    let Some(shard) = core.slots.owned_mut(index) else {
        return core.calls.settle_refused(&request, core.slots[index].refusal());
    };
    if shard.is_leased_in(&request.namespace, request.receipt.item.seq) {
        return lease_lost(core, index, &request, Fate::Leased);
    }
    match shard.wait_for_location(request) {
        Ok(()) => read_locations(core, index),
        Err(refused) => {
            let (request, refusal) = *refused;
            core.calls.settle_refused(&request, refusal);
        }
    }
}

/// Begins the next look-up of a shard, if none is under way.
fn read_locations(core: &mut Core, index: ShardIndex) {
    let read = core.ids.next();
    let Some(holding) = &mut core.slots[index].holding else { return };
    if let Some(seqs) = holding.shard.begin_locate(read) {
        holding.reads.locate(read, seqs);
    }
}

/// Items were located; `None` if that failed.
pub(crate) fn located(core: &mut Core, index: ShardIndex, read: u64, locations: Option<Vec<ItemLocation>>) {
    let Some(shard) = core.slots.owned_mut(index) else { return };
    let requests = shard.end_locate(read);
    match locations {
        // The read may have seen the batch, and a server that restarts may forget that again.
        Some(locations) if shard.is_committing() && !requests.is_empty() => {
            return shard.hold_located(requests, locations);
        }
        Some(locations) => tell(core, index, &requests, locations),
        None => {
            let refusal = core.slots[index].refusal();
            requests.iter().for_each(|request| core.calls.settle_refused(request, refusal.clone()));
        }
    }
    read_locations(core, index);
}

/// The batch in flight is resolved: what was located meanwhile can be told, or is located anew.
pub(crate) fn resolved(core: &mut Core, index: ShardIndex, committed: bool) {
    let Some(shard) = core.slots.owned_mut(index) else { return };
    if let Some((requests, locations)) = shard.take_located(committed) {
        tell(core, index, &requests, locations);
    }
    read_locations(core, index);
}

fn tell(core: &mut Core, index: ShardIndex, requests: &[SettleRequest], locations: Vec<ItemLocation>) {
    for (request, location) in requests.iter().zip(locations) {
        located_one(core, index, request, location);
    }
}

fn located_one(core: &mut Core, index: ShardIndex, request: &SettleRequest, location: ItemLocation) {
    let SettleRequest { namespace: own, receipt, .. } = request;
    let seq = receipt.item.seq;
    let fate = match location {
        _ if core.slots.owned(index).is_some_and(|shard| shard.is_leased_in(own, seq)) => Fate::Leased,
        ItemLocation::Waiting(namespace) if namespace == *own => Fate::Waiting,
        ItemLocation::DeadLetter(namespace) if namespace == *own => Fate::Dead,
        // A receipt can be made up: nobody is told of another tenant's item.
        ItemLocation::Waiting(_) | ItemLocation::DeadLetter(_) | ItemLocation::Gone => Fate::Gone,
    };
    lease_lost(core, index, request, fate);
}

/// Nothing is written for this answer, so it is given only while no other node can own the shard.
fn lease_lost(core: &mut Core, index: ShardIndex, request: &SettleRequest, fate: Fate) {
    let at = core.time.monotonic();
    let trusted = core.slots.owned(index).is_some_and(|shard| shard.is_trusted(at));
    let refusal = if trusted || on(Bug::LeaseLostUntrusted) {
        Refusal::lease_lost(fate)
    } else {
        core.slots[index].refusal()
    };
    core.calls.settle_refused(request, refusal);
}
