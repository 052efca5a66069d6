//! The memory of a shard that a node owns.

use crate::{io::reads::Reads, shard::OwnedShard};

/// A shard that the node owns, and the way to read it.
pub(crate) struct ReadableShard {
    /// Its memory.
    pub shard: OwnedShard,
    /// Reads it, in the name of the current term.
    pub reads: Reads,
}
