//! Looks dedupe keys and request ids up before their items are stored: at their earlier homes first, if they
//! have any, then at their home shard. One key is in flight once at a time.

mod answer;
mod plan;

use std::collections::HashMap;

use forebay_store::StoreError;
use forebay_types::Refusal;

use self::{
    answer::free,
    plan::{LookupPlan, plan, unavailable},
};
use crate::{
    api::{KeyQuestion, RememberedKey},
    core::{
        Core,
        lookups::{DedupeLookup, FoundKey, LookupTarget, Question},
        slot::Slot,
    },
    index::ShardIndex,
    invariant::broken,
    shard::work::{AdmittedItem, KeyHash, ShardEnqueue},
};

/// Enqueues of one shard that try again in one turn.
const RESUMED_PER_TURN_MAX: usize = 64;

/// Queues an enqueue for the next batch, after a lookup where a key or a request id asks for one. It was
/// charged.
pub(crate) fn accept(core: &mut Core, index: ShardIndex, part: ShardEnqueue) {
    if part.items.iter().all(|item| item.dedupe.is_none()) {
        return accept_distinct(core, index, part, false);
    }
    // A second item with the same key in one call is a part of its own, behind the first.
    let ShardEnqueue { call, namespace, mut request, items } = part;
    let mut copies: HashMap<KeyHash, usize> = HashMap::new();
    let mut parts: Vec<Vec<AdmittedItem>> = Vec::new();
    for item in items {
        let copy = item.dedupe.map_or(0, |key| {
            let count = copies.entry(key.own).or_default();
            *count += 1;
            *count - 1
        });
        if parts.len() <= copy {
            parts.push(Vec::new());
        }
        parts[copy].push(item);
    }
    for items in parts {
        let part = ShardEnqueue { call, namespace: namespace.clone(), request: request.take(), items };
        accept_distinct(core, index, part, false);
    }
}

/// Queues an enqueue whose keys are distinct. `has_waited`: it has waited for one of them.
fn accept_distinct(core: &mut Core, index: ShardIndex, part: ShardEnqueue, has_waited: bool) {
    let now = core.time.now();
    let keys = part.keys();
    let Some(shard) = core.slots.owned_mut(index) else {
        return refuse(core, index, part);
    };
    if keys.is_empty() {
        return shard.enqueue(part);
    }
    if let Some(key) = shard.key_to_wait_for(&keys, has_waited) {
        return shard.wait_for_key(key, part);
    }
    if !shard.takes_keys(now) {
        return shard.pause_for_keys(part);
    }
    let names_shard = part.request.is_some_and(|request| request.names_shard);
    // Keys that are on their way are stored before the new set is recorded, and no others.
    if !names_shard && shard.changes_homes() {
        return shard.pause_for_keys(part);
    }
    let id = core.slots[index].id;
    let plan = match part.homes().iter().all(|key| core.homes.home(key) == Some(id)) {
        _ if names_shard => plan::of_named_shard(core, index, &part),
        true => plan(core, index, &part),
        false => LookupPlan::Unavailable(unavailable(format!(
            "shard {id} is no longer the home of the key, because shards were added or drained"
        ))),
    };
    let Some(shard) = core.slots.owned_mut(index) else { return refuse(core, index, part) };
    match plan {
        LookupPlan::Wait => shard.pause_for_keys(part),
        LookupPlan::Unavailable(refusal) => {
            shard.hold_keys(&keys);
            refuse_with(core, index, part, &refusal);
        }
        LookupPlan::Ask(to_ask) => {
            shard.hold_keys(&keys);
            ask(core, part, DedupeLookup { home: index, to_ask, asked: None, hits: Vec::new() });
        }
    }
}

/// Asks the next shard. Its answer is reported in the name of the home shard.
fn ask(core: &mut Core, part: ShardEnqueue, mut lookup: DedupeLookup) {
    let home = lookup.home;
    let Some(Question { whom, keys }) = lookup.to_ask.pop_front() else {
        return answer::duplicates(core, part, lookup);
    };
    let read = core.ids.next();
    let Some(reads) = core.slots[home].holding.as_ref().map(|holding| &holding.reads) else {
        return refuse(core, home, part);
    };
    let events = reads.events.clone();
    match &whom {
        LookupTarget::Here { shard, .. } => {
            let Some(there) = &core.slots[*shard].holding else { return refuse(core, home, part) };
            there.reads.reporting_to(events).dedupe(read, there.shard.generations(), keys);
        }
        LookupTarget::Elsewhere { shard, address } => {
            let homes = core.homes.current().to_vec();
            let question = KeyQuestion { shard: *shard, homes, keys };
            core.launcher.find_keys(events, read, address.clone(), question);
        }
    }
    lookup.asked = Some(whom);
    if let Some(shard) = core.slots.owned_mut(home) {
        shard.begin_lookup(read, part);
        core.lookups.begin(read, lookup);
    }
}

/// The enqueue and the lookup whose read has ended.
fn end(core: &mut Core, home: ShardIndex, read: u64) -> Option<(ShardEnqueue, DedupeLookup)> {
    let part = core.slots.owned_mut(home).and_then(|shard| shard.end_lookup(read));
    match (part, core.lookups.end(read)) {
        (Some(part), Some(lookup)) => Some((part, lookup)),
        // It was refused, because the shard has not committed for long.
        (None, None) => None,
        _ => {
            broken("a lookup that is answered is under way");
            None
        }
    }
}

/// A shard of this node answered.
pub(crate) fn looked_up(
    core: &mut Core,
    home: ShardIndex,
    read: u64,
    hits: Result<Vec<RememberedKey>, StoreError>,
) {
    let at = core.time.monotonic();
    let Some((part, mut lookup)) = end(core, home, read) else { return };
    let Some(LookupTarget::Here { shard, term: asked_term }) = lookup.asked else {
        return broken("a shard that was read was asked");
    };
    let Slot { id, term, holding, health, .. } = &mut core.slots[shard];
    // Nothing is written for a repeated answer, so it is given only while no other node can own the shard.
    let owner = holding.as_ref().filter(|_| *term == asked_term);
    let trusted = owner.is_some_and(|holding| holding.shard.is_trusted(at));
    match hits {
        Ok(hits) if trusted => lookup.hits.extend(hits.into_iter().map(|key| FoundKey { shard: *id, key })),
        Ok(_) => return refuse(core, home, part),
        Err(error) => {
            health.read_failed(&error, at);
            return refuse(core, home, part);
        }
    }
    ask(core, part, lookup);
}

/// Another node said what its shard remembers, or can't say.
pub(crate) fn told(core: &mut Core, home: ShardIndex, read: u64, hits: Option<Vec<RememberedKey>>) {
    let Some((part, mut lookup)) = end(core, home, read) else { return };
    let Some(LookupTarget::Elsewhere { shard, address }) = lookup.asked.take() else {
        return broken("a node that answers was asked");
    };
    let Some(hits) = hits else {
        let refusal = unavailable(format!(
            "shard {shard}, which may know the key, can't be asked at {address} for now"
        ));
        return refuse_with(core, home, part, &refusal);
    };
    lookup.hits.extend(hits.into_iter().map(|key| FoundKey { shard, key }));
    ask(core, part, lookup);
}

/// Every item is refused, because the shard can't say what it holds.
fn refuse(core: &mut Core, index: ShardIndex, part: ShardEnqueue) {
    let refusal = core.slots[index].refusal();
    refuse_with(core, index, part, &refusal);
}

fn refuse_with(core: &mut Core, index: ShardIndex, part: ShardEnqueue, refusal: &Refusal) {
    for item in &part.items {
        core.calls.enqueue_done(part.call, item.index, Err(refusal.clone()));
    }
    free(core, index, &part);
}

/// Enqueues that waited for a key, or for a generation, try again: some now, the others in the next turn.
pub(crate) fn resume(core: &mut Core, index: ShardIndex) {
    for _ in 0..RESUMED_PER_TURN_MAX {
        let resumed = core.slots.owned_mut(index).and_then(|shard| shard.next_resumed());
        let Some(part) = resumed else { return };
        let keys = part.keys();
        accept_distinct(core, index, part, true);
        if let Some(shard) = core.slots.owned_mut(index) {
            shard.tried_keys(&keys);
        }
    }
}

/// The set of shards was recorded, or a shard was lost: the enqueues of every shard that waited for that try
/// again.
pub(crate) fn resume_everywhere(core: &mut Core) {
    for index in core.slots.indexes() {
        if let Some(shard) = core.slots.owned_mut(index) {
            shard.resume_keys();
        }
    }
}
