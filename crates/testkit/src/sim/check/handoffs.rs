//! PRIORITY in a direct hand-off: an item that is inserted and leased in one batch must not pass over a
//! better one that the same batch makes ready. This holds in every run, whatever goes wrong.

use std::collections::HashMap;

use forebay_types::{ItemId, Key, ShardId, TopicName};

use super::{
    items::{Items, Location, Phase},
    record::Finding,
};
use crate::fake::Change;

/// A topic's share of one batch: the shard, the event at which the batch took effect, and the topic.
type InBatch<'a> = (ShardId, u64, &'a TopicName);

pub(super) fn check(items: &Items, found: &mut Vec<Finding>) {
    let mut readied: HashMap<InBatch<'_>, Vec<(Key, ItemId)>> = HashMap::new();
    for item in items.by_id.values() {
        for phase in item.phases.iter().filter(|phase| is_readied(phase)) {
            let Some(topic) = &item.topic else { continue };
            let batch = (item.id.shard, phase.done.event, topic);
            readied.entry(batch).or_default().push((phase.key, item.id));
        }
    }
    for item in items.by_id.values() {
        let (Some(first), Some(topic)) = (item.phases.first(), &item.topic) else { continue };
        if first.lease.is_none() {
            continue;
        }
        let others = readied.get(&(item.id.shard, first.done.event, topic));
        for (key, other) in others.into_iter().flatten().filter(|(key, _)| *key < first.key) {
            let event = first.done.event;
            let what = format!(
                "{} at {:?} was handed off in batch {event}, which made {other} at {key:?} ready",
                item.id, first.key
            );
            found.push(("PRIORITY", what));
        }
    }
}

/// Whether the batch made an item ready that was there before.
fn is_readied(phase: &Phase) -> bool {
    let makes_ready = |change: &Change| {
        matches!(
            change,
            Change::Promoted(_)
                | Change::PutOff(..)
                | Change::Requeued(_)
                | Change::Redriven(_)
                | Change::Updated(_)
                | Change::Operated(_)
        )
    };
    let back = phase.changes.iter().any(makes_ready);
    let expired = phase.expires_at.is_some_and(|end| end <= phase.done.at);
    back && phase.location == Location::Ready && phase.lease.is_none() && !expired
}
