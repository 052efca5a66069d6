//! The head of a topic in one shard: the item that the shard would deliver next.

use forebay_types::ItemId;

use crate::{
    clock::Moment,
    core::{slot::Slots, topics::TopicPart},
};

/// The best item of a topic in one shard. Heads are ordered as items are delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Head {
    /// Smaller numbers are delivered first.
    pub priority: i32,
    /// Then the smaller rank.
    pub rank: i64,
    /// Then the smaller id.
    pub item: ItemId,
    /// Where it is.
    pub part: TopicPart,
    /// Bytes of its body.
    pub bytes: usize,
}

/// The best deliverable item of a topic in one shard that takes part in the merge.
pub(crate) fn head(slots: &mut Slots, part: TopicPart, moment: Moment) -> Option<Head> {
    let id = slots[part.shard].id;
    let (key, bytes) = slots.merged_mut(part.shard)?.shard.head(part.topic, moment)?;
    let item = ItemId { shard: id, seq: key.seq };
    Some(Head { priority: key.priority, rank: key.rank, item, part, bytes })
}
