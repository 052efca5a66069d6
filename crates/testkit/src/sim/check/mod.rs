//! The checker compares what clients were told with what the shards committed.
//!
//! It knows nothing of the engine. Each finding names the invariant that was broken.

mod answers;
mod asked;
mod bounds;
mod changes;
mod deliveries;
mod enqueues;
mod grace;
mod handoffs;
mod items;
mod moves;
mod order;
mod owners;
mod pages;
mod ranks;
mod record;
mod settlements;
mod spans;
mod times;
mod updates;
mod waiters;

pub use items::{Item, Items, Lease, Location, Phase};
pub use moves::check as check_moves;
pub use record::{Finding, RunRecord, ShardLog};

/// Checks all invariants.
pub fn check(record: &RunRecord) -> Vec<Finding> {
    let items = Items::new(&record.shards);
    let mut found = Vec::new();
    owners::check(record, &mut found);
    enqueues::check(record, &items, &mut found);
    deliveries::check(record, &items, &mut found);
    settlements::check(record, &items, &mut found);
    changes::check(record, &items, &mut found);
    updates::check(record, &items, &mut found);
    times::check(record, &items, &mut found);
    spans::check(record, &items, &mut found);
    handoffs::check(&items, &mut found);
    answers::check(record, &mut found);
    asked::check(record, &items, &mut found);
    pages::check(record, &items, &mut found);
    ranks::check(record, &items, &mut found);
    bounds::check(record, &items, &mut found);
    grace::check(record, &items, &mut found);
    if record.healthy {
        order::empty(record, &items, &mut found);
    }
    if record.strict {
        order::check(record, &items, &mut found);
        waiters::check(record, &items, &mut found);
    }
    found
}
