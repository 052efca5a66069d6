//! TIME: no delivery before an item's time or after its expiry, and leases of the requested duration. Where
//! clocks step, by the time of the shard, as its batches recorded it.

use std::{collections::HashMap, time::Duration};

use forebay_types::{Schedule, Timestamp};

use super::{
    deliveries,
    items::{Item, Items},
    record::{Finding, RunRecord},
};
use crate::{fake::Change, sim::history::What};

pub(super) fn check(record: &RunRecord, items: &Items, found: &mut Vec<Finding>) {
    let retention = record.settings.dead_letter_retention;
    items.by_id.values().for_each(|item| in_shard_time(item, retention, found));
    if !record.exact_time {
        return;
    }
    let (earliest, leases) = sent(record);
    for item in items.by_id.values() {
        for phase in &item.phases {
            for change in &phase.changes {
                let at = phase.asked.at;
                match change {
                    Change::Leased(_) => {
                        // An update may have made it due earlier.
                        let before = item.phases.iter().take_while(|it| it.done.event < phase.done.event);
                        let is_updated = before.into_iter().any(|it| it.has_other_values());
                        let from = item.tag.and_then(|tag| earliest.get(&tag)).filter(|_| !is_updated);
                        if from.is_some_and(|from| *from > at) {
                            found.push(("TIME", format!("{} was leased before its time", item.id)));
                        }
                    }
                    Change::Promoted(_) if phase.key.rank > at.as_micros() => {
                        found.push(("TIME", format!("{} became ready before its time", item.id)));
                    }
                    _ => {}
                }
            }
        }
    }
    for (call, delivered) in deliveries::all(record) {
        let What::Dequeue { call: asked, .. } = &call.what else { continue };
        let over = delivered.expires_at.is_some_and(|end| end <= call.end.at);
        if over && !record.stood_still(call) {
            found.push(("TIME", format!("{} was delivered after its end", delivered.id)));
        }
        let Some(end) = delivered.lease_expires_at else { continue };
        let own = items.by_id.get(&delivered.id).and_then(|item| leases.get(&item.tag?)).copied();
        let Some(span) = asked.lease.or(own) else { continue };
        if end < call.start.at.plus(span) || end > call.end.at.plus(span) {
            let id = delivered.id;
            found.push(("TIME", format!("{id} has a lease until {end:?} and not for {span:?}")));
        }
    }
}

/// Rules that must hold by the shard's own time, whatever the clocks do.
fn in_shard_time(item: &Item, retention: Duration, found: &mut Vec<Finding>) {
    let mut last = Timestamp::MIN;
    for phase in &item.phases {
        let (id, time) = (item.id, phase.time);
        if time < last {
            found.push(("TIME", format!("{id}: the shard's time fell from {last:?} to {time:?}")));
        }
        last = time;
        for change in &phase.changes {
            match change {
                Change::Leased(_) if phase.expires_at.is_some_and(|end| end <= time) => {
                    found.push(("TIME", format!("{id} was leased at {time:?}, after its end")));
                }
                Change::Promoted(_) if phase.key.rank > time.as_micros() => {
                    found.push(("TIME", format!("{id} became ready at {time:?}, before its time")));
                }
                Change::DeadLetterDeleted(letter)
                    if retention.is_zero() || letter.died_at.plus(retention) > time =>
                {
                    let died = letter.died_at;
                    found.push(("TIME", format!("{id} died at {died:?} and was deleted at {time:?}")));
                }
                _ => {}
            }
        }
    }
}

/// The earliest delivery time and the lease duration of each item.
fn sent(record: &RunRecord) -> (HashMap<u64, Timestamp>, HashMap<u64, Duration>) {
    let (mut earliest, mut leases) = (HashMap::new(), HashMap::new());
    for call in &record.calls {
        let What::Enqueue { items, .. } = &call.what else { continue };
        for item in items {
            let from = match item.schedule {
                Schedule::Now => call.start.at,
                Schedule::Delay(span) => call.start.at.plus(span),
                Schedule::After(at) => at,
            };
            let known = earliest.entry(item.tag).or_insert(from);
            *known = (*known).min(from);
            leases.insert(item.tag, item.lease);
        }
    }
    (earliest, leases)
}
