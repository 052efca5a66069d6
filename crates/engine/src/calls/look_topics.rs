//! Topics for operators: the shards that can be looked at, and a slice of their topics.
//!
//! A walk through a million topics is many slices. Each is an event, so other callers have their turns
//! between two of them.

use std::collections::{BTreeMap, BTreeSet};

use forebay_types::{Monotonic, ShardId, Side, Timestamp, TopicName};

use crate::{
    api::{LifetimeCounts, Rates, ShardFigures, TopicFigures},
    clock::Moment,
    core::{Core, slot::Slot, topics::TopicPart},
    dispatch::head::head,
    index::ShardIndex,
    messages::{
        look::{OutQuestion, PartSnapshot, ShardLook, TopicSnapshot, TopicsSlice, TopicsSnapshot},
        reply::Reply,
    },
    shard::{LastTimes, OwnedShard, TopicTotals},
};

/// The shards that this node owns for certain, and all of whose topics are in its directory.
pub(crate) fn shards(core: &Core, reply: Reply<Vec<ShardLook>>) {
    let at = core.time.monotonic();
    let look = |(index, slot): (ShardIndex, &Slot)| {
        let holding = slot.holding.as_ref()?;
        let known = holding.shard.is_trusted(at) && !core.listing.is_walking(index);
        known.then(|| ShardLook {
            id: slot.id,
            index,
            term: slot.term,
            reader: holding.reads.reader.clone(),
            turn: holding.reads.look_turn.clone(),
            has_dormant: holding.shard.has_dormant_topics(),
            has_forgotten: holding.shard.has_forgotten(),
            has_tallies: holding.shard.has_tallies(),
        })
    };
    reply.send(Ok(core.slots.entries().filter_map(look).collect()));
}

/// A slice of the topics.
pub(crate) fn topics(core: &mut Core, slice: TopicsSlice, reply: Reply<TopicsSnapshot>) {
    let TopicsSlice { scope, from, waited, most, .. } = slice;
    let moment = core.time.moment();
    let inside = |name: &&TopicName| scope.namespace.is_none() || scope.contains(name);
    let names: Vec<TopicName> =
        core.topics.listed(from, waited).take_while(inside).take(most).cloned().collect();
    let looked_at = names.len();
    let through = names.last().filter(|_| looked_at == most).cloned();
    let mut doubtful = BTreeSet::new();
    let names = names.into_iter().filter(|name| scope.contains(name));
    let mut shards = BTreeMap::new();
    let topics = names.map(|name| topic(core, name, moment, &mut shards, &mut doubtful)).collect();
    let doubtful = doubtful.into_iter().collect();
    reply.send(Ok(TopicsSnapshot { topics, shards, through, looked_at, doubtful }));
}

/// A topic. What it has in each shard is added to `shards`.
fn topic(
    core: &mut Core,
    name: TopicName,
    moment: Moment,
    shards: &mut BTreeMap<ShardId, ShardFigures>,
    doubtful: &mut BTreeSet<ShardId>,
) -> TopicSnapshot {
    let waiting = core.waiting_count(&name);
    let (mut sum, mut oldest, mut parts) = (TopicTotals::default(), None, Vec::new());
    let (mut counted, mut rates, mut has_tallies) = (None, Rates::default(), true);
    let mut last = LastTimes::default();
    for part in core.topics.parts(&name) {
        let Some(totals) = totals(core, part, moment.at) else {
            doubtful.insert(core.slots[part.shard].id);
            continue;
        };
        let head = head(&mut core.slots, part, moment).map(|head| head.rank);
        oldest = oldest.into_iter().chain(head).min();
        sum += totals;
        let owned = core.slots.owned(part.shard);
        let flow = owned.and_then(|shard| shard.flow(part.topic, moment.at)).unwrap_or_default();
        counted = add_counted(counted, flow.counted);
        rates += flow.rates;
        last = last.later(flow.last);
        has_tallies &= owned.is_none_or(OwnedShard::has_tallies);
        let TopicTotals { ready, leased, scheduled, dead } = totals;
        let shard = core.slots[part.shard].id;
        let oldest_ready_at = head.map(Timestamp::from_micros);
        *shards.entry(shard).or_default() +=
            ShardFigures { ready, leased, scheduled, dead, oldest_ready_at, rates: flow.rates };
        parts.push(PartSnapshot { shard, topic: part.topic, scheduled, ready: ready + leased, dead });
    }
    let TopicTotals { ready, leased, scheduled, dead } = sum;
    let oldest_ready_at = oldest.map(Timestamp::from_micros);
    let reported = core.traffic.reported(&name);
    // Metrics alone show it. This is done for each of a million topics.
    let is_paused = |side| core.policies.pause(&name.namespace, &name.topic, side).is_some();
    let paused = Side::BOTH.map(|side| reported.topic && is_paused(side));
    let figures = TopicFigures {
        // Most of a million topics have none, and are not looked up.
        latencies: last.delivery().or(last.ack()).and_then(|_| core.latencies.of(&name, moment.at)),
        name,
        ready,
        leased,
        scheduled,
        dead,
        oldest_ready_at,
        next_due_at: None,
        waiting,
        // A part of the sum would look as if it went back.
        counted: counted.filter(|_| has_tallies),
        rates,
        last_delivery_at: last.delivery(),
        last_ack_at: last.ack(),
        paused,
        reported,
    };
    TopicSnapshot { figures, parts }
}

/// Adds what another shard has counted.
fn add_counted(sum: Option<LifetimeCounts>, more: Option<LifetimeCounts>) -> Option<LifetimeCounts> {
    match (sum, more) {
        (Some(mut sum), Some(more)) => {
            sum += more;
            Some(sum)
        }
        (sum, more) => sum.or(more),
    }
}

/// How many items of a topic a shard has, if this node owns it for certain.
fn totals(core: &Core, part: TopicPart, at: Monotonic) -> Option<TopicTotals> {
    let shard = core.slots.owned(part.shard)?;
    shard.is_trusted(at).then(|| shard.totals(part.topic).unwrap_or_default())
}

/// Which of these items are out: leased, or on their way to a lease. `None`: the shard was lost meanwhile.
pub(crate) fn out(core: &Core, question: &OutQuestion, reply: Reply<Option<Vec<bool>>>) {
    let OutQuestion { shard, term, seqs, .. } = question;
    let slot = &core.slots[*shard];
    let owned = slot.owned().filter(|shard| slot.term == *term && shard.is_trusted(core.time.monotonic()));
    let out = owned.map(|shard| seqs.iter().map(|seq| shard.is_out(*seq)).collect());
    reply.send(Ok(out));
}
