//! Direct hand-off: new items are inserted and leased to a waiting poll in one transaction, so that such a
//! delivery takes one commit instead of two.
//!
//! A poll waits only while nothing of its topics is ready. What this batch makes ready may be handed to it
//! if that still holds for the whole node when the batch is built (`dispatch/waiting_polls.rs`), and if the
//! batch makes no other item of the topic ready that the poll should be given first. The poll stops waiting
//! when the batch is built. If the batch does not happen, it waits again at its old place.

use std::{
    collections::{BTreeMap, BTreeSet},
    iter::Peekable,
};

use forebay_store::Sweep;
use forebay_types::{DeliveryPolicy, Key, State, TopicId, TopicName};

use super::{builder::BatchBuilder, lease};
use crate::{
    invariant::broken,
    planted::{Bug, on},
    shard::{
        commit::in_flight::{OperationEffect, PlannedAction, SettleEffect},
        work::{ReservedItem, WaitingPoll, WaitingPolls},
    },
};

/// An item of the batch that may be handed out. Ordered by its place in the delivery order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    key: Key,
    topic: TopicId,
    /// Where its call is in `planned`.
    planned: usize,
    /// Its position in the call.
    index: usize,
}

/// Hands what the batch inserts to the polls that wait for it. Returns those, which wait no more.
pub(super) fn add_handoffs(builder: &mut BatchBuilder<'_>, mut waiting: WaitingPolls) -> BTreeSet<u64> {
    let mut handed_off = BTreeSet::new();
    if waiting.is_empty() {
        return handed_off;
    }
    for (name, mut candidates) in candidates(builder, &waiting) {
        if readies_other_items(builder, candidates[0].topic) && !on(Bug::HandsOffTooEarly) {
            continue;
        }
        candidates.sort_unstable();
        let mut candidates = candidates.into_iter().peekable();
        for poll in waiting.remove(&name).unwrap_or_default() {
            if candidates.peek().is_none() {
                break;
            }
            // A poll that waits for several topics takes what the first of them has.
            if handed_off.insert(poll.lease.poll) {
                hand_off(builder, poll, &mut candidates);
            }
        }
    }
    handed_off
}

/// The batch's new items that somebody waits for, by topic.
fn candidates(builder: &BatchBuilder<'_>, waiting: &WaitingPolls) -> BTreeMap<TopicName, Vec<Candidate>> {
    let mut candidates: BTreeMap<TopicName, Vec<Candidate>> = BTreeMap::new();
    for (number, planned) in builder.planned.iter().enumerate() {
        let PlannedAction::Enqueue { part, results } = planned else { continue };
        for (index, (item, result)) in part.items.iter().zip(results).enumerate() {
            let Ok(stored) = result else { continue };
            if stored.state == State::Ready && item.attributes.policy == DeliveryPolicy::AtLeastOnce {
                let name = TopicName { namespace: part.namespace.clone(), topic: item.topic.clone() };
                if waiting.contains_key(&name) {
                    let (key, topic) = (stored.key, stored.topic);
                    let candidate = Candidate { key, topic, planned: number, index };
                    candidates.entry(name).or_default().push(candidate);
                }
            }
        }
    }
    candidates
}

/// Gives one poll the best of the candidates, up to what it asked for.
fn hand_off(
    builder: &mut BatchBuilder<'_>,
    poll: WaitingPoll,
    candidates: &mut Peekable<impl Iterator<Item = Candidate>>,
) {
    let WaitingPoll { max_items, max_bytes, lease: mut part } = poll;
    let mut bytes = 0;
    while part.items.len() < max_items
        && let Some(&Candidate { key, topic, planned, index }) = candidates.peek()
    {
        let PlannedAction::Enqueue { part: from, results } = &mut builder.planned[planned] else {
            broken("a candidate is a new item");
            break;
        };
        let (item, Ok(stored)) = (&from.items[index], &mut results[index]) else {
            broken("a candidate is stored");
            break;
        };
        bytes += item.body.bytes();
        if !part.items.is_empty() && bytes > max_bytes && !on(Bug::MaxBytesIgnored) {
            break;
        }
        stored.handed_off = true;
        let name = item.topic.clone();
        part.items.push(ReservedItem { demand: 0, topic, name, key, item: item.ready_item() });
        candidates.next();
    }
    let leased = part.items.iter().map(|reserved| lease::begin(builder, &part, reserved)).collect();
    builder.planned.push(PlannedAction::HandOff { part, leased });
}

/// Whether the batch makes other items of a topic ready, which may be better.
fn readies_other_items(builder: &BatchBuilder<'_>, topic: TopicId) -> bool {
    let due = builder.page.as_ref().filter(|planned| planned.page.sweep == Sweep::Due);
    due.is_some_and(|planned| planned.page.rows.iter().any(|row| row.topic == topic))
        || builder.planned.iter().any(|planned| match planned {
            PlannedAction::Settle(settle) => {
                settle.lease.topic == topic && matches!(settle.effect, SettleEffect::Ready(..))
            }
            PlannedAction::Restore(reserved) => reserved.topic == topic,
            PlannedAction::Change(change) => match &change.effect {
                Some(OperationEffect::Updated(updated)) => updated.topic == topic && updated.ready.is_some(),
                _ => false,
            },
            _ => false,
        })
        || builder.operation.as_ref().is_some_and(|planned| {
            let readied = |effect: &OperationEffect| match effect {
                OperationEffect::Redriven(of, ..) => *of == topic,
                OperationEffect::Updated(updated) => updated.topic == topic && updated.ready.is_some(),
                OperationEffect::Purged(..) | OperationEffect::DeadLetterGone(_) => false,
            };
            planned.effects.iter().any(readied)
        })
}
