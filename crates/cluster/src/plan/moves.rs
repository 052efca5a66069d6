//! Moves, why they are made, and the times and numbers that bound them.

use std::{collections::BTreeMap, fmt, time::Duration};

use forebay_store::Home;
use forebay_types::{NodeName, ShardId};

/// A node takes shards only after it has lived for so long: one that fails as it starts moves none.
pub const JOINER_WAITS: Duration = Duration::from_secs(5);
/// The same where no node has lived for that long.
pub const FIRST_JOINERS_WAIT: Duration = Duration::from_secs(1);
/// A shard that has moved is not moved again for evenness within this time.
pub const MOVED_STAYS: Duration = Duration::from_secs(30);
/// A new home is left alone for so long, even if it seems to fail. Nodes that take each other for dead, or do
/// not see the same servers answer, would otherwise take each shard from each other as fast as the catalog
/// answers.
pub const NEW_HOME_STAYS: Duration = Duration::from_millis(1_500);
/// A node takes part in so many moves from a living node at once, in either role.
pub const MOVES_MAX: usize = 2;
/// A node hands over once most of the others have not reached it for so long.
pub const OUTVOTED_AFTER: Duration = Duration::from_secs(8);

/// A change of a shard's home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Move {
    /// The shard.
    pub shard: ShardId,
    /// The home that it has.
    pub from: Option<NodeName>,
    /// The home that it should have. `None`: the shard is offline.
    pub to: Option<NodeName>,
    /// Why.
    pub reason: Reason,
}

/// Why a shard moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// The shard is offline.
    Offline,
    /// The shard has no home yet.
    Homeless,
    /// Its home is dead or has left.
    NodeGone,
    /// Its home does not reach the shard's database server, and others do.
    ServerUnreached,
    /// Its home cannot serve it, although the database server answers: batches are stuck there, or its
    /// program cannot use the schema.
    Stuck,
    /// Its home drains.
    Draining,
    /// Most of the others do not reach its home.
    Outvoted,
    /// Another node has fewer shards.
    Balance,
}

impl Reason {
    /// Whether the shard has no owner that serves it, so that it does not wait for other moves.
    pub fn is_failover(self) -> bool {
        matches!(self, Self::Offline | Self::Homeless | Self::NodeGone | Self::ServerUnreached | Self::Stuck)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Offline => "the shard is offline",
            Self::Homeless => "the shard has no home",
            Self::NodeGone => "its node is dead or has left",
            Self::ServerUnreached => "its node does not reach the database server",
            Self::Stuck => "its node cannot serve it, although the database server answers",
            Self::Draining => "its node drains",
            Self::Outvoted => "most nodes do not reach its node",
            Self::Balance => "another node has fewer shards",
        })
    }
}

/// The moves as changes for [`Catalog::assign`](forebay_store::Catalog::assign). A pin ends with a move.
pub fn changes(moves: &[Move]) -> BTreeMap<ShardId, Option<Home>> {
    let home = |to: &NodeName| Home { node: to.clone(), pinned: false };
    moves.iter().map(|it| (it.shard, it.to.as_ref().map(home))).collect()
}
