//! Enqueue: each item gets a rank and a shard, is looked up where a key or a request id makes it repeatable,
//! and waits for the shard's next batch.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use forebay_types::{ItemAttributes, Namespace, Refusal, Schedule, ShardId, Side, Timestamp, Topic, Waits};

use super::dedupe;
use crate::{
    api::{Avoid, EnqueueCall, EnqueueOutcome, MemberPlaces, MisplacedMember, NewItem, Notice, RETRY_AFTER},
    core::{
        Core,
        refusals::{draining, no_shard, paused},
        slot::Slots,
    },
    index::ShardIndex,
    messages::{reply::Reply, tenant_budget::Charge},
    planted::{Bug, is_older, on},
    routing::rendezvous::{Ranking, SHARDS_PER_TOPIC, hash},
    shard::work::{AdmittedItem, ItemKey, RequestKey, ShardEnqueue},
};

/// How far the rank that another node has given may be ahead of this node's time. Their clocks differ.
const RANK_AHEAD_MAX: Duration = Duration::from_secs(1);
/// How far it may be behind. A call that meets a move of its shard is under way for a while.
const RANK_BEHIND_MAX: Duration = Duration::from_secs(30);

/// A call's items, by shard.
type ByShard = BTreeMap<ShardIndex, Share>;

/// One shard's items of a call.
#[derive(Default)]
struct Share {
    /// The items.
    items: Vec<AdmittedItem>,
    /// The bytes that they are charged with while they wait.
    bytes: usize,
}

impl Share {
    fn push(&mut self, item: AdmittedItem) {
        self.bytes += item.charge();
        self.items.push(item);
    }
}

/// Serves the call, which was charged at admission. `content`: what it stores, in short, if it has a request
/// id.
pub(crate) fn serve(
    core: &mut Core,
    call: EnqueueCall,
    content: Option<[u8; 16]>,
    charge: Charge,
    notice: Option<Notice>,
    reply: Reply<Vec<Result<EnqueueOutcome, Refusal>>>,
) {
    if core.stopping.is_stopping() {
        reply.send(Err(draining()));
        return;
    }
    let now = core.time.now();
    let EnqueueCall { namespace, items, request_id, only, avoid } = call;
    // The caller does not count: a repeat works after a token was replaced.
    let request = request_id.map(|id| RequestKey {
        hash: hash(&[b"request", namespace.as_bytes(), id.as_bytes()]),
        content: content.filter(|_| !is_older(&core.launcher.address)),
    });
    let id = core.ids.next();
    let count = items.len();
    let mut parts = ByShard::new();
    let (mut refused, mut first_rank) = (Vec::new(), None);
    let mut candidates = Candidates::new(&mut core.slots, &avoid, id);
    // A call with a request id is stored whole, or not at all.
    let whole = request.and_then(|_| items.iter().find_map(|item| pause_of(core, &namespace, &item.topic)));
    for (index, item) in items.into_iter().enumerate() {
        let rank = rank_of(core, &item, now);
        first_rank.get_or_insert(rank);
        let mut item = with_settings(core, &namespace, item);
        let key = item.dedupe_key.take().map(|key| key_of(core, &namespace, &item.topic, &key));
        let mut item = unplaced(index, item, key, only, rank, now);
        let is_keyed = request.is_some() || item.item.dedupe.is_some();
        let paused = whole.clone().or_else(|| pause_of(core, &namespace, &item.item.topic));
        match paused {
            // A key's answer is given nevertheless: the item is refused where it would be stored.
            Some(refusal) if is_keyed => item.item.refused = Some(refusal),
            Some(refusal) => {
                refused.push((index, refusal));
                continue;
            }
            None => {}
        }
        match choose_shard(core, &namespace, request.as_ref(), &item, &parts, &mut candidates) {
            Ok(shard) => parts.entry(shard).or_default().push(item.item),
            Err(refusal) => refused.push((index, refusal)),
        }
    }
    let full = parts.iter().find_map(|(shard, share)| over_budget(core, &namespace, *shard, share.bytes));
    if let Some(refusal) = full {
        reply.send(Err(refusal));
        return;
    }
    let at = core.time.monotonic();
    core.calls.begin_enqueue(id, count, charge, reply, at);
    if let Some(notice) = notice {
        let misplaced = refused.iter().filter_map(|(index, refusal)| MisplacedMember::of(*index, refusal));
        let placed =
            MemberPlaces { first_rank: first_rank.unwrap_or_default(), misplaced: misplaced.collect() };
        // Without a listener nobody is interested.
        let _ = notice.send(placed);
    }
    for (index, refusal) in refused {
        core.calls.enqueue_done(id, index, Err(refusal));
    }
    for (shard, Share { items, .. }) in parts {
        accept(core, shard, ShardEnqueue { call: id, namespace: namespace.clone(), request, items });
    }
}

/// Stores what was in no batch yet in another shard, if that is allowed.
pub(crate) fn choose_another_shard(core: &mut Core, part: ShardEnqueue, refusal: &Refusal) {
    let ShardEnqueue { call, namespace, request, items } = part;
    let mut parts = ByShard::new();
    let mut candidates = Candidates::new(&mut core.slots, &Avoid::default(), call);
    for item in items {
        let index = item.index;
        let fixed = request.is_some() || item.pinned || item.dedupe.is_some();
        let item = UnplacedItem { shard: None, only: None, item };
        let shard = match fixed {
            true => Err(refusal.clone()),
            false => choose_shard(core, &namespace, None, &item, &parts, &mut candidates),
        };
        match shard {
            Ok(shard) => parts.entry(shard).or_default().push(item.item),
            Err(refusal) => core.calls.enqueue_done(call, index, Err(refusal)),
        }
    }
    for (shard, Share { items, bytes }) in parts {
        match over_budget(core, &namespace, shard, bytes) {
            Some(refusal) => {
                let refuse =
                    |item: AdmittedItem| core.calls.enqueue_done(call, item.index, Err(refusal.clone()));
                items.into_iter().for_each(refuse);
            }
            None => {
                accept(
                    core,
                    shard,
                    ShardEnqueue { call, namespace: namespace.clone(), request: None, items },
                );
            }
        }
    }
}

/// Why a topic takes no new items, if it does not.
fn pause_of(core: &Core, namespace: &Namespace, topic: &Topic) -> Option<Refusal> {
    core.policies.pause(namespace, topic, Side::Enqueue).map(|pause| paused(topic, pause))
}

/// Why a shard does not take so many bytes more, if it does not.
fn over_budget(core: &Core, namespace: &str, shard: ShardIndex, bytes: usize) -> Option<Refusal> {
    core.slots.owned(shard)?.over_budget(namespace, bytes, core.time.monotonic())
}

/// A shard takes items.
fn accept(core: &mut Core, index: ShardIndex, mut part: ShardEnqueue) {
    let node = core.time.moment();
    if let Some(shard) = core.slots.owned_mut(index) {
        let now = shard.moment(node).now;
        part.items.iter_mut().for_each(|item| item.admit(now));
        shard.charge(&part.namespace, part.charge());
    }
    dedupe::accept(core, index, part);
}

/// The shards that a call's items may go to.
struct Candidates {
    /// The shards that new items may be placed in.
    open: Arc<Vec<(ShardIndex, ShardId)>>,
    /// Of two shards of other nodes that suit a topic best, calls take the first one and the second one in
    /// turn: 0 or 1.
    turn: usize,
    /// The topic of the last item, and how well they suit it. A call's items mostly have the same topic.
    ranked: Option<(Topic, Ranking<ShardIndex>)>,
}

impl Candidates {
    fn new(slots: &mut Slots, avoid: &Avoid, turn: u64) -> Self {
        let mut open = slots.open();
        if *avoid != Avoid::default() {
            let is_own = |index: ShardIndex| slots.owned(index).is_some();
            // A node without shards has only those of others.
            let others = avoid.others && open.iter().any(|(index, _)| is_own(*index));
            let avoided = |index: ShardIndex, id: ShardId| {
                let of_node = |address: &String| slots[index].is_served_at(address);
                avoid.shards.contains(&id) || others && !is_own(index) || avoid.nodes.iter().any(of_node)
            };
            Arc::make_mut(&mut open).retain(|(index, id)| !avoided(*index, *id));
        }
        Self { open, ranked: None, turn: usize::from(turn % 2 == 1) }
    }

    fn of_topic(&mut self, namespace: &str, topic: &Topic) -> &mut Ranking<ShardIndex> {
        let ranked = self.ranked.take().filter(|(last, _)| last == topic).unwrap_or_else(|| {
            let key = hash(&[namespace.as_bytes(), topic.as_bytes()]);
            (topic.clone(), Ranking::new(key, &self.open))
        });
        &mut self.ranked.insert(ranked).1
    }
}

/// An item with what only the choice of its shard needs.
struct UnplacedItem {
    /// The shard that the caller named.
    shard: Option<ShardId>,
    /// The shard in which another node has placed it.
    only: Option<ShardId>,
    /// The item.
    item: AdmittedItem,
}

/// The shard that takes an item. Fails with the node to ask instead, where another one owns it.
fn choose_shard(
    core: &Core,
    namespace: &str,
    request: Option<&RequestKey>,
    item: &UnplacedItem,
    parts: &ByShard,
    candidates: &mut Candidates,
) -> Result<ShardIndex, Refusal> {
    if let Some(id) = item.shard {
        let shard = core.slots.index_of(id).ok_or_else(|| {
            Refusal::field(format!("items[{}].shard", item.item.index), "names a shard that does not exist")
        })?;
        return only_if_open(core, shard);
    }
    let home = request.map(|request| request.hash).or(item.item.dedupe.map(|key| key.shared));
    if let Some(hash) = home {
        let home = core.homes.home(&hash).and_then(|id| core.slots.index_of(id)).ok_or_else(no_shard)?;
        // The node that placed it knows another set of shards.
        if item.only.is_some_and(|only| only != core.slots[home].id) {
            let elsewhere = core.slots[home].elsewhere();
            let message = format!("the home of the key is shard {}", elsewhere.shard);
            return Err(Refusal::not_owner(elsewhere, message).retry_after(RETRY_AFTER));
        }
        return only(core, home);
    }
    if let Some(id) = item.only {
        return only_if_open(core, core.slots.index_of(id).ok_or_else(no_shard)?);
    }
    let turn = candidates.turn;
    let ranking = candidates.of_topic(namespace, &item.item.topic);
    let least = least_loaded(core, namespace, item.item.charge(), ranking, turn, parts);
    let shard = least.ok_or_else(no_shard)?;
    if core.slots.owned(shard).is_some() { Ok(shard) } else { Err(core.slots[shard].refusal()) }
}

/// Of the first of these shards that have room, the least loaded. One that the call uses already is
/// preferred. If all are full it is the first, and that refuses the call. What waits for another node's
/// shards is not known here: such a shard counts as having one batch to do. So own ones are preferred, as
/// long as they keep up.
fn least_loaded(
    core: &Core,
    namespace: &str,
    charge: usize,
    ranking: &mut Ranking<ShardIndex>,
    turn: usize,
    parts: &ByShard,
) -> Option<ShardIndex> {
    let has_room = |shard: &ShardIndex| {
        let bytes = parts.get(shard).map_or(0, |share| share.bytes) + charge;
        over_budget(core, namespace, *shard, bytes).is_none()
    };
    let (mut best, mut spread, mut crowded) = (None, SHARDS_PER_TOPIC, true);
    let ranked = (0..).map_while(|position| ranking.get(position));
    for (number, shard) in ranked.filter(has_room).enumerate() {
        // A topic that brings more than its shards commit in a batch spreads to twice as many.
        if number == spread {
            if !crowded {
                break;
            }
            spread *= 2;
        }
        let (backlog, number_in_turn) = match core.slots.owned(shard) {
            Some(owned) => (owned.backlog(), number),
            None => (core.settings.batch_rows, number ^ turn),
        };
        crowded &= backlog > core.settings.batch_rows;
        let load = (!parts.contains_key(&shard), backlog, number_in_turn);
        if best.is_none_or(|(least, _)| load < least) {
            best = Some((load, shard));
        }
    }
    best.map(|(_, shard)| shard).or(ranking.get(0))
}

/// A shard that the caller names, or another node: unless it is drained.
fn only_if_open(core: &Core, shard: ShardIndex) -> Result<ShardIndex, Refusal> {
    core.slots[shard].intake_refusal().map_or_else(|| only(core, shard), Err)
}

/// A shard that the caller or a key names: it or none.
fn only(core: &Core, shard: ShardIndex) -> Result<ShardIndex, Refusal> {
    let slot = &core.slots[shard];
    if slot.is_merged() { Ok(shard) } else { Err(slot.refusal()) }
}

/// An item's rank: this node numbers the items of the calls that it takes. What another node numbered keeps
/// its rank, but for a clock that is far off.
fn rank_of(core: &mut Core, item: &NewItem, now: Timestamp) -> i64 {
    match item.rank {
        Some(rank) => {
            rank.clamp(now.minus(RANK_BEHIND_MAX).as_micros(), now.plus(RANK_AHEAD_MAX).as_micros())
        }
        None => {
            core.rank = core.rank.saturating_add(1).max(now.as_micros());
            core.rank
        }
    }
}

/// The item with what is set for its topic, where it names nothing itself.
fn with_settings(core: &Core, namespace: &Namespace, item: NewItem) -> NewItem {
    if !item.lease_is_default && !item.attempts_are_default {
        return item;
    }
    let set = core.policies.settings.of(namespace, &item.topic);
    let lease = set.default_lease.filter(|_| item.lease_is_default);
    let max_attempts = set.default_max_attempts.filter(|_| item.attempts_are_default);
    NewItem {
        lease: lease.unwrap_or(item.lease),
        max_attempts: max_attempts.unwrap_or(item.max_attempts),
        ..item
    }
}

/// Under what an item is remembered.
fn key_of(core: &Core, namespace: &str, topic: &Topic, key: &str) -> ItemKey {
    let shared = hash(&[b"dedupe", namespace.as_bytes(), key.as_bytes()]);
    let own = match is_older(&core.launcher.address) || on(Bug::TopicLeftOutOfKeys) {
        true => shared,
        false => hash(&[b"dedupe of topic", namespace.as_bytes(), topic.as_bytes(), key.as_bytes()]),
    };
    ItemKey { own, shared, is_shared_taken: false }
}

fn unplaced(
    index: usize,
    item: NewItem,
    dedupe: Option<ItemKey>,
    only: Option<ShardId>,
    rank: i64,
    now: Timestamp,
) -> UnplacedItem {
    let due = match item.schedule {
        Schedule::Now => None,
        Schedule::Delay(delay) if delay.is_zero() => None,
        Schedule::Delay(delay) => Some(now.plus(delay)),
        Schedule::After(time) => Some(time).filter(|time| *time > now),
    };
    let attributes = ItemAttributes {
        enqueued_at: now,
        expires_at: item.ttl.map(|ttl| now.plus(ttl)),
        lease_ms: u32::try_from(item.lease.as_millis()).unwrap_or(u32::MAX),
        max_attempts: item.max_attempts,
        policy: item.policy,
        deliveries: 0,
        failures: 0,
        redrives: 0,
        updated_by: 0,
        waits: match item.schedule {
            Schedule::Delay(delay) if !delay.is_zero() => Waits::Span,
            _ => Waits::Unsaid,
        },
    };
    let admitted = AdmittedItem {
        index,
        rank,
        topic: item.topic,
        priority: item.priority,
        due,
        attributes,
        dedupe,
        pinned: item.shard.or(only).is_some(),
        body: item.body,
        refused: None,
    };
    UnplacedItem { shard: item.shard, only, item: admitted }
}
