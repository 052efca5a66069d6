//! CancelItems: each member is queued at the shard that its id names, where the item is read and changed.

use forebay_types::{Reason, Refusal};

use crate::{
    api::{ChangeCall, ChangeResult},
    core::{Core, refusals::draining},
    index::ShardIndex,
    messages::reply::Reply,
    planted::{Bug, on},
    shard::work::{ChangeRequest, FoundItem, ReplySlot},
};

/// Serves the call.
pub(crate) fn serve(core: &mut Core, call: ChangeCall, reply: Reply<Vec<ChangeResult>>) {
    if core.stopping.is_stopping() || call.items.is_empty() {
        let answer = if call.items.is_empty() { Ok(Vec::new()) } else { Err(draining()) };
        // Without a listener nobody is interested.
        reply.send(answer);
        return;
    }
    let id = core.ids.next();
    let Core { slots, calls, time, .. } = core;
    calls.begin_change(id, call.items.len(), reply, time.monotonic());
    for (index, item) in call.items.into_iter().enumerate() {
        let (namespace, change) = (call.namespace.clone(), call.change.clone());
        let (slot, dry_run) = (ReplySlot { call: id, index }, call.dry_run);
        let request = ChangeRequest { namespace, seq: item.seq, change, dry_run, slot };
        let Some(shard) = slots.index_of(item.shard) else {
            let message = format!("this node does not serve shard {}", item.shard);
            calls.change_done(&request, Err(Refusal::new(Reason::NotOwner, message)));
            continue;
        };
        let handed_over = slots[shard].hand_over.is_some();
        let Some(owned) = slots.owned_mut(shard).filter(|_| !handed_over) else {
            calls.change_done(&request, Err(slots[shard].refusal()));
            continue;
        };
        if let Err(refused) = owned.ask_change(request) {
            let (request, refusal) = *refused;
            calls.change_done(&request, Err(refusal));
        }
    }
}

/// Items were read; `None` if that failed.
pub(crate) fn read(core: &mut Core, index: ShardIndex, read: u64, items: Option<Vec<FoundItem>>) {
    let Some(shard) = core.slots.owned_mut(index) else { return };
    for request in shard.change_read(read, items) {
        let refusal = core.slots[index].refusal();
        core.calls.change_done(&request, Err(refusal));
    }
}

/// A change can't be made, or shall not. Nothing is written for this answer, so it is given only while no
/// other node can own the shard.
pub(crate) fn not_changed(core: &mut Core, index: ShardIndex, request: &ChangeRequest, told: ChangeResult) {
    let at = core.time.monotonic();
    let trusted = core.slots.owned(index).is_some_and(|shard| shard.is_trusted(at));
    let told = if trusted || on(Bug::LeaseLostUntrusted) { told } else { Err(core.slots[index].refusal()) };
    core.calls.change_done(request, told);
}
