//! Rules of a proxy for its connections at a moment.

use std::{sync::Arc, time::Duration};

use tokio::sync::watch;

use super::trap::Trap;

/// One direction of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Toward {
    /// From the client to the target.
    Target,
    /// From the target to the client.
    Client,
}

/// Which directions are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ways {
    /// One of them.
    One(Toward),
    /// Both.
    Both,
}

impl Ways {
    /// For each direction, whether it is meant.
    pub(super) fn set(self) -> [bool; 2] {
        [Toward::Target, Toward::Client].map(|toward| self == Self::Both || self == Self::One(toward))
    }
}

/// An end after so many bytes.
#[derive(Debug, Clone)]
pub(super) struct Cut {
    /// The direction in which bytes are counted.
    pub toward: Toward,
    /// How many of them pass.
    pub bytes: usize,
    /// Counts the cuts of a proxy, so that a connection begins to count anew at each.
    pub number: u64,
    /// How many traps of the proxy have gone off, and how many connections were cut.
    pub sprung: watch::Sender<u32>,
}

/// The rules of a moment, for all connections. By default everything passes.
#[derive(Clone, Default)]
pub(super) struct Rules {
    /// For each direction, whether nothing is read.
    pub stalled: [bool; 2],
    /// For each direction, how long a piece is held up.
    pub delays: [Duration; 2],
    /// New connections are reset.
    pub refuse: bool,
    /// How often all connections were reset. A connection that sees it grow is reset.
    pub resets: u64,
    /// How many cuts the proxy has had.
    pub cuts: u64,
    /// Ends connections after so many bytes.
    pub cut: Option<Cut>,
    /// Waits for what the client sends.
    pub trap: Option<Arc<Trap>>,
}
