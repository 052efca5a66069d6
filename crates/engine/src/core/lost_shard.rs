//! Work that waited for a shard that was lost, until it is answered.

use forebay_types::Refusal;

use crate::{index::ShardIndex, shard::LostWork};

/// A shard that was lost, with what waits for its answer. There may be very much of it, so it is answered in
/// slices.
pub(crate) struct LostShard {
    /// The shard. It may have been taken over again since.
    pub index: ShardIndex,
    /// Why what it had not begun is refused.
    pub refusal: Refusal,
    /// The refusal of the batch in flight, if COMMIT was sent.
    pub unknown: Option<Refusal>,
    /// The work that waits, in the order in which it is answered.
    pub work: Box<dyn Iterator<Item = LostWork> + Send>,
}
