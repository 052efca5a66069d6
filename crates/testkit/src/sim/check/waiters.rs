//! FIRST-COME: of the polls that wait for a topic, the one that came first is given an item. Checked in runs
//! without faults.

use forebay_engine::DeliveredItem;
use forebay_types::{ItemId, Topic, topic_covers};

use super::{
    items::{Item, Items, Phase},
    order::taken,
    record::{Finding, RunRecord},
};
use crate::sim::history::{Answer, Call, What};

/// A poll that was answered.
struct Poll<'a> {
    call: &'a Call,
    topics: Vec<&'a Topic>,
    delivered: &'a [DeliveredItem],
    /// The event before which nothing of its answer could be had.
    earliest: u64,
}

pub(super) fn check(record: &RunRecord, items: &Items, found: &mut Vec<Finding>) {
    let polls: Vec<Poll<'_>> = record.calls.iter().filter_map(|call| poll(call, items)).collect();
    for later in &polls {
        for (number, one) in later.delivered.iter().enumerate() {
            let Some((id, phase)) = phase_of(one, items) else { continue };
            // Items that one batch leases go out together: the last item of an answer says no more.
            if number > 0 && later.delivered[number - 1].topic == one.topic {
                continue;
            }
            for earlier in polls.iter().filter(|poll| passed_over(poll, later, &one.topic, phase)) {
                if expires_meanwhile(items, earlier.call) {
                    continue;
                }
                let (first, second) = (earlier.call.start.event, later.call.start.event);
                found.push(("FIRST-COME", format!("{id} went to poll {second}, and {first} came before it")));
            }
        }
    }
}

fn poll<'a>(call: &'a Call, items: &Items) -> Option<Poll<'a>> {
    let What::Dequeue { call: asked, answer: Answer::Done(delivered) } = &call.what else { return None };
    if asked.wait.is_zero() {
        return None;
    }
    let available = delivered.iter().filter_map(|one| {
        let item = items.by_id.get(&one.id)?;
        let at = taken(item, one)?;
        // An item that is stored and leased in one batch was there when the batch was built.
        Some(if at == 0 { item.phases[0].asked.event } else { item.phases[at - 1].done.event })
    });
    let earliest = available.min().unwrap_or(u64::MAX);
    let topics = asked.demands.iter().map(|demand| &demand.topic).collect();
    Some(Poll { call, topics, delivered, earliest })
}

fn phase_of<'a>(delivered: &DeliveredItem, items: &'a Items) -> Option<(ItemId, &'a Phase)> {
    let item: &Item = items.by_id.get(&delivered.id)?;
    Some((item.id, &item.phases[taken(item, delivered)?]))
}

/// Whether a poll waited for the topic before the other came, still waited when the other's item was leased,
/// and had nothing under way that could have kept it from taking the item.
fn passed_over(poll: &Poll<'_>, other: &Poll<'_>, topic: &Topic, leased: &Phase) -> bool {
    poll.call.process == other.call.process
        && poll.call.namespace == other.call.namespace
        && poll.topics.iter().any(|asked| topic_covers(asked, topic))
        && poll.call.start.at < other.call.start.at
        && poll.call.end.at > leased.done.at
        && poll.earliest > leased.asked.event
}

/// An item that expires on its way to a poll leaves it with nothing, and it waits again.
fn expires_meanwhile(items: &Items, call: &Call) -> bool {
    let during = |item: &Item| {
        let of_tenant = item.topic.as_ref().is_some_and(|topic| topic.namespace == call.namespace);
        let mut ends = item.phases.iter().filter_map(|phase| phase.expires_at);
        of_tenant && ends.any(|end| call.start.at <= end && end <= call.end.at)
    };
    items.by_id.values().any(during)
}
