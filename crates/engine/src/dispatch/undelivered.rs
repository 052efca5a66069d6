//! Returns what was leased and not received: leases are released, at-most-once items are inserted again.

use forebay_types::{ItemId, Receipt};

use crate::{
    core::slot::Slots,
    index::ShardIndex,
    messages::delivery_guard::ReturnAction,
    shard::{
        LeaseOutcome,
        work::{ReservedItem, ShardLease},
    },
};

/// Returns deliveries that nobody received.
pub(crate) fn return_undelivered(slots: &mut Slots, returns: Vec<ReturnAction>) {
    for action in returns {
        match action {
            ReturnAction::Release(receipt) => {
                if let Some(shard) = slots.index_of(receipt.item.shard) {
                    release(slots, shard, receipt);
                }
            }
            ReturnAction::Restore { shard, term, item } => restore(slots, shard, term, *item),
        }
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
