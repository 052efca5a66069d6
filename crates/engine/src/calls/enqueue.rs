//! Enqueue: each item gets a rank and a shard, is looked up where a key or a request id makes it repeatable,
//! and waits for the shard's next batch.

mod placement;

use std::{collections::BTreeMap, time::Duration};

use forebay_types::{
    ItemAttributes, Namespace, Reason, Refusal, Schedule, ShardId, Side, Timestamp, Topic, Waits,
};

use self::placement::{Candidates, over_budget};
use super::dedupe;
use crate::{
    api::{Avoid, EnqueueCall, EnqueueOutcome, MemberPlaces, MisplacedMember, NewItem, Notice, RETRY_AFTER},
    core::{
        Core,
        refusals::{draining, no_shard, paused},
    },
    index::ShardIndex,
    messages::{reply::Reply, tenant_budget::Charge},
    planted::{Bug, is_older, on},
    routing::rendezvous::hash,
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

/// A call while its items are placed.
struct PlacedCall {
    /// When it came.
    now: Timestamp,
    /// The tenant.
    namespace: Namespace,
    /// Under what the call is remembered.
    request: Option<RequestKey>,
    /// The shard that the call names.
    named: Option<ShardId>,
    /// The shard in which another node has placed the items.
    only: Option<ShardId>,
    /// Why the call is not stored, if it is one that is stored whole or not at all.
    whole: Option<Refusal>,
    /// The items that were placed.
    parts: ByShard,
    /// The items that were not.
    refused: Vec<(usize, Refusal)>,
    /// The rank of the first item.
    first_rank: Option<i64>,
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
    let EnqueueCall { namespace, items, request_id, shard, only, avoid } = call;
    let named = shard.filter(|_| only.is_none() || !on(Bug::NamedShardForgotten));
    if let Some(unknown) = named.filter(|id| core.slots.index_of(*id).is_none()) {
        reply.send(Err(unknown_shard(unknown, only)));
        return;
    }
    // The caller does not count: a repeat works after a token was replaced.
    let request = request_id.map(|id| RequestKey {
        hash: hash(&[b"request", namespace.as_bytes(), id.as_bytes()]),
        names_shard: named.is_some(),
        content: content.filter(|_| !is_older(&core.launcher.address)),
    });
    let (id, count) = (core.ids.next(), items.len());
    let first_topic = items.first().map(|item| item.topic.clone());
    // A call with a request id is stored whole, or not at all.
    let whole = request.and_then(|_| items.iter().find_map(|item| pause_of(core, &namespace, &item.topic)));
    let (parts, refused) = (ByShard::new(), Vec::new());
    let (now, first_rank) = (core.time.now(), None);
    let mut placed = PlacedCall { now, namespace, request, named, only, whole, parts, refused, first_rank };
    avoid.shards.iter().for_each(|shard| core.peer_loads.refused(*shard));
    let mut candidates = Candidates::new(core, &avoid, id);
    for (index, item) in items.into_iter().enumerate() {
        placed.place(core, index, item, &mut candidates);
    }
    let full =
        |(shard, share): (&ShardIndex, &Share)| over_budget(core, &placed.namespace, *shard, share.bytes);
    if let Some(refusal) = placed.parts.iter().find_map(full) {
        reply.send(Err(refusal));
        return;
    }
    let at = core.time.monotonic();
    core.calls.begin_enqueue(id, count, charge, reply, at);
    if let Some(notice) = notice {
        let first_topic = first_topic.filter(|_| request.is_some() && core.knows_named_shards());
        let next_shard = first_topic.and_then(|topic| {
            let next = Candidates::new(core, &Avoid::default(), id).propose(core, &placed.namespace, &topic);
            next.map(|index| core.slots[index].id)
        });
        let misplaced =
            placed.refused.iter().filter_map(|(index, refusal)| MisplacedMember::of(*index, refusal));
        let first_rank = placed.first_rank.unwrap_or_default();
        // Without a listener nobody is interested.
        let _ = notice.send(MemberPlaces { next_shard, first_rank, misplaced: misplaced.collect() });
    }
    for (index, refusal) in placed.refused {
        core.calls.enqueue_done(id, index, Err(refusal));
    }
    for (shard, Share { items, .. }) in placed.parts {
        let namespace = placed.namespace.clone();
        accept(core, shard, ShardEnqueue { call: id, namespace, request, items });
    }
}

impl PlacedCall {
    /// Places one item, or refuses it.
    fn place(&mut self, core: &mut Core, index: usize, item: NewItem, candidates: &mut Candidates) {
        let rank = rank_of(core, &item, self.now);
        self.first_rank.get_or_insert(rank);
        let mut item = with_settings(core, &self.namespace, item);
        item.shard = item.shard.or(self.named);
        let key = item.dedupe_key.take().map(|key| key_of(core, &self.namespace, &item.topic, &key));
        let mut item = unplaced(index, item, key, self.only, rank, self.now);
        let is_keyed = self.request.is_some() || item.item.dedupe.is_some();
        let paused = self.whole.clone().or_else(|| pause_of(core, &self.namespace, &item.item.topic));
        match paused {
            // A key's answer is given nevertheless: the item is refused where it would be stored.
            Some(refusal) if is_keyed => item.item.refused = Some(refusal),
            Some(refusal) => return self.refused.push((index, refusal)),
            None => {}
        }
        let charge = item.item.charge();
        match choose_shard(core, &self.namespace, self.request.as_ref(), &item, candidates) {
            Ok(shard) => {
                candidates.uses(shard, charge);
                // The answer that it remembers is given while it is drained, too.
                let refused = &mut item.item.refused;
                *refused = refused.take().or_else(|| core.slots[shard].intake_refusal());
                self.parts.entry(shard).or_default().push(item.item);
            }
            Err(refusal) => {
                let elsewhere = refusal.elsewhere.as_ref();
                if let Some(shard) = elsewhere.and_then(|at| core.slots.index_of(at.shard)) {
                    candidates.uses(shard, charge);
                    core.peer_loads.sent(core.slots[shard].id, charge);
                }
                self.refused.push((index, refusal));
            }
        }
    }
}

/// The refusal of a call that names a shard which this node does not have.
fn unknown_shard(id: ShardId, only: Option<ShardId>) -> Refusal {
    match only {
        None => Refusal::field("shard", "names a shard that does not exist"),
        // The node that passed the call on knows it.
        Some(_) => Refusal::new(Reason::ShardUnavailable, format!("shard {id} is not known here yet"))
            .retry_after(RETRY_AFTER),
    }
}

/// Stores what was in no batch yet in another shard, if that is allowed.
pub(crate) fn choose_another_shard(core: &mut Core, part: ShardEnqueue, refusal: &Refusal) {
    let ShardEnqueue { call, namespace, request, items } = part;
    let mut parts = ByShard::new();
    let mut candidates = Candidates::new(core, &Avoid::default(), call);
    for item in items {
        let index = item.index;
        let fixed = request.is_some() || item.pinned || item.dedupe.is_some();
        let item = UnplacedItem { shard: None, only: None, item };
        let shard = match fixed {
            true => Err(refusal.clone()),
            false => choose_shard(core, &namespace, None, &item, &mut candidates),
        };
        match shard {
            Ok(shard) => {
                candidates.uses(shard, item.item.charge());
                parts.entry(shard).or_default().push(item.item);
            }
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
    namespace: &Namespace,
    request: Option<&RequestKey>,
    item: &UnplacedItem,
    candidates: &mut Candidates,
) -> Result<ShardIndex, Refusal> {
    if let Some(id) = item.shard {
        let shard = core.slots.index_of(id).ok_or_else(|| {
            Refusal::field(format!("items[{}].shard", item.item.index), "names a shard that does not exist")
        })?;
        // A request id has its home there, which looks it up while it is drained, too.
        return if request.is_some() { home_by_name(core, shard) } else { only_if_open(core, shard) };
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
    let shard = candidates.place(core, namespace, &item.item.topic, item.item.charge());
    let shard = shard.ok_or_else(no_shard)?;
    if core.slots.owned(shard).is_some() { Ok(shard) } else { Err(core.slots[shard].refusal()) }
}

/// A shard that a call with a request id names. Its owner must know of that: a node of an earlier release
/// would send the call to the home of the id.
fn home_by_name(core: &Core, shard: ShardIndex) -> Result<ShardIndex, Refusal> {
    only(core, shard).map_err(|refusal| match &refusal.elsewhere {
        Some(at) if core.peer_loads.has_older_program(&at.owner) => {
            let message = format!(
                "shard {} is owned by a node of an earlier release, where no call names it",
                at.shard
            );
            Refusal::new(Reason::ShardUnavailable, message).retry_after(RETRY_AFTER)
        }
        _ => refusal,
    })
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
