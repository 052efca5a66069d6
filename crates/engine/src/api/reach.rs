//! Where a node places new items.

/// Where a node places the items that name no shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reach {
    /// In its own shards.
    #[default]
    Own,
    /// In the shards of all nodes. The engine's caller passes on to the others what is theirs.
    All,
}
