//! Node time steps forward, because what it follows has: a machine slept, or a clock was set. That happens
//! between two turns of the event loop, for all shards at once.

use crate::{calls::policies, core::Core};

/// Takes the step, if there is one. What began before lasts as long as it was to; what has a time that has
/// come is due.
pub(super) fn take(core: &mut Core) {
    let Some(step) = core.time.step() else { return };
    let by = step.by();
    let whose = if core.time.follows_servers() {
        "the clocks of its database servers"
    } else {
        "its machine's clock"
    };
    tracing::warn!(
        by_micros = by.as_micros() as u64,
        "node time has stepped forward by {by:.1?}, as {whose} did; leases and delays that began before last \
         as long as they were to"
    );
    metrics::counter!("forebay_clock_steps_total").increment(1);
    // All of them say anew when they have something to do.
    for index in core.slots.indexes() {
        if let Some(shard) = core.slots.owned_mut(index) {
            shard.step(step);
        }
    }
    // Pauses end at a time.
    core.policies.names().into_iter().for_each(|name| policies::end(core, name));
}
