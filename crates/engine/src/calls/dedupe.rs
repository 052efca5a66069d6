//! Looks dedupe keys and request ids up before their items are stored: at their earlier homes first, if they
//! have any, then at their home shard. One key is in flight once at a time.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    time::{Duration, UNIX_EPOCH},
};

use forebay_store::{DedupeHit, StoreError};
use forebay_types::{ItemId, Reason, Refusal, Seq, ShardId, Timestamp};

use crate::{
    api::{Enqueued, KeyQuestion, RETRY_AFTER},
    core::{
        Core,
        fates::Fate,
        lookups::{Asked, DedupeLookup, FoundKey},
        pending_calls::PendingCalls,
        slot::Slot,
    },
    index::ShardIndex,
    invariant::broken,
    planted::{Bug, on},
    routing::key_homes::KeyHomes,
    shard::{
        OwnedShard, decode_answer,
        work::{AdmittedItem, KeyHash, ShardEnqueue},
    },
};

/// Whom to ask for keys.
enum LookupPlan {
    /// These shards, in turn.
    Ask(VecDeque<Asked>),
    /// A shard is just recording the current set of shards.
    Wait,
    /// One of them does not answer, as this says.
    Unavailable(Refusal),
}

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
            let count = copies.entry(key).or_default();
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
    // Keys that are on their way are stored before the new set is recorded, and no others.
    if shard.changes_homes() {
        return shard.pause_for_keys(part);
    }
    let id = core.slots[index].id;
    let plan = match keys.iter().all(|key| core.homes.home(key) == Some(id)) {
        true => plan(core, index, &keys),
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

/// Whom to ask for these keys.
fn plan(core: &mut Core, home: ShardIndex, keys: &[KeyHash]) -> LookupPlan {
    let (now, at) = (core.time.now(), core.time.monotonic());
    let slots = &core.slots;
    if !core.homes.is_complete(now, at, |id| slots.is_silent(id)) {
        return until_recorded(core, now);
    }
    let now = core.slots.owned(home).map_or(now, |shard| shard.key_time(now));
    let mut to_ask = VecDeque::new();
    for id in core.homes.earlier_homes(keys, now) {
        let Some(earlier) = core.slots.index_of(id) else {
            return LookupPlan::Unavailable(removed(&mut core.homes, id, now));
        };
        // Once it has recorded the current set, it stores no key any more whose home is elsewhere.
        let slot = &core.slots[earlier];
        match slot.owned() {
            Some(shard) if shard.is_recording_topology() => return LookupPlan::Wait,
            Some(_) => to_ask.push_back(Asked::Here { shard: earlier, term: slot.term }),
            None if on(Bug::EarlierHomesElsewhereForgotten) => {}
            // The call itself is in the right place, so nobody is named who should have it instead.
            None if slot.owner.is_empty() => {
                let message = format!("shard {id}, which may know the key, has no owner at the moment");
                return LookupPlan::Unavailable(unavailable(message));
            }
            None => to_ask.push_back(Asked::Elsewhere { shard: id, address: slot.owner.clone() }),
        }
    }
    to_ask.push_back(Asked::Here { shard: home, term: core.slots[home].term });
    LookupPlan::Ask(to_ask)
}

/// Asks the next shard. Its answer is reported in the name of the home shard.
fn ask(core: &mut Core, part: ShardEnqueue, mut lookup: DedupeLookup) {
    let home = lookup.home;
    let Some(asked) = lookup.to_ask.pop_front() else { return answer_duplicates(core, part, lookup) };
    let read = core.ids.next();
    let Some(reads) = core.slots[home].holding.as_ref().map(|holding| &holding.reads) else {
        return refuse(core, home, part);
    };
    let events = reads.events.clone();
    match &asked {
        Asked::Here { shard, .. } => {
            let Some(there) = &core.slots[*shard].holding else { return refuse(core, home, part) };
            there.reads.reporting_to(events).dedupe(read, there.shard.generations(), part.keys());
        }
        Asked::Elsewhere { shard, address } => {
            let homes = core.homes.current().to_vec();
            let question = KeyQuestion { shard: *shard, homes, keys: part.keys() };
            core.launcher.find_keys(events, read, address.clone(), question);
        }
    }
    lookup.asked = Some(asked);
    if let Some(shard) = core.slots.owned_mut(home) {
        shard.begin_lookup(read, part);
        core.lookups.begin(read, lookup);
    }
}

/// The enqueue and the lookup whose read has ended.
fn end(core: &mut Core, home: ShardIndex, read: u64) -> Option<(ShardEnqueue, DedupeLookup)> {
    let part = core.slots.owned_mut(home).and_then(|shard| shard.end_lookup(read));
    let ended = part.zip(core.lookups.end(read));
    if ended.is_none() {
        broken("a lookup that is answered is under way");
    }
    ended
}

/// A shard of this node answered.
pub(crate) fn looked_up(
    core: &mut Core,
    home: ShardIndex,
    read: u64,
    hits: Result<Vec<DedupeHit>, StoreError>,
) {
    let at = core.time.monotonic();
    let Some((part, mut lookup)) = end(core, home, read) else { return };
    let Some(Asked::Here { shard, term: asked_term }) = lookup.asked else {
        return broken("a shard that was read was asked");
    };
    let Slot { id, term, holding, health, .. } = &mut core.slots[shard];
    // Nothing is written for a repeated answer, so it is given only while no other node can own the shard.
    let owner = holding.as_ref().filter(|_| *term == asked_term);
    let trusted = owner.is_some_and(|holding| holding.shard.is_trusted(at));
    match hits {
        Ok(hits) if trusted => lookup.hits.extend(hits.into_iter().map(|hit| FoundKey { shard: *id, hit })),
        Ok(_) => return refuse(core, home, part),
        Err(error) => {
            health.read_failed(&error, at);
            return refuse(core, home, part);
        }
    }
    ask(core, part, lookup);
}

/// Another node said what its shard remembers, or can't say.
pub(crate) fn told(core: &mut Core, home: ShardIndex, read: u64, hits: Option<Vec<DedupeHit>>) {
    let Some((part, mut lookup)) = end(core, home, read) else { return };
    let Some(Asked::Elsewhere { shard, address }) = lookup.asked.take() else {
        return broken("a node that answers was asked");
    };
    let Some(hits) = hits else {
        let refusal = unavailable(format!(
            "shard {shard}, which may know the key, can't be asked at {address} for now"
        ));
        return refuse_with(core, home, part, &refusal);
    };
    lookup.hits.extend(hits.into_iter().map(|hit| FoundKey { shard, hit }));
    ask(core, part, lookup);
}

/// What is remembered of one key.
struct Remembered {
    /// When it was stored.
    at: Timestamp,
    /// Where.
    shard: ShardId,
    /// The answer to repeat.
    answer: Vec<u8>,
}

/// Every shard was asked: duplicates are answered as they were the first time, the rest is queued.
fn answer_duplicates(core: &mut Core, part: ShardEnqueue, lookup: DedupeLookup) {
    let DedupeLookup { home: index, hits, .. } = lookup;
    let now = core.time.now();
    let now = core.slots.owned(index).map_or(now, |shard| shard.key_time(now));
    let window =
        core.settings.dedupe_window(core.policies.settings.dedupe_window(&part.namespace), &part.namespace);
    // Of several hits the latest counts.
    let mut known: BTreeMap<KeyHash, Remembered> = BTreeMap::new();
    for FoundKey { shard, hit } in hits.into_iter().filter(|found| found.hit.at.plus(window) > now) {
        if known.get(&hit.hash).is_none_or(|known| hit.at >= known.at) {
            known.insert(hit.hash, Remembered { at: hit.at, shard, answer: hit.answer });
        }
    }
    let first_answer = |hash: &KeyHash| {
        let remembered = known.get(hash)?;
        Some((remembered.shard, decode_answer(&remembered.answer)?))
    };
    if let Some((shard, first)) = part.request.as_ref().and_then(first_answer) {
        answer_request(&mut core.calls, &part, shard, first);
        return free(core, index, &part);
    }
    let (call, namespace, request) = (part.call, part.namespace, part.request);
    let (mut fresh, mut repeated) = (Vec::new(), Vec::new());
    for item in part.items {
        let first = item.dedupe.as_ref().and_then(first_answer);
        match first.and_then(|(shard, mut first)| Some((shard, first.pop()?.ok()?))) {
            Some((shard, seq)) => {
                let id = ItemId { shard, seq };
                core.calls.enqueue_done(call, item.index, Ok(Enqueued { id, duplicate: true }));
                repeated.push(item);
            }
            None => fresh.push(item),
        }
    }
    if !repeated.is_empty() {
        core.traffic.became(&namespace, Fate::Duplicate, repeated.len() as u64);
    }
    if !fresh.is_empty()
        && let Some(shard) = core.slots.owned_mut(index)
    {
        shard.enqueue(ShardEnqueue { call, namespace: namespace.clone(), request, items: fresh });
    }
    if !repeated.is_empty() {
        free(core, index, &ShardEnqueue { call, namespace, request: None, items: repeated });
    }
}

/// Answers a call whose request id is known as it was answered the first time.
fn answer_request(
    calls: &mut PendingCalls,
    part: &ShardEnqueue,
    shard: ShardId,
    first: Vec<Result<Seq, Refusal>>,
) {
    if first.len() != part.items.len() {
        // Another call under the same id: whose answers these are is unknown.
        let message = "was already used for a call with a different number of items";
        for item in &part.items {
            let refusal = Refusal::field("request_id", message);
            calls.enqueue_done(part.call, item.index, Err(refusal));
        }
        return;
    }
    for (item, result) in part.items.iter().zip(first) {
        let result = result.map(|seq| Enqueued { id: ItemId { shard, seq }, duplicate: false });
        calls.enqueue_done(part.call, item.index, result);
    }
}

/// Some shards have not recorded the current set of shards. Those that are served do it at once.
fn until_recorded(core: &Core, now: Timestamp) -> LookupPlan {
    let at_once =
        |slot: &Slot| slot.is_healthy() && slot.owned().is_some_and(OwnedShard::is_recording_topology);
    let mut missing = core.slots.iter().filter(|slot| !core.homes.has_recorded(slot.id, now));
    let Some(Slot { id, .. }) = missing.find(|slot| !at_once(slot)) else {
        return LookupPlan::Wait;
    };
    LookupPlan::Unavailable(unavailable(match core.homes.is_read(*id) {
        false => format!("shard {id} may know of earlier homes of the key, and has not been read yet"),
        true => format!("shard {id} has not recorded yet which shards take new items"),
    }))
}

/// An earlier home of the keys is not configured any more.
fn removed(homes: &mut KeyHomes, id: ShardId, now: Timestamp) -> Refusal {
    let until = homes.missing(now).remove(&id).unwrap_or(now);
    let micros = u64::try_from(until.as_micros()).unwrap_or(0);
    let time = UNIX_EPOCH + Duration::from_micros(micros);
    let until = humantime::format_rfc3339_seconds(time);
    if homes.is_to_be_named(id) {
        tracing::warn!(
            shard.id = id.0,
            %until,
            "shard {id}, which is not configured any more, may know keys; such keys are refused until {until}"
        );
    }
    unavailable(format!(
        "shard {id}, which may know the key, is not configured any more; this matters until {until}"
    ))
}

fn unavailable(message: String) -> Refusal {
    Refusal::new(Reason::ShardUnavailable, message).retry_after(RETRY_AFTER)
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

/// An enqueue has its answer: what it held is free again.
fn free(core: &mut Core, index: ShardIndex, part: &ShardEnqueue) {
    if let Some(shard) = core.slots.owned_mut(index) {
        shard.free(part);
    }
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
