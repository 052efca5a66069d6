//! Orders to operations: each shard that this node owns does its part.

use forebay_store::OperationOrder;
use forebay_types::ShardId;

use crate::{
    api::OrderResult,
    core::{Core, refusals::draining},
    index::ShardIndex,
    messages::reply::Reply,
    shard::work::OrderRequest,
};

/// Passes an order to the shards. Those that this node does not own, or is handing over, are left out: their
/// owners hear of it.
pub(crate) fn serve(
    core: &mut Core,
    order: OperationOrder,
    only: Option<ShardId>,
    reply: Reply<Vec<OrderResult>>,
) {
    if core.stopping.is_stopping() {
        reply.send(Err(draining()));
        return;
    }
    let call = core.ids.next();
    let owned: Vec<ShardIndex> = core
        .slots
        .entries()
        .filter(|(_, slot)| slot.holding.is_some() && slot.hand_over.is_none())
        .filter(|(_, slot)| only.is_none_or(|only| slot.id == only))
        .map(|(index, _)| index)
        .collect();
    let (mut left, mut answers) = (0, Vec::new());
    for index in owned {
        let id = core.slots[index].id;
        let Some(shard) = core.slots.owned_mut(index) else { continue };
        match shard.order(OrderRequest { call, order: order.clone() }) {
            Ok(()) => left += 1,
            Err(refusal) => answers.push((id, Err(refusal))),
        }
    }
    core.orders.begin(call, left, answers, reply);
}
