//! The counts of topics that are forgotten.

use forebay_types::{Namespace, ShardId};

use crate::{
    api::LifetimeCounts,
    core::Core,
    index::ShardIndex,
    messages::{look::ForgottenQuestion, reply::Reply},
};

/// Tells it of one shard.
pub(crate) fn look(
    core: &Core,
    question: &ForgottenQuestion,
    reply: Reply<Option<Vec<(Namespace, LifetimeCounts)>>>,
) {
    let ForgottenQuestion { shard, term, from, through, most, .. } = question;
    let slot = &core.slots[*shard];
    let owned = slot.owned().filter(|shard| slot.term == *term && shard.is_trusted(core.time.monotonic()));
    let found = owned.map(|shard| shard.forgotten(from, through.as_ref()).take(*most).collect());
    reply.send(Ok(found));
}

/// From their next batches on the shards count the namespace anew. Those that can't yet are left out: they
/// have not read what they counted before they were taken over.
pub(crate) fn forget(core: &mut Core, namespace: &Namespace, reply: Reply<Vec<ShardId>>) {
    let at = core.time.monotonic();
    let owned: Vec<ShardIndex> = core
        .slots
        .entries()
        .filter(|(_, slot)| slot.holding.is_some() && slot.hand_over.is_none())
        .map(|(index, _)| index)
        .collect();
    let mut done = Vec::new();
    for index in owned {
        let id = core.slots[index].id;
        let Some(shard) = core.slots.owned_mut(index).filter(|shard| shard.is_trusted(at)) else { continue };
        if shard.forget_counts(namespace) {
            done.push(id);
        }
    }
    reply.send(Ok(done));
}
