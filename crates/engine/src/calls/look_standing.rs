//! How a topic stands in each shard of this node, for operators.

use forebay_types::{Monotonic, Seq, Timestamp, TopicId, TopicName};

use crate::{
    api::{BreakerPhase, Standing, TopicStanding},
    core::{Core, slot::Slot},
    index::ShardIndex,
    messages::{look::StandingSnapshot, reply::Reply},
    shard::OwnedShard,
};

/// Leases of all topics that are looked at in all shards together, to find the next one of the topic that
/// ends.
const LEASES_MAX: usize = 1_000;

/// How a topic stands. Shards that the node may not own any more are left out.
pub(crate) fn serve(core: &mut Core, name: &TopicName, reply: Reply<StandingSnapshot>) {
    let (at, now) = (core.time.monotonic(), core.time.now());
    let core = &*core;
    let waiting = core.asking_count(name) as u64;
    let leases_max = LEASES_MAX / core.slots.entries().count().max(1);
    let standing = |(index, slot): (ShardIndex, &Slot)| {
        let shard = slot.owned()?;
        let breaker = (slot.health.phase() == BreakerPhase::Open).then(|| {
            let since = slot.health.breaker_since().unwrap_or(at);
            now.minus(at.since(since))
        });
        // The standing in a shard that has ceased to answer is told, although another node may have it by
        // now.
        let known = breaker.is_some() || shard.is_trusted(at) && !core.listing.is_walking(index);
        known.then(|| {
            let topic = shard.topic_id(name);
            let handed_over = slot.hand_over.is_some();
            let standing =
                Standing { breaker, handed_over, waiting, ..of_shard(shard, slot, topic, at, leases_max) };
            (standing, topic)
        })
    };
    let (shards, topics) = core.slots.entries().filter_map(standing).unzip();
    let (polls, missing_sources) = (core.waiting_count(name) as u64, core.missing_sources(at));
    reply.send(Ok(StandingSnapshot { standing: TopicStanding { shards, polls, missing_sources }, topics }));
}

fn of_shard(
    shard: &OwnedShard,
    slot: &Slot,
    topic: Option<TopicId>,
    at: Monotonic,
    leases_max: usize,
) -> Standing {
    let totals = topic.and_then(|topic| shard.totals(topic)).unwrap_or_default();
    let head = topic.and_then(|topic| shard.known_head(topic));
    let refusal = topic.filter(|_| totals.ready > 0).and_then(|topic| shard.lease_refusal(topic, 1, at));
    let lease = || {
        let after = (Timestamp::MIN, Seq(0));
        let mut leases = shard.leases_behind(after).take(leases_max);
        leases.find(|(_, lease)| Some(lease.topic) == topic)
    };
    let next_lease = (totals.leased > 0).then(lease).flatten();
    Standing {
        shard: slot.id,
        ready: totals.ready,
        leased: totals.leased,
        scheduled: totals.scheduled,
        dead: totals.dead,
        head_ready_at: head.map(|key| Timestamp::from_micros(key.rank)),
        head_unknown: topic.is_some_and(|topic| shard.has_unknown_head(topic)),
        breaker: None,
        handed_over: false,
        lease_refusal: refusal.map(|refusal| refusal.message),
        waiting: 0,
        next_lease: next_lease.map(|(end, lease)| (lease.consumer.clone(), end)),
        next_due_at: None,
    }
}

#[cfg(test)]
mod tests {
    use forebay_types::ShardId;

    use super::*;
    use crate::shard::tests;

    fn standing(core: &mut Core) -> Vec<Standing> {
        let (reply, mut answer) = Reply::channel();
        serve(core, &TopicName::new("ns", "t"), reply);
        answer.try_recv().unwrap().unwrap().standing.shards
    }

    #[tokio::test]
    async fn what_a_shard_held_is_told_while_its_breaker_is_open() {
        let (mut core, _orders) = Core::for_test_with_shard();
        let index = ShardIndex(0);
        tests::store_some(core.slots.owned_mut(index).unwrap(), 3);
        let told = standing(&mut core);
        assert_eq!((told.len(), told[0].ready, &told[0].breaker), (1, 3, &None));
        assert!(told[0].head_ready_at.is_some() && !told[0].head_unknown && told[0].waiting == 0);
        let at = core.time.monotonic();
        (0..3).for_each(|_| core.slots[index].health.strike("no answer".to_owned(), at));
        let told = standing(&mut core);
        let is_open = told[0].breaker.is_some();
        assert_eq!((told[0].shard, told[0].ready, is_open), (ShardId(1), 3, true));
    }

    #[tokio::test]
    async fn a_head_that_somebody_waits_for_is_unknown_until_it_is_read() {
        let (mut core, _orders) = Core::for_test_with_shard();
        let shard = core.slots.owned_mut(ShardIndex(0)).unwrap();
        tests::store_some(shard, 1);
        tests::forget_window(shard);
        assert!(!standing(&mut core)[0].head_unknown, "nobody waits");
        let shard = core.slots.owned_mut(ShardIndex(0)).unwrap();
        shard.outstanding_until(tests::T, Monotonic::default());
        let told = &standing(&mut core)[0];
        assert!(told.head_unknown && told.ready == 1 && told.head_ready_at.is_none());
    }
}
