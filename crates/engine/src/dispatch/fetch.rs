//! A fetch leases items at another node. For its poll it is a share like a lease in a shard of this node.

use std::time::Duration;

use crate::{
    api::{DequeueCall, FetchCall},
    core::{
        Core,
        fetches::{Fetch, PlannedFetch},
        polls::Share,
        timers::Timer,
    },
};

/// A node that has not answered within this time is late: the poll does without it.
const LATE_AFTER: Duration = Duration::from_millis(250);

/// Asks a node. Returns the share of the poll. `None`: the node is gone.
pub(crate) fn begin(core: &mut Core, poll: u64, call: &DequeueCall, planned: PlannedFetch) -> Option<Share> {
    let (at, id) = (core.time.monotonic(), core.ids.next());
    let PlannedFetch { demand, name, node: index, max_items, max_bytes, before, place } = planned;
    let node = core.remote.node_mut(index)?;
    let (lease, consumer, link) = (call.lease, call.consumer.clone(), node.link);
    let asked = FetchCall { name: name.clone(), max_items, max_bytes, before, lease, consumer, link };
    let address = node.address.clone();
    core.launcher.fetch(id, address.clone(), asked);
    core.timers.set(at.plus(LATE_AFTER), Timer::Fetch(id));
    let fetch = Fetch {
        poll,
        demand,
        name,
        max_items,
        node: index,
        address,
        began: at,
        items: Vec::new(),
        _place: place,
    };
    core.fetches.insert(id, fetch);
    Some(Share::Fetch(id))
}
