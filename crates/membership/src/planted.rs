//! Bugs of this crate that tests plant, to see whether the simulation's checker catches them.

#[cfg(feature = "planted-bugs")]
pub use forebay_types::planted::plant;

pub(crate) use forebay_types::planted::on;

/// A mistake that somebody could make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Bug {
    /// A shard is given to its next owner unasked.
    GivesUnasked,
    /// A node that was voted out waits for the answers of nodes that it does not reach.
    AsksUnreached,
    /// A node that is cut off from the catalog alone counts as dead.
    CutOffFromCatalogIsDead,
    /// A catalog that went back is followed.
    FollowsOlderCatalog,
    /// A node says that it lives while its engine does not answer.
    BeatsWhileHung,
    /// Shards without an owner are taken by all nodes at once while the catalog does not answer.
    TakesOutOfTurn,
    /// Nobody takes them.
    TakesNothingUnowned,
    /// A node whose shards are silent may be given shards.
    SilentNodesForgotten,
    /// Shards that have just moved move again.
    MovesForgotten,
    /// Moves that are under way do not count.
    MovesUnderWayIgnored,
    /// No shard moves for evenness.
    NeverBalances,
}
