//! Upkeep of one shard: its breaker, sweeps, generations and memory.

use forebay_types::Monotonic;

use crate::{
    api::BreakerPhase,
    clock::Moment,
    core::{Core, touch::Followers},
    index::ShardIndex,
    messages::shard::ShardOrder,
    shard::GenerationChange,
};

/// Maintains one shard.
pub(super) fn maintain(core: &mut Core, index: ShardIndex, node: Moment) {
    let at = node.at;
    let [read, page, change, tallies] = [(); 4].map(|()| core.ids.next());
    let slot = &mut core.slots[index];
    let Some(holding) = &mut slot.holding else { return };
    let shard = &mut holding.shard;
    // If its items are back, or left out, polls and the order of active topics have to know.
    let begins_or_ceases = slot.health.tick(at, !shard.is_committing());
    if slot.health.phase() == BreakerPhase::HalfOpen && !shard.is_committing() {
        shard.want_probe();
    }
    shard.evict();
    if let Some(request) = shard.begin_scan(read, node) {
        holding.reads.scan(read, request);
    }
    if let Some(request) = shard.begin_operation(page, node) {
        holding.reads.operation(page, request);
    }
    if let Some(request) = shard.begin_tallies(tallies, at) {
        holding.reads.tallies(tallies, request);
    }
    if let Some(seqs) = shard.begin_change(change) {
        holding.reads.changes(change, seqs);
    }
    if let Some(GenerationChange { live, create, drop }) = shard.begin_generation_change(node) {
        let _ = slot.tasks.send(ShardOrder::Generations { term: slot.term, live, create, drop });
    }
    if begins_or_ceases {
        core.begin_walk(index);
    }
    drain_changed(core, index);
}

/// Takes what a shard's changes mean for the node: polls to wake, the order of active topics.
pub(super) fn drain_changed(core: &mut Core, index: ShardIndex) {
    let Core { slots, topics, active, prefixes, watchers, .. } = core;
    let Some(shard) = slots.owned_mut(index) else { return };
    let mut followers = Followers { topics, active, prefixes, watchers };
    shard.drain_changed(|name| followers.touch(name));
}

/// When time alone makes something due in a shard.
pub(super) fn next_wake(core: &mut Core, index: ShardIndex, node: Moment) -> Option<Monotonic> {
    let deferred = core.loads.is_waiting(index);
    let slot = &mut core.slots[index];
    let hand_over = match &slot.hand_over {
        // Its task was told to release it: whatever is due is for its next owner.
        Some(hand_over) if hand_over.ordered => return None,
        hand_over => hand_over.as_ref().map(|hand_over| hand_over.until),
    };
    let shard = &mut slot.holding.as_mut()?.shard;
    let breaker = if shard.is_committing() { None } else { slot.health.next_wake() };
    breaker.into_iter().chain(hand_over).chain(shard.next_wake(node, deferred)).min()
}
