//! Faults that may disturb a cluster.

use crate::fake::Dice;

/// Fault that may disturb a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A node is killed.
    Fails,
    /// A node leaves its cluster and stops.
    Leaves,
    /// A node stands still, as under SIGSTOP.
    StandsStill,
    /// The event loop of a node stands still, and its membership task does not. Another node fails meanwhile.
    EngineStandsStill,
    /// Ways between nodes are cut.
    Cut,
    /// A node does not reach one of the database servers.
    CutServer,
    /// A node reaches neither the catalog nor any server.
    CutOff,
    /// A node does not reach the catalog. It reaches all else.
    CutCatalog,
    /// The catalog is out of reach. A node may fail meanwhile.
    CatalogAway,
    /// The catalog goes back to an earlier state, and then forward again.
    CatalogGoesBack,
    /// The catalog is slow, or loses calls and answers.
    CatalogTrouble,
    /// A database server is down or slow.
    ServerTrouble,
    /// A database server loses COMMITs, or the answers to them.
    LosesCommits,
    /// The clock of a node or of a server steps.
    ClockSteps,
    /// Messages between nodes get lost, or arrive twice.
    LosesMessages,
    /// An operator pins a shard, or ends a pin.
    Pin,
    /// An operator drains a node, or undoes that.
    Drain,
    /// An operator adds, drains or removes a shard.
    ChangeShards,
    /// None.
    Nothing,
}

impl Fault {
    /// One of them, but for a step of a clock.
    pub fn draw(dice: &mut Dice) -> Self {
        match dice.below(100) {
            0..16 => Self::Fails,
            16..22 => Self::Leaves,
            22..30 => Self::StandsStill,
            30..36 => Self::EngineStandsStill,
            36..46 => Self::Cut,
            46..52 => Self::CutServer,
            52..56 => Self::CutOff,
            56..61 => Self::CatalogAway,
            61..65 => Self::CatalogGoesBack,
            65..68 => Self::CatalogTrouble,
            68..74 => Self::ServerTrouble,
            74..77 => Self::LosesMessages,
            77..84 => Self::Pin,
            84..87 => Self::Drain,
            87..92 => Self::ChangeShards,
            92..96 => Self::LosesCommits,
            96..98 => Self::CutCatalog,
            _ => Self::Nothing,
        }
    }
}
