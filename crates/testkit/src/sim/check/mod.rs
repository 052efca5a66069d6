//! The checker compares what clients were told with what the shards committed.
//!
//! It knows nothing of the engine. Each finding names the invariant that was broken.

mod answers;
mod deliveries;
mod enqueues;
mod handoffs;
mod items;
mod order;
mod owners;
mod record;
mod settlements;
mod times;

pub use items::{Item, Items, Lease, Location, Phase};
pub use record::{Finding, RunRecord, ShardLog};

/// Checks all invariants.
pub fn check(record: &RunRecord) -> Vec<Finding> {
    let items = Items::new(&record.shards);
    let mut found = Vec::new();
    owners::check(record, &mut found);
    enqueues::check(record, &items, &mut found);
    deliveries::check(record, &items, &mut found);
    settlements::check(record, &items, &mut found);
    times::check(record, &items, &mut found);
    handoffs::check(&items, &mut found);
    answers::check(record, &mut found);
    if record.healthy {
        order::empty(record, &items, &mut found);
    }
    if record.strict {
        order::check(record, &items, &mut found);
    }
    found
}
