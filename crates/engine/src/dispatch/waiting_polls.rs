//! Polls that wait for items that a shard is about to store: new items may be handed to them directly.

use std::collections::BTreeMap;

use forebay_types::TopicName;

use super::{head::head, prefix};
use crate::{
    clock::Moment,
    core::{Core, policies::Eligible, slot::Slots, topics::TopicPart},
    index::ShardIndex,
    planted::{Bug, on},
    shard::{
        OwnedShard,
        work::{WaitingPoll, WaitingPolls},
    },
};

/// The polls that wait for topics of a shard's next enqueues, as long as nothing of these topics is ready. At
/// most one for each item: it takes one at least.
pub(crate) fn waiting_polls(core: &mut Core, index: ShardIndex) -> WaitingPolls {
    let mut waiting = WaitingPolls::new();
    if core.polls.is_empty() {
        return waiting;
    }
    let Some(shard) = core.slots.owned(index) else { return waiting };
    let margin = core.settings.limits.members;
    let items = next_items(shard);
    let moment = core.time.moment();
    for (name, items) in items {
        if core.policies.eligible(&name) != Eligible::All && !on(Bug::HandsOffPaused) {
            continue;
        }
        let mut polls = polls_of(core, &name, items);
        if on(Bug::LastWaiterFirst) {
            polls.reverse();
        }
        // A topic that is new to the shard has no part there yet. The limits on leases hold all the same.
        let refused =
            |shard: &OwnedShard| shard.new_topic_lease_refusal(&name.namespace, margin, moment.at).is_some();
        if polls.is_empty() || core.slots.owned(index).is_none_or(refused) {
            continue;
        }
        core.list(&name);
        let parts = core.topics.parts(&name);
        let ready = parts.into_iter().any(|part| may_be_ready(&mut core.slots, part, margin, moment));
        if !ready || on(Bug::HandsOffTooEarly) {
            waiting.insert(name, polls);
        }
    }
    waiting
}

/// The polls that wait for a topic by its name, or by a prefix of which nothing is ready: at most so many,
/// first come first.
fn polls_of(core: &Core, name: &TopicName, most: usize) -> Vec<WaitingPoll> {
    let prefixes = core.prefixes.covering(name).filter(|prefix| prefix::is_empty(core, prefix));
    let by_prefix =
        prefixes.flat_map(|prefix| core.topics.waiting(prefix).take(most).map(move |id| (id, prefix)));
    let by_name = core.topics.waiting(name).take(most).map(|id| (id, name));
    let mut lines: Vec<(u64, &TopicName)> = by_name.chain(by_prefix).collect();
    lines.sort_unstable();
    lines.dedup_by_key(|(id, _)| *id);
    let polls = lines.into_iter().filter_map(|(id, line)| core.polls.get(id)?.waiting(id, line));
    polls.take(most).collect()
}

/// The topics of a shard's next enqueues, and how many items of each there are.
fn next_items(shard: &OwnedShard) -> BTreeMap<TopicName, usize> {
    let mut topics = BTreeMap::new();
    for part in shard.next_enqueues() {
        for items in part.items.chunk_by(|one, next| one.topic == next.topic) {
            let name = TopicName { namespace: part.namespace.clone(), topic: items[0].topic.clone() };
            *topics.entry(name).or_default() += items.len();
        }
    }
    topics
}

/// Whether a shard has, or may have, something of a topic that could be delivered. Near the limits on leases
/// the usual path decides.
fn may_be_ready(slots: &mut Slots, part: TopicPart, margin: usize, moment: Moment) -> bool {
    if head(slots, part, moment).is_some() {
        return true;
    }
    // A shard that takes no part in the merge is left out here too.
    let Some(holding) = slots.merged_mut(part.shard) else { return false };
    let shard = &holding.shard;
    shard.is_fetching(part.topic)
        || !shard.is_fetched(part.topic)
        || shard.lease_refusal(part.topic, margin, moment.at).is_some()
}
