//! What a node has of a shard that it owns.

use forebay_types::Monotonic;

use crate::{io::reads::Reads, shard::OwnedShard};

/// A shard that the node owns, and the way to read it.
pub(crate) struct Holding {
    /// Its memory.
    pub shard: OwnedShard,
    /// Reads it, in the name of the current term.
    pub reads: Reads,
}

/// A shard that is about to be handed over. It takes nothing new; what it has accepted is committed.
pub(crate) struct HandOver {
    /// Who shall have it next. Empty: anybody may.
    pub successor: String,
    /// When what is not committed by then is refused.
    pub until: Monotonic,
    /// Its task was told to release it.
    pub ordered: bool,
}
