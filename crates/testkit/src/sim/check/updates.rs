//! AS-ASKED for updates of items: what was answered OK was done during the call, each update was asked for,
//! and an item that was refused as leased or dead was that.

use std::collections::HashMap;

use forebay_engine::{ItemChange, ItemState, ItemUpdate};
use forebay_types::{ItemId, Reason, Refusal, Schedule};

use super::{
    changes,
    items::{Item, Items, Location, Phase},
    record::{Finding, RunRecord},
};
use crate::sim::history::{Call, CallerKnowledge, What};

const NAME: &str = "AS-ASKED";

pub(super) fn check(record: &RunRecord, items: &Items, found: &mut Vec<Finding>) {
    // Updates that were asked for each item, by calls that may have done them.
    let mut asked: HashMap<ItemId, Vec<(u64, &ItemUpdate)>> = HashMap::new();
    for call in &record.calls {
        let What::Change { call: change, answer } = &call.what else { continue };
        let ItemChange::Update(update) = &change.change else { continue };
        for (at, id) in change.items.iter().enumerate() {
            let item = items.by_id.get(id).filter(|item| changes::is_of(item, call));
            match (answer.member(at), item) {
                (Some(Ok(state)), Some(item)) => updated(call, item, update, *state, found),
                (Some(Ok(_)), None) => {
                    let event = call.start.event;
                    found.push((NAME, format!("item {id} of another tenant was updated: call {event}")));
                }
                (Some(Err(refusal)), Some(item)) => {
                    changes::not_found(call, item, refusal, found);
                    refused(call, item, refusal, found);
                }
                _ => {}
            }
            if answer.known(at) != CallerKnowledge::Not && item.is_some() {
                asked.entry(*id).or_default().push((call.start.event, update));
            }
        }
    }
    for (id, item) in &items.by_id {
        for at in (1..item.phases.len()).filter(|at| item.phases[*at].updated().is_some()) {
            let event = item.phases[at].done.event;
            let is_it = |(start, update): &(u64, &ItemUpdate)| *start < event && is_done(item, at, update);
            if !asked.get(id).is_some_and(|updates| updates.iter().any(is_it)) {
                found.push((NAME, format!("item {id} was updated at {event}, and nobody had asked for it")));
            }
        }
    }
}

/// An item that was answered OK got its values during the call, and was then in the state that was told.
fn updated(call: &Call, item: &Item, update: &ItemUpdate, state: ItemState, found: &mut Vec<Finding>) {
    let is_it = |at: &usize| {
        let done = item.phases[*at].done.event;
        done > call.start.event && done < call.end.event && is_done(item, *at, update)
    };
    let name = format!("item {} of call {}", item.id, call.start.event);
    let Some(at) = (1..item.phases.len()).find(is_it) else {
        return found.push((NAME, format!("{name} was answered as updated with {update:?}, and was not")));
    };
    let is = match item.phases[at].location {
        Location::Ready => Some(ItemState::Ready),
        Location::Scheduled => Some(ItemState::Scheduled),
        Location::Absent | Location::Dead => None,
    };
    if is != Some(state) {
        found.push((NAME, format!("{name} was answered as {state:?}, and is {is:?}")));
    }
}

/// Whether a phase is this update of the one before it.
fn is_done(item: &Item, at: usize, update: &ItemUpdate) -> bool {
    let (before, after) = (&item.phases[at - 1], &item.phases[at]);
    let ItemUpdate { priority, schedule, metadata, ttl } = update;
    let Some(row) = after.updated() else { return false };
    let as_it_was = (before.location, before.key.rank);
    let is = (after.location, after.key.rank);
    let due = schedule.map(|schedule| match schedule {
        Schedule::Now => after.time,
        Schedule::Delay(delay) => after.time.plus(delay),
        Schedule::After(time) => time,
    });
    let place = match due {
        None => as_it_was,
        Some(due) if due > after.time => (Location::Scheduled, due.as_micros()),
        // A ready one is moved nowhere.
        Some(_) if before.location == Location::Ready => as_it_was,
        Some(_) => (Location::Ready, after.time.as_micros()),
    };
    is == place
        && row.key.priority == priority.unwrap_or(before.key.priority)
        && row.body.metadata == metadata.as_ref().unwrap_or(&before.metadata)
        && row.attributes.expires_at == ttl.map(|ttl| after.time.plus(ttl)).or(before.expires_at)
}

/// An item that was refused as leased or dead was so at some moment of the call.
fn refused(call: &Call, item: &Item, refusal: &Refusal, found: &mut Vec<Finding>) {
    let was: fn(&Phase) -> bool = match refusal.reason {
        Reason::ItemLeased => |phase| phase.lease.is_some(),
        Reason::ItemDead => |phase| phase.location == Location::Dead,
        _ => return,
    };
    if !item.between(call.start.event, call.end.event).any(was) {
        let (name, why) = (call.start.event, refusal.reason.as_str());
        found.push((NAME, format!("item {} of call {name} was refused as {why}, and was not", item.id)));
    }
}
