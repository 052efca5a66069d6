//! The set of a node's shards changes: shards are added, drained and removed while the node runs.

use std::collections::BTreeSet;

use forebay_types::ShardId;

use super::{lost, record_topology};
use crate::{
    api::{ByIntake, Intake, ListedShard, ShardState},
    calls::dedupe,
    core::Core,
    index::ShardIndex,
};

/// The node has to do with these shards from now on, and with no other.
pub(crate) fn set_shards(core: &mut Core, listed: Vec<ListedShard>) {
    if core.stopping.is_stopping() {
        return;
    }
    let ids: BTreeSet<ShardId> = listed.iter().map(|shard| shard.id).collect();
    let gone = core.slots.entries().filter(|(_, slot)| !ids.contains(&slot.id));
    for index in gone.map(|(index, _)| index).collect::<Vec<_>>() {
        remove(core, index);
    }
    let ByIntake { active, draining } = ByIntake::of(&listed);
    for ListedShard { id, shard, intake } in listed {
        match core.slots.index_of(id) {
            Some(index) => set_intake(core, index, intake),
            None => {
                tracing::info!(shard.id = id.0, "shard {id} ({}) was added", shard.server());
                core.add_shard(id, shard, intake);
            }
        }
    }
    let (now, at) = (core.time.now(), core.time.monotonic());
    core.homes.change(active, draining, now, at);
    record_topology(core);
    dedupe::resume_everywhere(core);
    core.report_served();
}

/// Whether a shard takes new items from now on. What waits in it already is stored.
fn set_intake(core: &mut Core, index: ShardIndex, intake: Intake) {
    if core.slots[index].intake == intake {
        return;
    }
    let slot = &mut core.slots[index];
    slot.intake = intake;
    let id = slot.id;
    match intake {
        Intake::Open => tracing::info!(shard.id = id.0, "shard {id} takes new items again"),
        Intake::Closed => {
            tracing::info!(shard.id = id.0, "shard {id} takes no new items from now on: it is drained");
        }
    }
}

/// A shard is none of the node's any more: whatever waits in it is answered, and its task gives it up.
fn remove(core: &mut Core, index: ShardIndex) {
    let id = core.slots[index].id;
    tracing::info!(shard.id = id.0, "shard {id} was removed");
    core.slots[index].state = ShardState::Stopped;
    // Whether COMMIT of the batch in flight was sent is known to its task alone.
    lost(core, index, true);
    core.slots.remove(index);
}
