//! Returns what was leased and not received: leases are released, at-most-once items are inserted again.

use std::collections::BTreeMap;

use forebay_types::{ItemId, Namespace, Receipt};

use crate::{
    core::{Core, slot::Slots},
    index::ShardIndex,
    messages::delivery_guard::ReturnAction,
    shard::{
        LeaseOutcome,
        work::{ReservedItem, ShardLease},
    },
};

/// Returns deliveries that nobody received.
pub(crate) fn return_undelivered(core: &mut Core, namespace: &Namespace, returns: Vec<ReturnAction>) {
    let mut elsewhere: BTreeMap<String, Vec<Receipt>> = BTreeMap::new();
    for action in returns {
        match action {
            ReturnAction::Release(receipt) => {
                let Some(shard) = core.slots.index_of(receipt.item.shard) else { continue };
                let slot = &core.slots[shard];
                if slot.is_served_elsewhere() {
                    elsewhere.entry(slot.elsewhere().owner).or_default().push(receipt);
                } else {
                    release(&mut core.slots, shard, receipt);
                }
            }
            ReturnAction::Restore { shard, term, item } => restore(&mut core.slots, shard, term, *item),
            ReturnAction::Lost => metrics::counter!("forebay_at_most_once_lost_total").increment(1),
        }
    }
    for (address, receipts) in elsewhere {
        core.launcher.return_items(address, namespace.clone(), receipts);
    }
}

/// Returns leases that were committed for a poll that has been answered, or whose caller went away.
pub(crate) fn return_lease(slots: &mut Slots, shard: ShardIndex, part: ShardLease, leased: &[LeaseOutcome]) {
    let (id, term) = (slots[shard].id, slots[shard].term);
    for (reserved, leased) in part.items.into_iter().zip(leased) {
        match leased {
            LeaseOutcome::Expired => {}
            LeaseOutcome::Consumed => restore(slots, shard, term, reserved),
            LeaseOutcome::Lease { delivery, nonce, .. } => {
                let item = ItemId { shard: id, seq: reserved.key.seq };
                release(slots, shard, Receipt { item, delivery: *delivery, nonce: *nonce });
            }
        }
    }
}

/// Ends a delivery without a failure. The item keeps its place. In a shard that was lost, the lease times
/// out.
pub(crate) fn release(slots: &mut Slots, shard: ShardIndex, receipt: Receipt) {
    if let Some(owned) = slots.owned_mut(shard) {
        owned.release(receipt);
    }
}

/// Inserts an item again. In a later term nobody knows it any more: it was delivered at most once.
fn restore(slots: &mut Slots, shard: ShardIndex, term: u64, reserved: ReservedItem) {
    if slots[shard].term == term
        && let Some(owned) = slots.owned_mut(shard)
    {
        owned.restore(reserved);
    }
}
