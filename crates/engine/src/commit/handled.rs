//! How long the deliveries lasted that a batch acked.

use std::time::Duration;

use forebay_types::{Namespace, Timestamp, TopicId};

use crate::{
    clock::Moment,
    core::Core,
    index::ShardIndex,
    shard::{PlannedAction, work::SettleKind},
};

/// Counts them for their namespaces and topics.
pub(super) fn count(core: &mut Core, index: ShardIndex, done: &[PlannedAction]) {
    let Moment { now, at } = core.time.moment();
    let acked: Vec<(&Namespace, TopicId, Duration)> = done
        .iter()
        .filter_map(acked)
        .map(|(namespace, topic, leased_at)| (namespace, topic, now.since(leased_at)))
        .collect();
    for of_one in acked.chunk_by(|(_, one, _), (_, other, _)| one == other) {
        let Some((namespace, topic, _)) = of_one.first() else { continue };
        let lengths = of_one.iter().map(|(.., lasted)| *lasted);
        core.traffic.handled(namespace, lengths.clone());
        // A topic that the batch dropped has no name any more, and nobody asks for it.
        if let Some(name) = core.slots.owned(index).and_then(|shard| shard.topic_name(*topic)) {
            core.latencies.handled(name, lengths, at);
        }
    }
}

/// The namespace, the topic and the beginning of a delivery that was acked.
fn acked(planned: &PlannedAction) -> Option<(&Namespace, TopicId, Timestamp)> {
    let PlannedAction::Settle(settle) = planned else { return None };
    let is_ack = matches!(settle.request.kind, SettleKind::Ack);
    is_ack.then_some((&settle.request.namespace, settle.lease.topic, settle.lease.leased_at))
}
