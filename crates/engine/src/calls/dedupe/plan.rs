//! The shards to ask for keys before their items are stored: their earlier homes first, if they have any,
//! then their home shard.

use std::collections::VecDeque;

use forebay_types::{Reason, Refusal, ShardId, Timestamp};

use crate::{
    api::RETRY_AFTER,
    core::{
        Core,
        lookups::{LookupTarget, Question},
        slot::Slot,
    },
    index::ShardIndex,
    planted::{Bug, on},
    routing::key_homes::KeyHomes,
    shard::{OwnedShard, work::ShardEnqueue},
};

/// The shards to ask for keys.
pub(super) enum LookupPlan {
    /// These shards, in turn.
    Ask(VecDeque<Question>),
    /// A shard is just recording the current set of shards.
    Wait,
    /// One of them does not answer, as this says.
    Unavailable(Refusal),
}

/// Plans which shards to ask for the keys of an enqueue.
pub(super) fn plan(core: &mut Core, home: ShardIndex, part: &ShardEnqueue) -> LookupPlan {
    let (now, at) = (core.time.now(), core.time.monotonic());
    let slots = &core.slots;
    if !core.homes.is_complete(now, at, |id| slots.is_silent(id)) {
        return until_recorded(core, now);
    }
    let now = core.slots.owned(home).map_or(now, |shard| shard.key_time(now));
    let mut to_ask = VecDeque::new();
    // Keys that the release before may have stored are asked for by the hashes that it knows.
    let all = part.hashes(!on(Bug::OlderKeysForgotten));
    for id in core.homes.earlier_homes(&part.homes(), now) {
        let Some(earlier) = core.slots.index_of(id) else {
            return LookupPlan::Unavailable(removed(&mut core.homes, id, now));
        };
        // Once it has recorded the current set, it stores no key any more whose home is elsewhere.
        let slot = &core.slots[earlier];
        match slot.owned() {
            Some(shard) if shard.is_recording_topology() => return LookupPlan::Wait,
            Some(_) => {
                let whom = LookupTarget::Here { shard: earlier, term: slot.term };
                to_ask.push_back(Question { whom, keys: all.clone() });
            }
            None if on(Bug::EarlierHomesElsewhereForgotten) => {}
            // The call itself is in the right place, so nobody is named who should have it instead.
            None if slot.owner.is_empty() => {
                let message = format!("shard {id}, which may know the key, has no owner at the moment");
                return LookupPlan::Unavailable(unavailable(message));
            }
            None => {
                // A node answers no question of more keys than a call may have members.
                to_ask.extend(all.chunks(core.settings.limits.members).map(|keys| {
                    let whom = LookupTarget::Elsewhere { shard: id, address: slot.owner.clone() };
                    Question { whom, keys: keys.to_vec() }
                }));
            }
        }
    }
    let keys = match core.slots.owned(home).is_some_and(|shard| shard.may_hold_older_keys(now)) {
        true => all,
        false => part.hashes(false),
    };
    to_ask
        .push_back(Question { whom: LookupTarget::Here { shard: home, term: core.slots[home].term }, keys });
    LookupPlan::Ask(to_ask)
}

/// The plan for a request id whose call names the shard: no other one has ever been its home.
pub(super) fn of_named_shard(core: &Core, home: ShardIndex, part: &ShardEnqueue) -> LookupPlan {
    let whom = LookupTarget::Here { shard: home, term: core.slots[home].term };
    LookupPlan::Ask([Question { whom, keys: part.hashes(false) }].into())
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

pub(super) fn unavailable(message: String) -> Refusal {
    Refusal::new(Reason::ShardUnavailable, message).retry_after(RETRY_AFTER)
}
