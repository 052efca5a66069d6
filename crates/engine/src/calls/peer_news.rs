//! The load of shards: that of this node's own is told to other nodes, and theirs is taken in.

use crate::{
    api::{PeerNews, ShardLoad},
    core::{Core, slot::Slot},
};

/// The load of the shards that this node owns.
pub(crate) fn own_loads(core: &Core) -> Vec<ShardLoad> {
    let at = core.time.monotonic();
    let load = |slot: &Slot| {
        let owned = slot.owned()?;
        Some(ShardLoad {
            shard: slot.id,
            rows: owned.backlog(),
            bytes: owned.waiting_bytes(),
            takes_items: slot.is_healthy() && !core.stopping.is_stopping() && owned.takes_items(at),
        })
    };
    core.slots.iter().filter_map(load).collect()
}

/// Another node tells something. Shards that it does not serve, as far as is known, are left out.
pub(crate) fn take_in(core: &mut Core, news: PeerNews) {
    let at = core.time.monotonic();
    match news {
        PeerNews::Nodes(nodes) => {
            core.remote.retain(&nodes);
            core.peer_loads.set_nodes(nodes);
            core.report_served();
        }
        PeerNews::Linked { node, link } => {
            core.remote.link(node, link);
            core.report_served();
        }
        PeerNews::Unlinked(node) => {
            core.remote.unlink(&node);
            core.report_served();
        }
        PeerNews::Heads { node, heads } => {
            for head in heads {
                if core.remote.take_in(&node, &head) {
                    core.topics.wake_if_waiting(&head.name);
                }
            }
        }
        PeerNews::Older(node) => core.peer_loads.is_older(&node),
        PeerNews::Loads { node, loads } => {
            let slots = &core.slots;
            let is_served_there = |load: &ShardLoad| {
                slots.index_of(load.shard).is_some_and(|index| slots[index].is_served_at(&node))
            };
            core.peer_loads.report(&node, loads.into_iter().filter(is_served_there), at);
        }
    }
}
