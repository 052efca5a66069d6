//! TIME: leases and delays last as long by the true time as they were to by the shard's, whatever clocks do,
//! while the shard has one owner. The next one may not know that the time has stepped.

use std::{collections::HashSet, time::Duration};

use forebay_types::{FailureCause, Schedule, State, Timestamp};

use super::{
    items::{Item, Items, Phase},
    record::{Finding, RunRecord},
};
use crate::{fake::Change, sim::history::What};

/// A span that began.
#[derive(Clone, Copy)]
struct Span {
    /// The true time.
    began: Timestamp,
    /// How long it is, by the shard's time.
    lasts: Duration,
    /// The epoch of the owner.
    epoch: u64,
}

impl Span {
    /// Until `end`, from the time of a batch on.
    fn until(end: Timestamp, phase: &Phase) -> Self {
        Self { began: phase.asked.at, lasts: end.since(phase.time), epoch: phase.epoch }
    }

    /// It ends with a batch. Time runs a tenth too fast at most.
    fn ends(self, what: &str, item: &Item, phase: &Phase, found: &mut Vec<Finding>) {
        let lasted = phase.asked.at.since(self.began);
        if self.epoch == phase.epoch && lasted + Duration::from_millis(2) < self.lasts * 9 / 10 {
            let (id, lasts) = (item.id, self.lasts);
            found.push(("TIME", format!("{id}: a {what} of {lasts:?} lasted {lasted:?}")));
        }
    }
}

pub(super) fn check(record: &RunRecord, items: &Items, found: &mut Vec<Finding>) {
    // A batch that is sent again has the times of its first attempt, and began before it was asked for.
    if !record.sent_once {
        return;
    }
    let delayed = delayed(record);
    for item in items.by_id.values() {
        let is_delayed = item.tag.is_some_and(|tag| delayed.contains(&tag));
        leases(item, found);
        delays(item, is_delayed, found);
    }
}

fn leases(item: &Item, found: &mut Vec<Finding>) {
    let mut open: Option<Span> = None;
    for phase in &item.phases {
        for change in &phase.changes {
            match change {
                Change::Leased(entry) | Change::Moved(entry) => {
                    open = Some(Span::until(entry.deadline, phase));
                }
                Change::Closed(_) => {
                    if let Some(span) = open.take().filter(|_| timed_out(phase)) {
                        span.ends("lease", item, phase, found);
                    }
                }
                _ => {}
            }
        }
    }
}

/// Whether a delivery ended in the batch because nobody ended it.
fn timed_out(phase: &Phase) -> bool {
    phase.changes.iter().any(|change| match change {
        Change::Requeued(requeue) => {
            requeue.failure.as_ref().is_some_and(|failure| failure.cause == FailureCause::LeaseEnded)
        }
        Change::DeadLettered(letter) => letter.failure.cause == FailureCause::LeaseEnded,
        _ => false,
    })
}

/// `is_delayed`: it was enqueued with a delay, and not for a time.
fn delays(item: &Item, is_delayed: bool, found: &mut Vec<Finding>) {
    let mut waits: Option<Span> = None;
    for phase in &item.phases {
        for change in &phase.changes {
            match change {
                Change::Inserted(row) if row.state == State::Scheduled && is_delayed => {
                    waits = Some(Span::until(Timestamp::from_micros(row.key.rank), phase));
                }
                Change::Requeued(requeue) if requeue.state == State::Scheduled => {
                    waits = Some(Span::until(Timestamp::from_micros(requeue.rank), phase));
                }
                Change::Updated(_) | Change::Operated(_) => waits = None,
                Change::Promoted(_) => {
                    if let Some(span) = waits.take() {
                        span.ends("delay", item, phase, found);
                    }
                }
                _ => {}
            }
        }
    }
}

/// The numbers of the items that were enqueued with a delay.
fn delayed(record: &RunRecord) -> HashSet<u64> {
    let mut delayed = HashSet::new();
    for call in &record.calls {
        let What::Enqueue { items, .. } = &call.what else { continue };
        let with_delay = items.iter().filter(|item| matches!(item.schedule, Schedule::Delay(_)));
        delayed.extend(with_delay.map(|item| item.tag));
    }
    delayed
}
