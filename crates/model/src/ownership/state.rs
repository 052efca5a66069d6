//! One moment of the model.

use forebay_engine::claim::{DeniedTenure, HandOver, Trust, Watch};
use forebay_types::Incarnation;

use super::{
    rows::{Rows, Tenure},
    scenario::{Faults, Scenario, address, at},
    sent::Operation,
};
use crate::Mistake;

/// One moment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    /// The tick.
    pub now: u8,
    /// The shard, at its server.
    pub rows: Rows,
    /// The shard as it was before its last take-over, where that may be forgotten.
    pub before: Option<Rows>,
    /// The nodes.
    pub nodes: Vec<Node>,
    /// Operations under way.
    pub operations: Vec<Operation>,
    /// Faults that may still happen.
    pub left: Faults,
    /// The server takes two seconds a commit.
    pub slow: bool,
    /// The node that is to own the shard, if it is for one at a time.
    pub home: usize,
    /// Answer to the caller of each batch.
    pub told: Vec<CallerAnswer>,
    /// Which node has told a candidate that it does not own the shard in which tenure.
    pub denied: Vec<(usize, Tenure)>,
    /// How many incarnations there were.
    pub incarnations: u8,
    /// The end was reached.
    pub over: bool,
    /// The first property that was broken while the end was played.
    pub broken: Option<&'static str>,
}

/// Answer to a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallerAnswer {
    /// Nothing yet.
    Nothing,
    /// That its batch is stored.
    Ok,
    /// That nothing of it happened.
    No,
    /// That nobody can tell.
    Unknown,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Node {
    /// Its process runs, or stands still.
    pub alive: bool,
    /// Its process stands still.
    pub paused: bool,
    /// The shard's home as far as it knows: see [`State::home`].
    pub home: usize,
    /// Its role.
    pub role: Role,
    /// The shard as it saw it.
    pub watch: Option<Watch>,
    /// The epoch in which it served the shard last, unless it has released it.
    pub served_last: Option<u64>,
    /// In which tick a look was slow last.
    pub slow_look: Option<u8>,
    /// Denials that it gave candidates.
    pub denied: DeniedTenure,
    /// It has looked at the shard in this tick.
    pub looked: bool,
    /// It has renewed its claim in this tick.
    pub renewed: bool,
}

/// Role of a node for the shard.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Role {
    /// It looks at it.
    Looks,
    /// It has asked its owner, in an attempt that began in this tick.
    Asks(u8),
    /// It has sent a take-over.
    Claims,
    /// It has taken it over, and loads it.
    Loads {
        /// The tenure.
        tenure: Tenure,
        /// The last batch.
        batch: u64,
        /// When the take-over's call began.
        began: u8,
        /// How many ticks it will take.
        left: u8,
    },
    /// It owns it, as far as it knows.
    Owns(Owner),
}

/// Knowledge of an owner.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Owner {
    /// The tenure.
    pub tenure: Tenure,
    /// How long it trusts its claim.
    pub trust: Trust,
    /// The last resolved batch.
    pub batch: u64,
    /// The batch in flight.
    pub flight: Option<Flight>,
    /// The shard is to be handed over.
    pub hand_over: Option<HandOver>,
}

/// A batch in flight.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Flight {
    /// Its number.
    pub number: u64,
    /// Whose it is.
    pub call: usize,
    /// When it was sent first.
    pub sent_at: u8,
    /// COMMIT was sent and had no answer.
    pub unknown: bool,
    /// How often the fence had moved.
    pub behind: u8,
}

impl State {
    /// The first moment.
    pub(super) fn first(scenario: &Scenario) -> Self {
        let node = Node {
            alive: true,
            paused: false,
            home: 0,
            role: Role::Looks,
            watch: None,
            served_last: None,
            slow_look: None,
            denied: DeniedTenure::default(),
            looked: false,
            renewed: false,
        };
        let mut rows =
            Rows::new(scenario.has(Mistake::NoIncarnation), scenario.has(Mistake::ClaimIgnoresSignsOfLife));
        let mut nodes = vec![node; scenario.leases.len()];
        if scenario.owned {
            let tenure = Tenure { epoch: 1, incarnation: Incarnation([1; 16]) };
            rows.seen.epoch = tenure.epoch;
            rows.seen.incarnation = tenure.incarnation;
            rows.seen.address = address(0);
            rows.seen.lease = scenario.lease(0);
            let trust = Trust::new(scenario.lease(0), at(0));
            nodes[0].role = Role::Owns(Owner { tenure, trust, batch: 0, flight: None, hand_over: None });
            nodes[0].served_last = Some(tenure.epoch);
        }
        Self {
            now: 0,
            rows,
            before: None,
            nodes,
            operations: Vec::new(),
            left: scenario.faults,
            slow: false,
            home: 0,
            told: Vec::new(),
            denied: Vec::new(),
            incarnations: 1,
            over: false,
            broken: None,
        }
    }

    /// Whether a node does anything at all.
    pub(super) fn runs(&self, node: usize) -> bool {
        self.nodes[node].alive && !self.nodes[node].paused
    }
}

impl Node {
    /// Returns its state as the owner, if it owns the shard as far as it knows.
    pub(super) fn owner(&self) -> Option<&Owner> {
        match &self.role {
            Role::Owns(owner) => Some(owner),
            _ => None,
        }
    }

    /// The same, to change it.
    pub(super) fn owner_mut(&mut self) -> Option<&mut Owner> {
        match &mut self.role {
            Role::Owns(owner) => Some(owner),
            _ => None,
        }
    }

    /// The tenure that it renews.
    pub(super) fn claim(&self, while_loading: bool) -> Option<Tenure> {
        match &self.role {
            Role::Loads { tenure, .. } if while_loading => Some(*tenure),
            Role::Owns(owner) => Some(owner.tenure),
            _ => None,
        }
    }
}
