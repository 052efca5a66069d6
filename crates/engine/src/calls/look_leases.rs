//! Open deliveries, for operators. The log of a shard is in the order of their ends, so the deliveries of one
//! topic are looked for among all.

use forebay_store::LeaseEntry;
use forebay_types::{Seq, Timestamp, TopicName};

use crate::{
    api::{ConsumersCall, LeaseSnapshot},
    core::Core,
    messages::{
        look::{KnownConsumers, LeaseQuestion, LeasesSnapshot, WhichLeases},
        reply::Reply,
    },
    shard::OwnedShard,
};

/// A slice of the open deliveries.
pub(crate) fn serve(core: &Core, question: &LeaseQuestion, reply: Reply<Option<LeasesSnapshot>>) {
    let LeaseQuestion { shard, term, which, .. } = question;
    let slot = &core.slots[*shard];
    let owned = slot.owned().filter(|shard| slot.term == *term && shard.is_trusted(core.time.monotonic()));
    reply.send(Ok(owned.map(|shard| look(shard, which))));
}

fn look(shard: &OwnedShard, which: &WhichLeases) -> LeasesSnapshot {
    match which {
        WhichLeases::Of(seq) => {
            let lease = shard.lease_of(*seq);
            let leases = lease.map(|lease| seen(lease.deadline, &lease)).into_iter().collect();
            LeasesSnapshot { leases, looked_at: 1, ..LeasesSnapshot::default() }
        }
        WhichLeases::OfTopic { topic, after, most } => behind(shard, *after, *most, |end, entry, found| {
            if entry.topic == *topic {
                found.leases.push(seen(end, entry));
            }
        }),
        WhichLeases::OfTenant { tenant, after, most } => behind(shard, *after, *most, |end, entry, found| {
            let is_of = |name: &&TopicName| tenant.as_ref().is_none_or(|it| name.namespace == *it);
            if let Some(name) = shard.topic_name(entry.topic).filter(is_of) {
                found.leases.push(seen(end, entry));
                found.topics.push(name.clone());
            }
        }),
    }
}

/// Looks at so many leases.
fn behind(
    shard: &OwnedShard,
    after: (Timestamp, Seq),
    most: usize,
    look: impl Fn(Timestamp, &LeaseEntry, &mut LeasesSnapshot),
) -> LeasesSnapshot {
    let mut found = LeasesSnapshot::default();
    for (end, entry) in shard.leases_behind(after).take(most) {
        found.looked_at += 1;
        found.through = Some((end, entry.seq));
        look(end, entry, &mut found);
    }
    found.through = found.through.filter(|_| found.looked_at == most);
    found
}

/// The consumers that the node remembers.
pub(crate) fn consumers(core: &Core, call: &ConsumersCall, reply: Reply<KnownConsumers>) {
    let (consumers, cut) = core.consumers.of(call, core.time.monotonic());
    reply.send(Ok(KnownConsumers { consumers, cut }));
}

fn seen(ends_at: Timestamp, entry: &LeaseEntry) -> (Seq, LeaseSnapshot) {
    let LeaseEntry { leased_at, priority, attributes, .. } = *entry;
    let (consumer, delivery) = (entry.consumer.clone(), entry.delivery());
    let lease = LeaseSnapshot { consumer, leased_at, ends_at, delivery, priority, attributes };
    (entry.seq, lease)
}
