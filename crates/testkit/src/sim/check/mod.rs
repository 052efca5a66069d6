//! The checker: reads what clients were told and what the shards committed, and says what does not fit.
//!
//! It knows nothing of the engine. Every finding names the invariant that was broken.

mod answers;
mod deliveries;
mod enqueues;
mod items;
mod order;
mod owners;
mod settlements;
mod times;

use std::time::Duration;

use forebay_types::ShardId;

use super::history::Call;
use crate::fake::{Committed, Moment, TakenOver};

pub use items::{Item, Items, Lease, Phase, Place};

/// An invariant that was broken: its name, and what was seen.
pub type Finding = (&'static str, String);

/// What one shard committed.
#[derive(Debug, Clone)]
pub struct ShardLog {
    /// Which shard.
    pub id: ShardId,
    /// Its batches, in order.
    pub log: Vec<Committed>,
    /// Its owners, in order.
    pub owners: Vec<TakenOver>,
}

/// A run that is over.
#[derive(Debug, Clone)]
pub struct Case {
    /// Every clock was right throughout.
    pub exact_time: bool,
    /// Nothing went wrong, so that order and answers must be as good as they can be.
    pub strict: bool,
    /// No shard failed or was slow; processes may have died.
    pub healthy: bool,
    /// How long dedupe keys and request ids are remembered.
    pub dedupe_window: Duration,
    /// Every call.
    pub calls: Vec<Call>,
    /// Every shard.
    pub shards: Vec<ShardLog>,
    /// Processes that died or were stopped before the end.
    pub deaths: Vec<(usize, Moment)>,
    /// Graceful stops over healthy shards: the process, when it was told, and when it had stopped.
    pub stops: Vec<(usize, Moment, Moment)>,
}

/// Looks at everything.
pub fn check(case: &Case) -> Vec<Finding> {
    let items = Items::new(&case.shards);
    let mut found = Vec::new();
    owners::check(case, &mut found);
    enqueues::check(case, &items, &mut found);
    deliveries::check(case, &items, &mut found);
    settlements::check(case, &items, &mut found);
    times::check(case, &items, &mut found);
    answers::check(case, &mut found);
    if case.healthy {
        order::empty(case, &items, &mut found);
    }
    if case.strict {
        order::check(case, &items, &mut found);
    }
    found
}
