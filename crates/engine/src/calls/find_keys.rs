//! Tells the owner of keys' homes what an earlier home, which this node owns, remembers of them.
//!
//! The answer has to hold from now on. So it is given only where the shard has recorded the very set of
//! shards that the asker knows: then it stores no key any more whose home is elsewhere under that set. And it
//! is given only while no other node can own the shard.

use forebay_store::StoreError;
use tokio::sync::oneshot;

use crate::{
    api::{KeyQuestion, RememberedKey},
    core::Core,
    index::ShardIndex,
};

/// Looks the keys up. A question that can't be answered now is dropped: the asker's caller tries again.
pub(crate) fn serve(core: &mut Core, question: KeyQuestion, reply: oneshot::Sender<Vec<RememberedKey>>) {
    let KeyQuestion { shard, homes, keys } = question;
    let Some(index) = core.slots.index_of(shard) else { return };
    let at = core.time.monotonic();
    let is_same = homes == core.homes.current();
    if !is_same || keys.len() > core.settings.limits.members || core.stopping.is_releasing() {
        return;
    }
    let Some(holding) = &core.slots[index].holding else { return };
    if holding.shard.is_recording_topology() || !holding.shard.is_trusted(at) {
        return;
    }
    let read = core.ids.next();
    if core.questions.ask(read, index, reply) {
        holding.reads.dedupe(read, holding.shard.generations(), keys);
    }
}

/// A shard was read.
pub(crate) fn found(
    core: &mut Core,
    index: ShardIndex,
    read: u64,
    hits: Result<Vec<RememberedKey>, StoreError>,
) {
    let at = core.time.monotonic();
    let Some(reply) = core.questions.take(read) else { return };
    let slot = &mut core.slots[index];
    match hits {
        Ok(hits) if slot.owned().is_some_and(|shard| shard.is_trusted(at)) => {
            let _ = reply.send(hits);
        }
        Ok(_) => {}
        Err(error) => slot.health.read_failed(&error, at),
    }
}
