//! GRACE: after a change of owner, leases are not timed out for a second at least: acks that were on their
//! way come first.

use std::time::Duration;

use forebay_types::State;

use super::{
    items::{Items, Phase},
    record::{Finding, RunRecord},
};
use crate::fake::Change;

/// So long leases are left alone at least. Clocks may run slightly fast.
const GRACE: Duration = Duration::from_millis(900);

pub(super) fn check(record: &RunRecord, items: &Items, found: &mut Vec<Finding>) {
    for item in items.by_id.values() {
        let shard = record.shards.iter().find(|shard| shard.id == item.id.shard);
        let owners = shard.map_or(&[][..], |shard| &shard.owners);
        for (at, phase) in item.phases.iter().enumerate().filter(|(_, phase)| timed_out(phase)) {
            let Some(owner) = owners.iter().find(|owner| owner.epoch == phase.epoch) else { continue };
            if phase.asked.at < owner.done.at.plus(GRACE) {
                let delivery = item.phases[..at].iter().filter(|phase| phase.lease.is_some()).count();
                let (id, after) = (item.id, phase.asked.at.since(owner.done.at));
                let what = format!("{id}: lease {delivery} was timed out {after:?} after a take-over");
                found.push(("GRACE", what));
            }
        }
    }
}

/// Whether the batch ended a delivery because its lease ran out. Such an item is ready since the lease's end.
fn timed_out(phase: &Phase) -> bool {
    let mut closed = phase.changes.iter().filter_map(|change| match change {
        Change::Closed(entry) => Some(entry.deadline),
        _ => None,
    });
    closed.any(|deadline| {
        phase.changes.iter().any(|change| match change {
            Change::Requeued(requeue) => {
                requeue.state == State::Ready && requeue.rank == deadline.as_micros()
            }
            Change::DeadLettered(letter) => letter.reason == "lease ended",
            _ => false,
        })
    })
}
