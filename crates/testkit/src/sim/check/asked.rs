//! AS-ASKED: what was done is what the caller asked for. Deliveries obey `max_items`, `max_bytes`, the order
//! of the demands, the lease and the wait. An item goes back as its nack said. A lease is extended by its
//! span.

use std::time::Duration;

use forebay_engine::{DeliveredItem, DequeueCall, ExtendOf, NackAction, NackOf, Settlement};
use forebay_types::{Timestamp, topic_covers};

use super::{
    deliveries,
    items::{Item, Items, Phase},
    record::{Finding, RunRecord},
};
use crate::{
    fake::{Change, Moment},
    sim::history::{Answer, Call, What},
};

/// How long after its wait a poll may be answered in a run without faults: a shard's head that is not known
/// is waited for, and a commit takes its time.
const ANSWER_AFTER_WAIT_MAX: Duration = Duration::from_millis(120);

const NAME: &str = "AS-ASKED";

pub(super) fn check(record: &RunRecord, items: &Items, found: &mut Vec<Finding>) {
    for call in &record.calls {
        match &call.what {
            What::Dequeue { call: asked, answer: Answer::Done(delivered) } => {
                within_limits(call, asked, delivered, found);
                waited(record, call, asked, delivered, found);
            }
            What::Nack { nacks, answer } => {
                for (at, nack) in nacks.iter().enumerate() {
                    if let Some(Ok(done)) = answer.member(at) {
                        nacked(call, nack, *done, items, found);
                    }
                }
            }
            What::Extend { extensions, answer } => {
                for (at, extension) in extensions.iter().enumerate() {
                    if let Some(Ok(end)) = answer.member(at) {
                        extended(record, call, extension, *end, items, found);
                    }
                }
            }
            _ => {}
        }
    }
    for (call, delivered) in deliveries::all(record) {
        as_stored(call, delivered, items, found);
    }
}

/// An answer has no more than was asked for, in the order of the demands.
fn within_limits(call: &Call, asked: &DequeueCall, delivered: &[DeliveredItem], found: &mut Vec<Finding>) {
    let name = format!("call {}", call.start.event);
    let mut demands = asked.demands.iter();
    let mut of_topic = None;
    for one in delivered {
        if of_topic.is_none_or(|(topic, _, _)| !topic_covers(topic, &one.topic)) {
            let Some(demand) = demands.find(|demand| topic_covers(&demand.topic, &one.topic)) else {
                return found.push((NAME, format!("{name} was answered {} out of order", one.topic)));
            };
            of_topic = Some((&demand.topic, demand.max_items, 0));
        }
        if let Some((topic, most, count)) = &mut of_topic {
            *count += 1;
            if *count == *most + 1 {
                found.push((NAME, format!("{name} was given more than {most} items of {topic}")));
            }
        }
    }
    let bytes: usize = delivered.iter().map(|one| one.body.bytes()).sum();
    if bytes > asked.max_bytes && delivered.len() > 1 {
        found.push((NAME, format!("{name} was given {bytes} bytes, and asked for {}", asked.max_bytes)));
    }
}

/// A poll is not answered empty before its wait is over, nor long after it.
fn waited(
    record: &RunRecord,
    call: &Call,
    asked: &DequeueCall,
    delivered: &[DeliveredItem],
    found: &mut Vec<Finding>,
) {
    let span = call.end.at.since(call.start.at);
    let stopping =
        record.told.iter().any(|(process, told)| *process == call.process && told.event < call.end.event);
    if delivered.is_empty() && span < asked.wait && !stopping {
        let (name, wait) = (call.start.event, asked.wait);
        found
            .push((NAME, format!("poll {name} was answered empty after {span:?}, and was to wait {wait:?}")));
    }
    if record.strict && span > asked.wait + ANSWER_AFTER_WAIT_MAX {
        let (name, wait) = (call.start.event, asked.wait);
        found.push((NAME, format!("poll {name} was answered after {span:?}, and was to wait {wait:?}")));
    }
}

/// A nack that was answered OK: the item went where it said, with what it said.
fn nacked(call: &Call, nack: &NackOf, done: Settlement, items: &Items, found: &mut Vec<Finding>) {
    let receipt = nack.receipt;
    let Some(item) = items.by_id.get(&receipt.item) else { return };
    let Some(lease) = items.leases.get(&(receipt.item, receipt.nonce)) else { return };
    let Some(phase) = lease.closed.map(|closed| &item.phases[closed]) else { return };
    let mut wrong = |what: String| {
        let name = format!("{}.{} in call {}", receipt.item, receipt.delivery, call.start.event);
        found.push((NAME, format!("{name}: {what}")));
    };
    for change in &phase.changes {
        match change {
            Change::Requeued(requeue) => {
                if requeue.metadata != nack.metadata {
                    wrong(format!("the metadata {:?} became {:?}", nack.metadata, requeue.metadata));
                }
                let rank = Timestamp::from_micros(requeue.rank);
                match nack.action {
                    NackAction::Release(Duration::ZERO) if requeue.rank != lease.entry.rank => {
                        wrong(format!("a release lost its place {} for {}", lease.entry.rank, requeue.rank));
                    }
                    NackAction::Release(Duration::ZERO) | NackAction::DeadLetter => {}
                    // Nothing is set for topics here.
                    NackAction::Fail(None) => {}
                    NackAction::Fail(Some(delay)) | NackAction::Release(delay) => {
                        let (cut, time) = (cut_to(phase, delay), phase.time);
                        let holds = match cut {
                            Some(cut) => rank == cut,
                            None => counts_from_commit(call.start, phase, rank, delay),
                        };
                        if !holds {
                            wrong(format!(
                                "is due at {rank:?}, {delay:?} after a nack at {time:?}, cut: {cut:?}"
                            ));
                        }
                        if done.delay_cut != cut.is_some() {
                            wrong(format!("was answered {done:?}, and its delay was cut: {cut:?}"));
                        }
                    }
                }
            }
            Change::DeadLettered(letter) => {
                let reason = match nack.action {
                    NackAction::DeadLetter => "dead-lettered",
                    NackAction::Fail(Some(delay))
                        if letter.failures < item.max_attempts && cut_to(phase, delay).is_some() =>
                    {
                        "expired while failing"
                    }
                    _ => "nacked",
                };
                if (letter.reason.as_str(), &letter.last_error) != (reason, &nack.reason) {
                    let (why, error) = (&letter.reason, &letter.last_error);
                    let asked = &nack.reason;
                    wrong(format!("is dead for {why:?} with {error:?}, not {reason:?} with {asked:?}"));
                }
                if letter.metadata != nack.metadata {
                    wrong(format!("the metadata {:?} became {:?}", nack.metadata, letter.metadata));
                }
                if letter.died_at != phase.time {
                    wrong(format!("died at {:?}, and its batch says {:?}", letter.died_at, phase.time));
                }
            }
            _ => {}
        }
    }
}

/// When an item that waits for a delay would be back, if it expires before its end: half-way there.
fn cut_to(phase: &Phase, delay: Duration) -> Option<Timestamp> {
    let end = phase.expires_at.filter(|end| *end <= phase.time.plus(delay))?;
    Some(phase.time.plus(end.since(phase.time) / 2))
}

/// An extension that was answered OK: the lease ends the asked span after its commit. Of extensions that are
/// committed together the last one counts, and all are answered with its end.
fn extended(
    record: &RunRecord,
    call: &Call,
    asked: &ExtendOf,
    end: Timestamp,
    items: &Items,
    found: &mut Vec<Finding>,
) {
    let receipt = asked.receipt;
    let Some(item) = items.by_id.get(&receipt.item) else { return };
    let Some(span) = asked.lease.or(own_lease(items, item, receipt.nonce)) else { return };
    let moved = |phase: &&Phase| {
        let during = phase.done.event > call.start.event && phase.done.event < call.end.event;
        let stands = |change: &Change| match change {
            Change::Moved(entry) => entry.nonce == receipt.nonce && entry.deadline == end,
            _ => false,
        };
        during && phase.changes.iter().any(stands)
    };
    // A lease that is not in the log is found elsewhere.
    let mut phases = item.phases.iter().filter(moved).peekable();
    if phases.peek().is_none() || phases.any(|phase| counts_from_commit(call.start, phase, end, span)) {
        return;
    }
    let own = own_lease(items, item, receipt.nonce);
    let asked_too = |other: &Call| {
        let What::Extend { extensions, .. } = &other.what else { return false };
        let same = extensions.iter().filter(|extension| extension.receipt == receipt);
        same.filter_map(|extension| extension.lease.or(own)).any(|span| {
            let mut phases = item.phases.iter().filter(moved);
            phases.any(|phase| counts_from_commit(other.start, phase, end, span))
        })
    };
    if !record.calls.iter().any(asked_too) {
        let name = format!("{}.{} in call {}", receipt.item, receipt.delivery, call.start.event);
        found.push((NAME, format!("{name} was extended until {end:?} and not by {span:?}")));
    }
}

/// A delivery carries what is stored: metadata and priority as the last nack or update left them, the
/// consumer, the lease.
fn as_stored(call: &Call, delivered: &DeliveredItem, items: &Items, found: &mut Vec<Finding>) {
    let What::Dequeue { call: asked, .. } = &call.what else { return };
    let Some(item) = items.by_id.get(&delivered.id) else { return };
    let Some(receipt) = delivered.receipt else { return };
    let Some(lease) = items.leases.get(&(receipt.item, receipt.nonce)) else { return };
    let phase = &item.phases[lease.opened];
    let name = format!("{}.{} in call {}", delivered.id, delivered.attempt, call.start.event);
    if delivered.body.metadata != phase.metadata {
        let (given, stored) = (&delivered.body.metadata, &phase.metadata);
        found.push((NAME, format!("{name} came with the metadata {given:?}, and {stored:?} is stored")));
    }
    if delivered.priority != phase.key.priority {
        let (given, stored) = (delivered.priority, phase.key.priority);
        found.push((NAME, format!("{name} came with the priority {given}, and {stored} is stored")));
    }
    if lease.entry.consumer != asked.consumer {
        found.push((
            NAME,
            format!("{name} is leased to {:?}, not {:?}", lease.entry.consumer, asked.consumer),
        ));
    }
    let span = asked.lease.unwrap_or(lease.entry.attributes.lease());
    if !counts_from_commit(call.start, phase, lease.entry.deadline, span) {
        let (end, time) = (lease.entry.deadline, phase.time);
        found.push((NAME, format!("{name} is leased until {end:?}, {span:?} after {time:?}")));
    }
}

/// The lease duration that the item itself names.
fn own_lease(items: &Items, item: &Item, nonce: u64) -> Option<Duration> {
    items.leases.get(&(item.id, nonce)).map(|lease| lease.entry.attributes.lease())
}

/// Whether a time is a span after the shard's time, read between the start of a call and the commit.
fn counts_from_commit(start: Moment, phase: &Phase, time: Timestamp, span: Duration) -> bool {
    let from = time.minus(span);
    let took = phase.done.at.since(start.at);
    phase.time.minus(took) <= from && from <= phase.time
}
