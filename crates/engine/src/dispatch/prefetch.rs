//! Sends the reads that fill windows: on demand, before a window runs empty, and in the background.

use forebay_types::TopicName;

use super::head::head;
use crate::{
    core::{Core, Ids, slot::Slots, topics::TopicPart},
    index::ShardIndex,
    shard::prefetch::Fetch,
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
pub(crate) fn top_up(core: &mut Core, name: &TopicName) {
    for part in core.topics.parts(name) {
        let Some(holding) = &mut core.slots[part.shard].holding else { continue };
        let read = core.ids.next();
        if let Some(request) = holding.shard.top_up(part.topic, read) {
            holding.reads.prefetch(read, request);
        }
    }
}

/// Whether some shard's head of this topic is not known yet. Begins to read it, unless many reads are under
/// way.
pub(crate) fn is_head_unknown(core: &mut Core, name: &TopicName) -> bool {
    let moment = core.time.moment();
    let mut unknown = false;
    for part in core.topics.parts(name) {
        if head(&mut core.slots, part, moment).is_some() {
            continue;
        }
        let Some(holding) = core.slots.merged_mut(part.shard) else { continue };
        if holding.shard.is_fetched(part.topic) {
            continue;
        }
        unknown = true;
        let read = core.ids.next();
        if let Some(request) = holding.shard.fetch_head(part.topic, read) {
            holding.reads.prefetch(read, request);
        }
    }
    unknown
}

/// Reads the heads of topics that were there when the shard was taken over, a few at a time.
pub(crate) fn fetch_heads(core: &mut Core, index: ShardIndex) {
    let Some(holding) = &mut core.slots[index].holding else { return };
    loop {
        let read = core.ids.next();
        let Some(request) = holding.shard.next_head(read) else { return };
        holding.reads.prefetch(read, request);
    }
}
