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
    sources::BestSource,
};
use crate::{
    api::{DequeueCall, HeadPosition},
    clock::Moment,
    core::{Core, fetches::PlannedFetch, policies::Eligible, remote::RemoteTopics, timers::Timer},
    index::ShardIndex,
    invariant::broken,
    planted::{Bug, on},
    shard::work::ReservedItem,
};

/// Nodes from which items are fetched for a poll at one time.
const FETCHES_PER_POLL: usize = 4;
/// Bytes of bodies that one fetch may bring: a node has room for as many fetches as another one begins for a
/// tenant.
pub(super) const FETCH_BYTES_MAX: usize = 256 << 10;

/// The items picked so far.
#[derive(Default)]
pub(super) struct PickedItems {
    /// The items, by shard.
    pub items: BTreeMap<ShardIndex, Vec<ReservedItem>>,
    /// How many.
    pub count: usize,
    /// Bytes of their bodies.
    pub bytes: usize,
    /// Fetches from other nodes.
    pub fetches: Vec<PlannedFetch>,
    /// Why something was left in a shard, if so.
    pub refusal: Option<Refusal>,
    /// The next item would exceed the call's bytes.
    pub full: bool,
    /// There was no place for a fetch. Nobody says when there is one.
    pub no_place: bool,
}

impl PickedItems {
    /// No more nodes can be asked for the poll now.
    fn has_all_fetches(&self) -> bool {
        self.fetches.len() >= FETCHES_PER_POLL
    }
}

/// A topic of a poll, or a prefix, and what is still wanted of it.
#[derive(Clone, Copy)]
pub(super) struct AskedTopic<'a> {
    /// The position of its demand.
    pub number: usize,
    /// Its name.
    pub name: &'a TopicName,
    /// At most so many items.
    pub max_items: usize,
    /// Only items that come before this one.
    pub before: Option<HeadPosition>,
    /// The call.
    pub call: &'a DequeueCall,
    /// Bytes that a fetch may bring: its bound, or one item.
    pub fetch_bytes: usize,
}

/// Takes the best items of one topic. `best`: the best that another node has. Where that comes first, it is
/// fetched, once a topic: behind it nothing is taken but what is equal to the item before which it ends.
pub(super) fn pick_topic(
    core: &mut Core,
    mut asked: AskedTopic<'_>,
    mut best: Option<BestSource>,
    moment: Moment,
    picked: &mut PickedItems,
) {
    let AskedTopic { number, name, call, .. } = asked;
    let Core { slots, topics, ids, remote, .. } = core;
    let parts = topics.parts(name);
    let mut heads: BinaryHeap<Reverse<Head>> =
        parts.into_iter().filter_map(|part| head(slots, part, moment)).map(Reverse).collect();
    // Of each shard, how many items may be leased before that is to be asked again.
    let mut rooms: FxHashMap<ShardIndex, usize> = FxHashMap::default();
    while asked.max_items > 0 {
        let next = heads.pop().map(|Reverse(head)| head);
        let position = next.map(|head| HeadPosition { priority: head.priority, rank: head.rank });
        if let Some(source) = best.take_if(|best| best.comes_before(position)) {
            let before = source.before(position);
            if add_fetch(remote, &mut asked, source, before, picked) {
                return;
            }
        }
        let Some(Head { part, bytes, .. }) = next.filter(|_| asked.max_items > 0) else { return };
        if asked.before.is_some_and(|bound| position >= Some(bound)) && !on(Bug::FetchBoundIgnored) {
            return;
        }
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
        if picked.count > 0 && picked.bytes + bytes > call.max_bytes && !on(Bug::MaxBytesIgnored) {
            picked.full = true;
            return;
        }
        let Some((key, item)) = shard.reserve(part.topic) else {
            return broken("a head can be reserved");
        };
        let reserved =
            ReservedItem { demand: number, topic: part.topic, name: name.topic.clone(), key, item };
        picked.items.entry(part.shard).or_default().push(reserved);
        picked.count += 1;
        picked.bytes += bytes;
        asked.max_items -= 1;
        match head(slots, part, moment) {
            Some(head) => heads.push(Reverse(head)),
            // The next item in this shard is not known: nothing behind it may go first.
            None if prefetch::fetch_next(slots, ids, part, asked.max_items) => return,
            None => {}
        }
    }
}

/// Adds a fetch of the best items of another node, if there is a place for one: so much less is asked for,
/// and nothing beyond its bound. Returns whether nothing else may be taken, since it would go before items
/// that have to wait for the poll's next turn.
pub(super) fn add_fetch(
    remote: &mut RemoteTopics,
    asked: &mut AskedTopic<'_>,
    source: BestSource,
    before: Option<HeadPosition>,
    picked: &mut PickedItems,
) -> bool {
    let fetch = plan_fetch(remote, asked, source, before, picked);
    asked.max_items -= fetch.as_ref().map_or(0, |fetch| fetch.max_items);
    asked.before = asked.before.or(fetch.as_ref().and(before));
    let waits = picked.full || fetch.is_none() && picked.has_all_fetches();
    picked.fetches.extend(fetch);
    waits
}

/// A fetch of the best items of another node. `None`: there is no place for one. How many bytes it brings is
/// not known, so what may be the whole of the answer has no other share.
fn plan_fetch(
    remote: &mut RemoteTopics,
    asked: &AskedTopic<'_>,
    source: BestSource,
    before: Option<HeadPosition>,
    picked: &mut PickedItems,
) -> Option<PlannedFetch> {
    let is_first = picked.count == 0 && picked.fetches.is_empty();
    picked.full = picked.bytes + asked.fetch_bytes > asked.call.max_bytes;
    if picked.full && !is_first || picked.has_all_fetches() {
        return None;
    }
    let BestSource { node: index, ready, .. } = source;
    let node = remote.node(index);
    let Some((node, place)) = node.and_then(|node| Some((node, node.place(&asked.name.namespace)?))) else {
        (picked.full, picked.no_place) = (false, true);
        return None;
    };
    let (address, link) = (node.address.clone(), node.link);
    let max_items = asked.max_items.min(ready);
    remote.take_off(asked.name, index, max_items as u32);
    let max_bytes = asked.call.max_bytes.min(FETCH_BYTES_MAX);
    picked.bytes += asked.fetch_bytes;
    let (demand, name) = (asked.number, asked.name.clone());
    Some(PlannedFetch { demand, name, node: index, address, link, max_items, max_bytes, before, place })
}

/// Whether a shard's head has to be waited for. Begins to read it.
pub(super) fn is_outstanding(core: &mut Core, name: &TopicName, at: Monotonic) -> bool {
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
