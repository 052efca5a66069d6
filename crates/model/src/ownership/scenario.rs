//! Beginning and bounds of a check.

use std::time::Duration;

use forebay_types::Monotonic;

use crate::Mistake;

/// A tick.
const TICK: Duration = Duration::from_millis(500);

/// How often each kind of fault may still happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Faults {
    /// An operation or a question is sent, and takes effect at any later time.
    pub delays: u8,
    /// The answer to an operation does not come. It may take effect all the same.
    pub breaks: u8,
    /// A process stands still until it is told to go on.
    pub pauses: u8,
    /// A process dies. Another one with its name and address may start at any time.
    pub kills: u8,
    /// The shard is assigned to another node. Each node hears of that at another time.
    pub moves: u8,
    /// The server takes two seconds a commit, until it is told to be fast again.
    pub slows: u8,
    /// The server forgets the last take-over, as a replica that lagged does.
    pub forgets: u8,
}

/// Beginning and bounds of a check.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// How long a shard stays a node's own without a renewal, in ticks, node by node.
    pub leases: Vec<u8>,
    /// Node 0 owns the shard at first. Otherwise nobody ever did.
    pub owned: bool,
    /// The shard is for one node at a time, at first for node 0. Otherwise every node is to own it.
    pub assigned: bool,
    /// A node renews its claim in each tick, whatever else happens. Otherwise it may fail to.
    pub diligent: bool,
    /// While the server is slow, what candidates try there happens to be fast. They have only seen in their
    /// looks that it is slow.
    pub fast_probes: bool,
    /// How many ticks a load takes.
    pub load: u8,
    /// How many batches may be sent.
    pub calls: u8,
    /// Faults that may happen.
    pub faults: Faults,
    /// Until this tick.
    pub faults_until: u8,
    /// A planted mistake.
    pub mistake: Option<Mistake>,
}

impl Scenario {
    /// Node 0 owns a shard that every one of so many nodes may take over. Nothing goes wrong.
    pub fn nodes(count: usize) -> Self {
        Self {
            leases: vec![3; count],
            owned: true,
            assigned: false,
            diligent: false,
            fast_probes: false,
            load: 0,
            calls: 1,
            faults: Faults::default(),
            faults_until: 5,
            mistake: None,
        }
    }

    /// The same with a mistake.
    pub fn with(self, mistake: Mistake) -> Self {
        Self { mistake: Some(mistake), ..self }
    }

    /// Whether a mistake is planted.
    pub(super) fn has(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    /// A node's shard lease.
    pub(super) fn lease(&self, node: usize) -> Duration {
        TICK * u32::from(self.leases[node])
    }
}

/// A tick's time.
pub(super) fn at(tick: u8) -> Monotonic {
    Monotonic::from_start(TICK * u32::from(tick))
}

/// Where a node answers.
pub(super) fn address(node: usize) -> String {
    format!("{node}:1")
}

/// The node that answers at an address.
pub(super) fn node_at(address: &str) -> usize {
    address.trim_end_matches(":1").parse().unwrap_or_default()
}
