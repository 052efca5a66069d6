//! The duty of a node for a shard. It is decided above the engine.

/// The duty of a node for a shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Duty {
    /// Own it: take it over as soon as that may be.
    Own,
    /// Leave it to other nodes. If this node owns the shard, it commits what it has accepted and hands the
    /// shard over.
    Leave {
        /// The `host:port` of the node that shall have it next. Empty: anybody may.
        successor: String,
    },
}

impl Duty {
    /// The node is to own the shard.
    pub const fn is_own(&self) -> bool {
        matches!(self, Self::Own)
    }
}
