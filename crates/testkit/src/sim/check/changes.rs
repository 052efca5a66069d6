//! CONSERVATION of items that callers cancel: what was cancelled was asked for, what was answered OK is gone,
//! and what was not found was not there.

use std::collections::{HashMap, HashSet};

use forebay_engine::{ItemChange, ItemState};
use forebay_types::{DeliveryPolicy, ItemId, Reason, Refusal};

use super::{
    items::{Item, Items, Location, Phase},
    record::{Finding, RunRecord},
};
use crate::{
    fake::Change,
    sim::history::{Call, CallerKnowledge, What},
};

const NAME: &str = "CONSERVATION";

pub(super) fn check(record: &RunRecord, items: &Items, found: &mut Vec<Finding>) {
    // When each item was asked to be cancelled, by calls that may have done it.
    let mut asked: HashMap<ItemId, Vec<u64>> = HashMap::new();
    let mut done = HashSet::new();
    for call in &record.calls {
        let What::Change { call: change, answer } = &call.what else { continue };
        if change.change != ItemChange::Cancel {
            continue;
        }
        for (at, id) in change.items.iter().enumerate() {
            let item = items.by_id.get(id).filter(|item| is_of(item, call));
            match (answer.member(at), item) {
                (Some(Ok(state)), Some(item)) if done.insert(*id) => cancelled(call, item, *state, found),
                (Some(Ok(_)), _) => {
                    let why = "was cancelled twice, or is of another tenant";
                    found.push((NAME, format!("item {id} {why}: call {}", call.start.event)));
                }
                (Some(Err(refusal)), Some(item)) => not_found(call, item, refusal, found),
                _ => {}
            }
            if answer.known(at) != CallerKnowledge::Not && item.is_some() {
                asked.entry(*id).or_default().push(call.start.event);
            }
        }
    }
    for (id, item) in &items.by_id {
        for phase in item.phases.iter().filter(|phase| is_cancel(phase)) {
            let before = |start: &u64| *start < phase.done.event;
            if !asked.get(id).is_some_and(|starts| starts.iter().any(before)) {
                let when = phase.done.event;
                found.push((NAME, format!("item {id} was cancelled at {when}, and nobody had asked for it")));
            }
        }
    }
}

pub(super) fn is_of(item: &Item, call: &Call) -> bool {
    item.topic.as_ref().is_some_and(|topic| topic.namespace == call.namespace)
}

fn is_cancel(phase: &Phase) -> bool {
    let is = |change: &Change| matches!(change, Change::Cancelled(_) | Change::DeadLetterCancelled(_));
    phase.changes.iter().any(is)
}

/// An item that was answered OK was removed during the call, from the state that was told.
fn cancelled(call: &Call, item: &Item, state: ItemState, found: &mut Vec<Finding>) {
    let during = |phase: &Phase| {
        is_cancel(phase) && phase.done.event > call.start.event && phase.done.event < call.end.event
    };
    let name = format!("item {} of call {}", item.id, call.start.event);
    let Some(at) = item.phases.iter().position(during).filter(|at| *at > 0) else {
        return found.push((NAME, format!("{name} was answered as cancelled, and was not")));
    };
    let before = &item.phases[at - 1];
    let was = match (before.location, before.lease.is_some()) {
        (_, true) => Some(ItemState::Leased),
        (Location::Ready, false) => Some(ItemState::Ready),
        (Location::Scheduled, false) => Some(ItemState::Scheduled),
        (Location::Dead, false) => Some(ItemState::Dead),
        (Location::Absent, false) => None,
    };
    if was != Some(state) {
        found.push((NAME, format!("{name} was answered as {state:?}, and was {was:?}")));
    }
}

/// An item that was not found was not there at some moment of the call.
pub(super) fn not_found(call: &Call, item: &Item, refusal: &Refusal, found: &mut Vec<Finding>) {
    // One that is delivered at most once may come back.
    if refusal.reason != Reason::ItemNotFound || item.policy == DeliveryPolicy::AtMostOnce {
        return;
    }
    let mut during = item.between(call.start.event, call.end.event);
    // An item that has expired waits for its sweep alone.
    let gone = |phase: &Phase| {
        phase.location == Location::Absent || phase.expires_at.is_some_and(|end| end <= call.end.at)
    };
    if !during.any(gone) {
        let name = format!("item {} of call {}", item.id, call.start.event);
        found.push((NAME, format!("{name} was not found, and was there")));
    }
}
