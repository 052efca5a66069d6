//! A fetch leases items at another node. For its poll it is a share like a lease in a shard of this node.

use std::time::Duration;

use crate::{
    api::{DequeueCall, FetchCall},
    core::{
        Core,
        fetches::{Fetch, PlannedFetch},
        timers::Timer,
    },
    planted::{Bug, on},
};

/// A node that has not answered within this time is late: the poll does without it.
const LATE_AFTER: Duration = Duration::from_millis(250);
/// The same with [`Bug::LateHandedOut`], which shows in late answers alone.
const SOON_LATE_AFTER: Duration = Duration::from_millis(10);

/// After how long a fetch is late.
pub(super) fn late_after() -> Duration {
    if on(Bug::LateHandedOut) { SOON_LATE_AFTER } else { LATE_AFTER }
}

/// Asks a node.
pub(crate) fn begin(core: &mut Core, poll: u64, call: &DequeueCall, planned: PlannedFetch) {
    let (at, id) = (core.time.monotonic(), core.ids.next());
    let PlannedFetch { demand, name, node, address, link, max_items, max_bytes, before, place } = planned;
    let (lease, consumer) = (call.lease, call.consumer.clone());
    let payer = place.payer().cloned();
    let asked = FetchCall { name: name.clone(), max_items, max_bytes, before, lease, consumer, link, payer };
    core.launcher.fetch(id, address.clone(), asked);
    core.timers.set(at.plus(late_after()), Timer::Fetch(id));
    let (began, items) = (at, Vec::new());
    let fetch = Fetch { poll, demand, name, max_items, node, address, began, items, _place: place };
    core.fetches.insert(id, fetch);
}
