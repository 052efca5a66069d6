//! Sends the reads that fill windows: on demand, before a window runs empty, and in the background.

use forebay_types::TopicName;

use super::head::{Head, head};
use crate::{
    clock::Moment,
    core::{
        Core, Ids,
        policies::Eligible,
        slot::Slots,
        topics::{Parts, TopicPart},
    },
    index::ShardIndex,
    planted::{Bug, on},
    shard::Fetch,
};

/// Reads on behind an empty window. Returns whether there is something to read.
pub(crate) fn fetch_next(slots: &mut Slots, ids: &mut Ids, part: TopicPart, wanted: usize) -> bool {
    let Some(holding) = &mut slots[part.shard].holding else { return false };
    let read = ids.next();
    match holding.shard.fetch_next(part.topic, read, wanted) {
        Fetch::Complete => false,
        Fetch::UnderWay => true,
        Fetch::Begin(request) => {
            holding.reads.prefetch(read, request);
            true
        }
    }
}

/// Fills the windows of a topic before they run empty.
pub(crate) fn top_up(slots: &mut Slots, ids: &mut Ids, parts: Parts) {
    for part in parts {
        let Some(holding) = &mut slots[part.shard].holding else { continue };
        let read = ids.next();
        if let Some(request) = holding.shard.top_up(part.topic, read) {
            holding.reads.prefetch(read, request);
        }
    }
}

/// Whether some shard's head of this topic is not known yet. Begins to read it, unless many reads are under
/// way.
fn is_head_unknown(slots: &mut Slots, ids: &mut Ids, parts: &[TopicPart], moment: Moment) -> bool {
    let mut unknown = false;
    for part in parts.iter().copied() {
        if head(slots, part, moment).is_some() {
            continue;
        }
        let Some(holding) = slots.merged_mut(part.shard) else { continue };
        if holding.shard.is_fetched(part.topic) {
            continue;
        }
        unknown = true;
        let read = ids.next();
        if let Some(request) = holding.shard.fetch_head(part.topic, read) {
            holding.reads.prefetch(read, request);
        }
    }
    unknown
}

/// The first item of a topic in all shards of the node.
pub(crate) enum BestHead {
    /// This one, or there is none.
    Known(Option<Head>),
    /// A shard has to be read first.
    Unknown,
}

/// The item of a topic that the node would deliver next, if it is not paused itself: in a paused namespace it
/// keeps its place for the end of the pause. Begins to read a head that is not known.
pub(crate) fn best_head(core: &mut Core, name: &TopicName) -> BestHead {
    if core.policies.eligible(name) == Eligible::TopicPaused && !on(Bug::PausedInPrefix) {
        return BestHead::Known(None);
    }
    let moment = core.time.moment();
    // A part that is not listed yet is looked at once it is.
    let parts = core.topics.parts(name);
    if is_head_unknown(&mut core.slots, &mut core.ids, &parts, moment) {
        return BestHead::Unknown;
    }
    BestHead::Known(parts.into_iter().filter_map(|part| head(&mut core.slots, part, moment)).min())
}

/// Reads the heads of topics that were there when the shard was taken over, a few at a time.
pub(crate) fn fetch_heads(slots: &mut Slots, ids: &mut Ids, index: ShardIndex) {
    let Some(holding) = &mut slots[index].holding else { return };
    loop {
        let read = ids.next();
        let Some(request) = holding.shard.next_head(read) else { return };
        holding.reads.prefetch(read, request);
    }
}
