//! The k-way merge over the shards' ready indexes, through a heap of their heads: exact priority order
//! within the node.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
};

use forebay_types::{Monotonic, Refusal, TopicName};
use rustc_hash::FxHashMap;

use super::{
    head::{Head, head},
    prefetch,
};
use crate::{
    api::{Demand, DequeueCall},
    clock::Moment,
    core::{Core, policies::Eligible, timers::Timer},
    index::ShardIndex,
    invariant::broken,
    planted::{Bug, on},
    shard::work::ReservedItem,
};

/// The result of one look at a poll's topics.
pub(crate) enum Pick {
    /// These items, by shard. They are reserved.
    Found(BTreeMap<ShardIndex, Vec<ReservedItem>>),
    /// Nothing is there, or not known yet.
    Nothing,
    /// Something is there, but a limit allows no more leases.
    Refused(Refusal),
}

/// The items picked so far.
#[derive(Default)]
struct PickedItems {
    /// The items, by shard.
    items: BTreeMap<ShardIndex, Vec<ReservedItem>>,
    /// How many.
    count: usize,
    /// Bytes of their bodies.
    bytes: usize,
    /// Why something was left in a shard, if so.
    refusal: Option<Refusal>,
    /// The next item would exceed the call's bytes.
    full: bool,
}

/// Takes the best items of the demanded topics out of their windows. With `last`, shards whose heads are not
/// known yet are left out; otherwise their topics are.
pub(crate) fn pick(
    core: &mut Core,
    call: &DequeueCall,
    names: &[TopicName],
    at: Monotonic,
    last: bool,
) -> Pick {
    let moment = core.time.moment();
    let mut picked = PickedItems::default();
    for (name, demand) in names.iter().zip(&call.demands) {
        if core.policies.eligible(name) != Eligible::All {
            continue;
        }
        core.list(name);
        if is_outstanding(core, name, at) && !last {
            continue;
        }
        pick_topic(core, name, demand, call.max_bytes, moment, &mut picked);
        if picked.full {
            break;
        }
        prefetch::top_up(&mut core.slots, &mut core.ids, core.topics.parts(name));
    }
    if !picked.items.is_empty() {
        Pick::Found(picked.items)
    } else {
        picked.refusal.map_or(Pick::Nothing, Pick::Refused)
    }
}

/// Takes the best items of one topic.
fn pick_topic(
    core: &mut Core,
    name: &TopicName,
    demand: &Demand,
    max_bytes: usize,
    moment: Moment,
    picked: &mut PickedItems,
) {
    let Core { slots, topics, ids, .. } = core;
    let parts = topics.parts(name);
    let mut heads: BinaryHeap<Reverse<Head>> =
        parts.into_iter().filter_map(|part| head(slots, part, moment)).map(Reverse).collect();
    let mut wanted = demand.max_items;
    // Of each shard, how many items may be leased before that is to be asked again.
    let mut rooms: FxHashMap<ShardIndex, usize> = FxHashMap::default();
    while wanted > 0
        && let Some(Reverse(Head { part, bytes, .. })) = heads.pop()
    {
        let Some(holding) = slots.merged_mut(part.shard) else { continue };
        let shard = &mut holding.shard;
        let room = rooms.entry(part.shard).or_default();
        if *room == 0 {
            if let Some(refusal) = shard.lease_refusal(part.topic, 1, moment.at) {
                // The others may have room.
                picked.refusal = Some(refusal);
                continue;
            }
            *room = shard.lease_room(part.topic).max(1);
        }
        *room -= 1;
        if picked.count > 0 && picked.bytes + bytes > max_bytes && !on(Bug::MaxBytesIgnored) {
            picked.full = true;
            return;
        }
        let Some((key, item)) = shard.reserve(part.topic) else {
            return broken("a head can be reserved");
        };
        let (position, name) = (picked.count, name.topic.clone());
        let reserved = ReservedItem { position, topic: part.topic, name, key, item };
        picked.items.entry(part.shard).or_default().push(reserved);
        picked.count += 1;
        picked.bytes += bytes;
        wanted -= 1;
        match head(slots, part, moment) {
            Some(head) => heads.push(Reverse(head)),
            // The next item in this shard is not known: nothing behind it may go first.
            None if prefetch::fetch_next(slots, ids, part, wanted) => return,
            None => {}
        }
    }
}

/// Whether a head of one of these topics has to be waited for.
pub(crate) fn is_any_outstanding(core: &mut Core, names: &[TopicName], at: Monotonic) -> bool {
    names.iter().any(|name| is_outstanding(core, name, at))
}

/// Whether a shard's head has to be waited for. Begins to read it.
fn is_outstanding(core: &mut Core, name: &TopicName, at: Monotonic) -> bool {
    if on(Bug::OutstandingIgnored) || core.policies.eligible(name) != Eligible::All {
        return false;
    }
    let moment = core.time.moment();
    let Core { slots, topics, ids, timers, .. } = core;
    let mut wait = false;
    for part in topics.parts(name) {
        if !slots[part.shard].is_merged()
            || head(slots, part, moment).is_some()
            || !prefetch::fetch_next(slots, ids, part, 1)
        {
            continue;
        }
        let Some(shard) = slots.owned_mut(part.shard) else {
            broken("a topic has parts in owned shards only");
            continue;
        };
        let until = shard.outstanding_until(part.topic, at);
        if at < until {
            wait = true;
            timers.set(until, Timer::Topic(name.clone()));
        } else {
            metrics::counter!("forebay_heads_left_out_total").increment(1);
        }
    }
    wait
}
